"""MultinicRouter by what it declares: types, inputs, order, options. Everything as a deployment and as a preview."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pytest

from multinic import InputError, MultinicRouter, MultinicRouterArgs, RouterFleet, naming, testing
from tests.unit.shapes import IMAGE, REGION, ZONES, network, router_args


def declare(args: MultinicRouterArgs | None = None, *, preview: bool = False, **region: Any) -> testing.Declared:
    mocks = testing.Mocks(testing.Region(**region))
    return testing.run(lambda: MultinicRouter("router", args or router_args()), preview=preview, given=mocks)


def test_every_zone_is_in_every_load_balancer(preview: bool) -> None:
    declared = declare(router_args(3), preview=preview)
    services = declared.all("RegionBackendService")
    assert len(services) == 3
    for service in services:
        assert len(service["backends"]) == 3
        assert {backend["balancingMode"] for backend in service["backends"]} == {"CONNECTION"}
        for backend in service["backends"]:
            assert not [key for key in backend if key.startswith("max") or key == "capacityScaler"]
        assert service["loadBalancingScheme"] == "INTERNAL"
        assert service["protocol"] == "TCP"


def test_hashing_is_alike_in_all_networks() -> None:
    declared = declare(router_args(4, next_hop={"session_affinity": "CLIENT_IP", "tracking_mode": "PER_SESSION"}))
    same = [
        (s["sessionAffinity"], s["connectionTrackingPolicy"], s["backends"]) for s in declared.all("BackendService")
    ]
    same += [
        (s["sessionAffinity"], s["connectionTrackingPolicy"], s["backends"])
        for s in declared.all("RegionBackendService")
    ]
    assert len(same) == 4
    assert all(one == same[0] for one in same)
    assert same[0][1]["trackingMode"] == "PER_SESSION"


def test_forwarding_rules_can_be_next_hops() -> None:
    declared = declare()
    for index in (0, 1):
        rule = declared.one("ForwardingRule", f"nic{index}")
        assert rule["loadBalancingScheme"] == "INTERNAL"
        assert rule["ipProtocol"] == "TCP"
        assert rule["allPorts"] is True
        assert rule["allowGlobalAccess"] is True
        assert rule["network"] == network(index)["network"]
        assert rule["subnetwork"] == network(index)["subnetwork"]
        assert rule.delete_before_replace
        address = declared.one("Address", f"nic{index}")
        assert address["subnetwork"] == network(index)["subnetwork"]
        assert address.urn in rule.depends_on


def test_routes_lead_to_every_other_network() -> None:
    declared = declare(router_args(3))
    routes = {(r["network"].rsplit("-", 1)[-1], r["destRange"]): r["nextHopIlb"] for r in declared.all("Route")}
    wanted = {(str(i), f"10.{j}.0.0/16") for i, j in itertools.permutations(range(3), 2)}
    assert routes.keys() == wanted
    for (index, _), hop in routes.items():
        assert f"-nic{index}-rule-" in hop


def test_routes_have_priority_and_tags() -> None:
    declared = declare(router_args(routes={"priority": 901, "tags": ["client"]}))
    for route in declared.all("Route"):
        assert (route["priority"], route["tags"]) == (901, ["client"])


def test_default_route_without_tags_is_warned_about() -> None:
    args = router_args(routes={"allow_nested_cidrs": True})
    args["networks"][1]["cidrs"] = ["0.0.0.0/0"]
    assert any("0.0.0.0/0 without routes.tags" in message for message in declare(args).messages)
    args["routes"]["tags"] = ["client"]
    assert not declare(args).messages


@pytest.mark.parametrize(
    ("replicas", "size", "autoscalers"),
    [({}, None, 3), ({"min": 2, "max": 5}, None, 3), ({"min": 2}, 2, 0), ({"min": 0}, 0, 0)],
    ids=["default", "autoscaled", "fixed", "off"],
)
def test_size_is_given_only_where_no_autoscaler_owns_it(replicas: Any, size: int | None, autoscalers: int) -> None:
    declared = declare(router_args(replicas=replicas))
    assert [group.inputs.get("targetSize") for group in declared.all("InstanceGroupManager")] == [size] * 3
    assert len(declared.all("Autoscaler")) == autoscalers


@pytest.mark.parametrize(
    ("machine", "target"),
    [
        # Reference 1's machine, whose two vCPUs 10 Gbit/s take 23 % of, and its target.
        ({"type": "n1-highcpu-2"}, 0.2),
        ({}, 0.1),
        ({"type": "n2-highcpu-32"}, 0.05),
        ({"type": "n2-standard-32", "tier_1": True}, 0.06),
        ({"type": "z9-highcpu-4"}, 0.2),
    ],
    ids=lambda value: str(value),
)
def test_cpu_target_is_reached_before_the_machine_types_cap(machine: dict[str, Any], target: float) -> None:
    declared = declare(router_args(machine={"image": IMAGE, **machine}))
    assert declared.all("Autoscaler")[0]["autoscalingPolicy"]["cpuUtilization"]["target"] == target
    # With 1 Gbit/s a vCPU no target that is allowed will do.
    assert [f"{target} may never be reached" in message for message in declared.messages] == [True] * (target == 0.05)


def test_a_cpu_target_that_the_cap_prevents_is_warned_about() -> None:
    metrics = [{"name": "compute.googleapis.com/instance/network/sent_bytes_count", "target": 1e9}]
    (message,) = declare(router_args(autoscaler={"cpu_target": 0.2})).messages
    assert "about 11.5% of an n2-highcpu-4's CPU; 0.1 suits it" in message
    assert not declare(router_args(autoscaler={"cpu_target": 0.11})).messages
    assert not declare(router_args(autoscaler={"cpu_target": 0.2, "metrics": metrics})).messages
    assert not declare(
        router_args(autoscaler={"cpu_target": 0.2}, machine={"image": IMAGE, "type": "n1-highcpu-2"})
    ).messages


def test_autoscaler_gets_all_its_numbers() -> None:
    schedule = {"name": "day", "schedule": "0 8 * * MON-FRI", "duration_sec": 36000, "min_replicas": 2}
    args = router_args(
        autoscaler={
            "cpu_target": 0.3,
            "cooldown_sec": 60,
            "stabilization_sec": 300,
            "scale_in": {"max_replicas": 2, "window_sec": 120},
            "mode": "ONLY_SCALE_OUT",
            "predictive": "OPTIMIZE_AVAILABILITY",
            "schedules": [schedule],
            "metrics": [
                {"name": "compute.googleapis.com/a/b", "target": 5e6, "type": "DELTA_PER_SECOND"},
                {"name": "custom.googleapis.com/work", "single_instance_assignment": 10, "filter": "metric.label.a=b"},
            ],
        }
    )
    assert declare(args).all("Autoscaler")[0]["autoscalingPolicy"] == {
        "minReplicas": 1,
        "maxReplicas": 4,
        "mode": "ONLY_SCALE_OUT",
        "cooldownPeriod": 60,
        "stabilizationPeriod": 300,
        "cpuUtilization": {"target": 0.3, "predictiveMethod": "OPTIMIZE_AVAILABILITY"},
        "scaleInControl": {"maxScaledInReplicas": {"fixed": 2}, "timeWindowSec": 120},
        "scalingSchedules": [
            {
                "name": "day",
                "schedule": "0 8 * * MON-FRI",
                "durationSec": 36000,
                "minRequiredReplicas": 2,
                "timeZone": "Etc/UTC",
            }
        ],
        "metrics": [
            {"name": "compute.googleapis.com/a/b", "target": 5e6, "type": "DELTA_PER_SECOND"},
            {
                "name": "custom.googleapis.com/work",
                "singleInstanceAssignment": 10,
                "type": "GAUGE",
                "filter": "metric.label.a=b",
            },
        ],
    }


def test_vms_on_standby_serve_scale_out() -> None:
    group = declare(router_args(standby={"stopped": 2, "suspended": 1})).all("InstanceGroupManager")[0]
    assert group["standbyPolicy"] == {"mode": "SCALE_OUT_POOL", "initialDelaySec": 60}
    assert (group["targetStoppedSize"], group["targetSuspendedSize"]) == (2, 1)
    assert not {"standbyPolicy", "targetStoppedSize"} & declare().all("InstanceGroupManager")[0].inputs.keys()


def test_zonal_affinity_and_the_drop_switch_are_alike_in_all_networks() -> None:
    policy = {
        "zonal_affinity": "ZONAL_AFFINITY_SPILL_CROSS_ZONE",
        "spillover_ratio": 0.5,
        "failover_zones": [ZONES[0]],
        "drop_if_unhealthy": True,
    }
    for service in declare(router_args(3, next_hop=policy)).all("RegionBackendService"):
        assert service["networkPassThroughLbTrafficPolicy"] == {
            "zonalAffinity": {"spillover": "ZONAL_AFFINITY_SPILL_CROSS_ZONE", "spilloverRatio": 0.5}
        }
        assert service["failoverPolicy"] == {"failoverRatio": 0, "dropTrafficIfUnhealthy": True}
    for service in declare().all("RegionBackendService"):
        assert "networkPassThroughLbTrafficPolicy" not in service.inputs


def test_template_is_replaced_create_first_and_groups_name_its_exact_version(preview: bool) -> None:
    declared = declare(preview=preview)
    template = declared.one("InstanceTemplate")
    assert "name" not in template.inputs
    assert "namePrefix" not in template.inputs
    assert not template.delete_before_replace
    assert not template.retain_on_delete
    assert template["canIpForward"] is True
    assert template["disks"][0]["sourceImage"] == IMAGE
    assert all("accessConfigs" not in nic for nic in template["networkInterfaces"])
    for group in declared.all("InstanceGroupManager"):
        assert template.urn in group.depends_on
        if not preview:
            assert "?uniqueId=" in group["versions"][0]["instanceTemplate"]
        assert group["waitForInstances"] is True
        assert group["waitForInstancesStatus"] == "UPDATED"


@pytest.mark.parametrize("updates", [{"wait": False}, {"type": "OPPORTUNISTIC"}])
def test_old_template_is_kept_where_nobody_waits_for_its_users(updates: Any) -> None:
    declared = declare(router_args(updates=updates))
    assert declared.one("InstanceTemplate").retain_on_delete
    assert {group["waitForInstances"] for group in declared.all("InstanceGroupManager")} == {False}


def test_only_these_have_a_name_of_their_own(preview: bool) -> None:
    # Whatever has a fixed name is deleted before it is replaced.
    for declared in (declare(preview=preview), declare(router_args(8, generation="v2"), preview=preview)):
        assert [one.name for one in declared.resources if {"name", "namePrefix"} & one.inputs.keys()] == []


def test_updates_write_every_number_out() -> None:
    group = declare().all("InstanceGroupManager")[0]
    assert group["updatePolicy"] == {
        "type": "PROACTIVE",
        "minimalAction": "REPLACE",
        "mostDisruptiveAllowedAction": "REPLACE",
        "replacementMethod": "SUBSTITUTE",
        "maxSurgeFixed": 1,
        "maxUnavailableFixed": 0,
        "minReadySec": 10,
    }
    assert group["autoHealingPolicies"]["initialDelaySec"] == 60
    # Repairs must not spread a template whose rollout stands still.
    assert group["instanceLifecyclePolicy"] == {"forceUpdateOnRepair": "NO", "defaultActionOnFailure": "REPAIR"}


def test_probes_reach_every_port_that_a_check_uses() -> None:
    declared = declare(router_args(3, health={"traffic": {"port": 8001}, "heal": {"port": 8000}}))
    for index, ports in enumerate((["8000", "8001"], ["8001"], ["8001"])):
        rule = declared.one("Firewall", f"probes-nic{index}")
        assert rule["sourceRanges"] == ["35.191.0.0/16", "130.211.0.0/22"]
        assert rule["allows"] == [{"protocol": "tcp", "ports": ports}]
        routed = declared.one("Firewall", f"routed-nic{index}")
        assert routed["sourceRanges"] == ["10.0.0.0/16", "10.1.0.0/16", "10.2.0.0/16"]
        assert routed["allows"] == [{"protocol": "all"}]
    assert declared.one("HealthCheck", "heal")["httpHealthCheck"] == {"port": 8000, "requestPath": "/status.json"}
    assert declared.one("HealthCheck", "traffic")["httpHealthCheck"]["port"] == 8001


def test_groups_come_after_the_firewall() -> None:
    # They wait for their VMs to be healthy, and without the rules no probe arrives.
    declared = declare()
    firewall = {rule.urn for rule in declared.all("Firewall")}
    for group in declared.all("InstanceGroupManager"):
        assert firewall <= set(group.depends_on)


def test_service_account_may_write_logs_and_nothing_else() -> None:
    declared = declare()
    email = declared.one("Account").inputs["accountId"] + "@lab.iam.gserviceaccount.com"
    assert [member["role"] for member in declared.all("IAMMember")] == ["roles/logging.logWriter"]
    assert declared.one("InstanceTemplate")["serviceAccount"] == {
        "email": email,
        "scopes": ["https://www.googleapis.com/auth/logging.write"],
    }
    for rule in declared.all("Firewall"):
        assert rule["targetServiceAccounts"] == [email]


def test_names_of_any_length_become_names_that_google_cloud_takes(preview: bool) -> None:
    for name in ("a" * 300, "Ä" * 63, "x y", "9", "-"):
        declared = testing.run(partial(MultinicRouter, name, router_args(generation="v2")), preview=preview)
        for one in declared.resources:
            if one.custom:
                assert re.fullmatch(r"[a-z]([-a-z0-9]{0,53}[a-z0-9])?", one.name), one
        assert len(declared.one("Account")["displayName"]) <= 100
        names = [group["baseInstanceName"] for group in declared.all("InstanceGroupManager")]
        assert len(set(names)) == 3 and max(map(len, names)) <= 58


def test_given_service_account_is_used_as_it_is() -> None:
    email = "robot@lab.iam.gserviceaccount.com"
    declared = declare(router_args(access={"service_account": email, "iap_ssh": True}))
    assert not declared.all("Account")
    assert not declared.all("IAMMember")
    assert declared.one("InstanceTemplate")["serviceAccount"]["email"] == email
    assert declared.one("Firewall", "iap-ssh")["sourceRanges"] == ["35.235.240.0/20"]


def test_packets_of_more_ranges_are_let_in_and_given_no_routes() -> None:
    plain, more = declare(), declare(router_args(access={"source_cidrs": ["10.32.0.0/23"]}))
    for nic in ("nic0", "nic1"):
        before = plain.one("Firewall", f"routed-{nic}")["sourceRanges"]
        assert more.one("Firewall", f"routed-{nic}")["sourceRanges"] == sorted([*before, "10.32.0.0/23"])
    assert [one["destRange"] for one in more.all("Route")] == [one["destRange"] for one in plain.all("Route")]
    probes = [declared.one("Firewall", "probes-nic0")["sourceRanges"] for declared in (plain, more)]
    assert probes[0] == probes[1]


@pytest.mark.parametrize("link", [str, pulumi.Output.from_input], ids=["text", "output"])
def test_shared_vpc_puts_each_resource_into_its_project(link: Callable[[str], pulumi.Input[str]]) -> None:
    def host(index: int, place: str, kind: str) -> str:
        return f"projects/host-{index}/{place}/{kind}s/n"

    def program() -> None:
        args = router_args(project="service")
        for i, one in enumerate(args["networks"]):
            one["network"] = link(host(i, "global", "network"))
            one["subnetwork"] = host(i, f"regions/{REGION}", "subnetwork")
        MultinicRouter("router", args)

    declared = testing.run(program)
    for kind in ("Route", "Firewall"):
        for one in declared.all(kind):
            assert one["project"] == one["network"].split("/")[1], one.name
    in_service = "Account Address Autoscaler ForwardingRule HealthCheck InstanceGroupManager InstanceTemplate"
    for kind in [*in_service.split(), "RegionBackendService"]:
        assert {one["project"] for one in declared.all(kind)} == {"service"}, kind
    assert [one["project"] for one in declared.all("IAMMember")] == ["service"]


def test_an_output_that_names_no_project_is_refused_as_a_link() -> None:
    def program() -> None:
        naming.project_of_link(pulumi.Output.from_input("net")).apply(str)  # type: ignore[union-attr]

    with pytest.raises(ValueError, match="'net' names no project: give a full link such as projects/P/global/"):
        testing.run(program)


def test_existing_address_is_used() -> None:
    args = router_args()
    args["networks"][1]["address"] = "10.1.0.9"
    declared = declare(args)
    assert declared.one("ForwardingRule", "nic1")["ipAddress"] == "10.1.0.9"
    assert [one.name for one in declared.all("Address")] == ["router-nic0-address"]


def test_zones_are_looked_up_when_they_are_not_given(preview: bool) -> None:
    args = router_args()
    del args["zones"]
    declared = declare(args, preview=preview, zones=["us-central1-f", "us-central1-ai1a", "us-central1-b"])
    groups = declared.all("InstanceGroupManager")
    assert sorted(group["zone"] for group in groups) == ["us-central1-b", "us-central1-f"]
    assert declared.calls == [("gcp:compute/getZones:getZones", {"region": REGION, "status": "UP"})]
    assert any("us-central1-b, us-central1-f" in message for message in declared.messages)
    with pytest.raises(InputError, match="region: no ordinary zone of us-central1 is up"):
        declare(args, zones=["us-central1-ai1a"])


def test_image_family_is_resolved_to_an_exact_image() -> None:
    args = router_args(machine={"image_family": "projects/debian-cloud/global/images/family/debian-12"})
    declared = declare(args)
    assert declared.one("InstanceTemplate")["disks"][0]["sourceImage"].endswith(
        "projects/debian-cloud/global/images/debian-12-bookworm-v20260921"
    )


def test_machine_options_arrive() -> None:
    args = router_args(
        labels={"team": "net"},
        machine={
            "image": IMAGE,
            "type": "c3-standard-44",
            "tier_1": True,
            "min_cpu_platform": "Intel Sapphire Rapids",
            "tags": ["router"],
            "disk_gb": 20,
            "disk_type": "pd-ssd",
            "disk_kms_key": "projects/p/locations/l/keyRings/r/cryptoKeys/k",
            "shielded": {"secure_boot": False},
            "metadata": {"enable-oslogin": "TRUE"},
            "startup_script": "#!/bin/sh\ntrue\n",
        },
    )
    args["networks"][0] |= {"queue_count": 4}
    template = declare(args).one("InstanceTemplate")
    assert template["networkPerformanceConfig"] == {"totalEgressBandwidthTier": "TIER_1"}
    assert template["minCpuPlatform"] == "Intel Sapphire Rapids"
    assert template["tags"] == ["router"]
    assert template["labels"] == {"team": "net"}
    assert template["disks"] == [
        {
            "boot": True,
            "autoDelete": True,
            "sourceImage": IMAGE,
            "diskType": "pd-ssd",
            "diskSizeGb": 20,
            "labels": {"team": "net"},
            "diskEncryptionKey": {"kmsKeySelfLink": "projects/p/locations/l/keyRings/r/cryptoKeys/k"},
        }
    ]
    assert template["shieldedInstanceConfig"]["enableSecureBoot"] is False
    assert template["metadata"]["enable-oslogin"] == "TRUE"
    assert template["metadata"]["multinic-user-startup-script"] == "#!/bin/sh\ntrue\n"
    assert template["networkInterfaces"][0]["queueCount"] == 4
    assert "queueCount" not in template["networkInterfaces"][1]
    assert {nic["nicType"] for nic in template["networkInterfaces"]} == {"GVNIC"}


def test_disk_follows_the_series() -> None:
    template = declare(router_args(machine={"image": IMAGE, "type": "c4-highcpu-4"})).one("InstanceTemplate")
    assert template["disks"][0]["diskType"] == "hyperdisk-balanced"


def test_spot_vms_do_not_restart_by_themselves() -> None:
    template = declare(router_args(machine={"image": IMAGE, "spot": True})).one("InstanceTemplate")
    assert template["scheduling"] == {
        "provisioningModel": "SPOT",
        "preemptible": True,
        "automaticRestart": False,
        "onHostMaintenance": "TERMINATE",
        "instanceTerminationAction": "STOP",
    }


def test_failover_zones_serve_second() -> None:
    declared = declare(router_args(next_hop={"failover_zones": [ZONES[2]], "failover_ratio": 0.3}))
    for service in declared.all("RegionBackendService"):
        assert [backend["failover"] for backend in service["backends"]] == [False, False, True]
        assert service["failoverPolicy"] == {"failoverRatio": 0.3}


def test_regional_traffic_check() -> None:
    declared = declare(router_args(health={"regional": True}))
    assert declared.one("RegionHealthCheck", "traffic")["region"] == REGION
    assert [one.name for one in declared.all("HealthCheck")] == ["router-fleet-heal"]


def two_routers(**second: Any) -> testing.Declared:
    def program() -> None:
        MultinicRouter("first", router_args())
        MultinicRouter("second", router_args(**second))

    return testing.run(program)


def test_two_routers_of_a_program_with_the_same_routes_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        two_routers()
    for index, other in ((0, 1), (1, 0)):
        assert (
            f"networks[{other}].cidrs[0]: router 'first' of this program has a route for 10.{other}.0.0/16 with "
            f"priority 900 in the network of networks[{index}] as well; give one of the two another routes.priority"
        ) in str(caught.value)
    assert len(two_routers(routes={"priority": 901}).all("Route")) == 4
    assert len(two_routers(routes={"tags": ["client"]}).all("Route")) == 4
    narrower = [network(0, cidrs=["10.0.0.0/17"]), network(1, cidrs=["10.1.0.0/17"])]
    assert len(two_routers(networks=narrower).all("Route")) == 4


def test_the_same_output_is_known_as_the_same_network() -> None:
    def program(count: int) -> None:
        made = gcp.compute.Network("net")
        for name in ("first", "second")[:count]:
            args = router_args()
            args["networks"][0]["network"] = made.self_link
            if count == 1:
                args["networks"][1]["network"] = made.self_link
            MultinicRouter(name, args)

    with pytest.raises(InputError, match=r"networks\[1\]\.network: is the same as networks\[0\]\.network"):
        testing.run(partial(program, 1))
    with pytest.raises(InputError, match=r"networks\[1\]\.cidrs\[0\]: router 'first' of this program has a route"):
        testing.run(partial(program, 2))


def test_two_generations_share_no_name() -> None:
    def program() -> None:
        MultinicRouter("router", router_args(generation="v1"))
        MultinicRouter("router-next", router_args(generation="v2", routes={"priority": 890}))

    declared = testing.run(program)
    names = [one.name for one in declared.resources if one.custom]
    assert len(names) == len(set(names))
    assert all(name.startswith(("v1-", "v2-")) for name in names if "account-id" not in name)


def test_every_component_registers_its_declared_outputs() -> None:
    declared = declare()
    for component in (one for one in declared.resources if not one.custom):
        kind = {"MultinicRouter": MultinicRouter, "RouterFleet": RouterFleet}.get(component.type.rsplit(":", 1)[-1])
        outputs = declared.component_outputs[component.urn]
        assert outputs
        if kind:
            assert outputs.keys() == {name for name in kind.__annotations__ if not name.startswith("_")}


def test_wrong_inputs_declare_nothing() -> None:
    mocks = testing.Mocks()
    with pytest.raises(InputError):
        testing.run(lambda: MultinicRouter("router", router_args(zones=[])), given=mocks)
    assert mocks.declared.resources == []

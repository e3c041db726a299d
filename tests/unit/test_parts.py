"""The components that can be used alone: fleet, next hop, networks, endpoints."""

from __future__ import annotations

import re
from typing import Any

import pytest

from multinic import Endpoints, InputError, MultinicRouter, NextHop, RoutedNetworks, RouterFleet, testing
from multinic.fleet import timeout_sec
from multinic.parsing import router
from multinic.problems import Problems
from tests.unit.shapes import IMAGE, REGION, ZONES, network, router_args

HOP: dict[str, Any] = {
    "region": REGION,
    "network": network(0)["network"],
    "subnetwork": network(0)["subnetwork"],
    "groups": {ZONES[1]: "group-b", ZONES[0]: "group-a"},
    "health_check": "check",
}
NETWORKS: list[dict[str, Any]] = [{"name": "left", "cidr": "10.0.0.0/24"}, {"name": "right", "cidr": "10.1.0.0/24"}]
ENDS: dict[str, Any] = {
    "zones": ZONES,
    "image": IMAGE,
    "clients": {"network": network(0)["network"], "subnetwork": network(0)["subnetwork"], "count": 4},
    "servers": {"network": network(1)["network"], "subnetwork": network(1)["subnetwork"]},
    "cidrs": ["10.1.0.0/16", "10.0.0.0/16"],
}


def refused(component: Any, args: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        testing.run(lambda: component("x", args))
    return str(caught.value)


def test_fleet_alone(preview: bool) -> None:
    args: Any = {**router_args(), "service_account": "r@lab.iam.gserviceaccount.com"}
    declared = testing.run(lambda: RouterFleet("fleet", args), preview=preview)
    assert len(declared.all("InstanceGroupManager")) == 3
    assert not declared.all("Route")
    assert "service_account: is required" in refused(RouterFleet, dict(router_args()))
    assert "routes: no such input" in refused(RouterFleet, {**args, "routes": {}})


def test_next_hop_alone(preview: bool) -> None:
    args: Any = HOP
    declared = testing.run(lambda: NextHop("hop", args), preview=preview)
    backends = declared.one("RegionBackendService")["backends"]
    assert [backend["group"] for backend in backends] == ["group-a", "group-b"]
    assert "groups: is empty" in refused(NextHop, {**HOP, "groups": {}})
    assert "groups: is empty" in refused(NextHop, {key: value for key, value in HOP.items() if key != "groups"})
    assert "policy.draining_sec: 3601 is outside" in refused(NextHop, {**HOP, "policy": {"draining_sec": 3601}})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"region": "Mars"}, "region: 'Mars' is not a region such as us-central1"),
        ({"project": "P"}, "project: 'P' is not a project id"),
        ({"network": "net"}, "network: 'net' is not a full link; give projects/P/global/networks/N"),
        (
            {"region": "us-west1", "groups": {"us-west1-a": "g"}},
            f"subnetwork: {HOP['subnetwork']} is not in region us-w",
        ),
        ({"groups": {"us-west1-a": "g"}}, "groups: 'us-west1-a' is not an ordinary zone of region us-central1"),
        ({"groups": {ZONES[0]: None}}, f"groups.{ZONES[0]}: is required"),
        ({"address": "fd00::1"}, "address: fd00::1 is IPv6"),
        ({"labels": {"Team": "x"}}, "labels.Team: a label's key is a lower-case letter"),
        ({"policy": {"failover_zones": [ZONES[2]]}}, "policy.failover_zones[0]: 'us-central1-c' is not one of zones"),
        ({"policy": {"idle_timeout_sec": 600}}, "policy.idle_timeout_sec: can be set with tracking_mode PER_SESSION"),
        ({"health_check": ""}, "health_check: is empty; give a string"),
    ],
)
def test_wrong_next_hop(change: dict[str, Any], message: str) -> None:
    assert message in refused(NextHop, {**HOP, **change})


def test_fleet_whose_zones_are_looked_up_fits_a_load_balancer() -> None:
    args: Any = {**router_args(replicas={"min": 100}), "service_account": "r@lab.iam.gserviceaccount.com"}
    del args["zones"]
    assert "replicas.min: 100 VMs in each of 4 zones; a load balancer takes at most 250" in refused(RouterFleet, args)


def test_router_whose_zones_are_looked_up_makes_nothing_when_they_do_not_fit() -> None:
    args: Any = router_args(replicas={"min": 100})
    del args["zones"]
    mocks = testing.Mocks()
    with pytest.raises(InputError, match=r"replicas.min: 100 VMs in each of 4 zones"):
        testing.run(lambda: MultinicRouter("router", args), given=mocks)
    assert not [one for one in mocks.declared.resources if one.custom]


def test_networks(preview: bool) -> None:
    args: Any = {"region": REGION, "networks": [{**NETWORKS[0], "mtu": 8896}, NETWORKS[1]]}
    declared = testing.run(lambda: RoutedNetworks("dev", args), preview=preview)
    assert [one["mtu"] for one in sorted(declared.all("Network"), key=lambda one: one.name)] == [8896, 1460]
    assert {one["privateIpGoogleAccess"] for one in declared.all("Subnetwork")} == {True}
    assert any("MTUs differ (left 8896, right 1460 bytes)" in message for message in declared.messages)


def test_networks_of_several_regions() -> None:
    args: Any = {"region": REGION, "networks": [{**NETWORKS[0], "more_subnets": {"us-east1": "10.7.0.0/24"}}]}
    declared = testing.run(lambda: RoutedNetworks("dev", args))
    assert {one.name: (one["region"], one["ipCidrRange"]) for one in declared.all("Subnetwork")} == {
        "dev-left-subnet": (REGION, "10.0.0.0/24"),
        "dev-left-subnet-us-east1": ("us-east1", "10.7.0.0/24"),
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mtu": 9999}, "networks[1].mtu: 9999 is outside 1300 to 8896 bytes"),
        ({"cidr": "10.1.0.5/24"}, "networks[1].cidr: 10.1.0.5/24 has host bits set; did you mean 10.1.0.0/24?"),
        ({"cidr": "10.0.0.0/30"}, "networks[1].cidr: 10.0.0.0/30: a subnetwork is between /8 and /29"),
        ({"cidr": "10.0.0.0/16"}, "networks[1].cidr: 10.0.0.0/16 overlaps 10.0.0.0/24 (networks[0].cidr)"),
        ({"more_subnets": {"us-east1": "10.0.0.0/25"}}, "networks[1].more_subnets.us-east1: 10.0.0.0/25 overlaps"),
        ({"more_subnets": {"east": "10.7.0.0/25"}}, "networks[1].more_subnets.east: 'east' is not a region"),
        ({"more_subnets": {5: "10.7.0.0/33"}}, "networks[1].more_subnets.5: 5 is not a region such as us-central1"),
        ({"more_subnets": {5: "10.7.0.0/33"}}, "networks[1].more_subnets.5: '10.7.0.0/33' is not an IPv4 range"),
        ({"more_subnets": {"\ud800": 1}}, "networks[1].more_subnets.\\ud800: must be a string, not 1"),
        ({"more_subnets": {REGION: "10.7.0.0/25"}}, "networks[1].more_subnets.us-central1: is the region itself"),
        ({"cidr": None}, "networks[1].cidr: is required: give a string"),
        ({"name": "left"}, "networks[1].name: left is given twice"),
        ({"cidr": "224.0.0.0/24"}, "networks[1].cidr: 224.0.0.0/24 overlaps 224.0.0.0/4, where no subnetwork can be"),
        ({"name": "a" * 64}, f"networks[1].name: {'a' * 64!r} is not a name of lower-case letters"),
        ({"name": "Left"}, "networks[1].name: 'Left' is not a name of lower-case letters"),
    ],
)
def test_wrong_networks(change: dict[str, Any], message: str) -> None:
    assert message in refused(RoutedNetworks, {"region": REGION, "networks": [NETWORKS[0], {**NETWORKS[1], **change}]})


def test_endpoints(preview: bool) -> None:
    args: Any = ENDS
    declared = testing.run(lambda: Endpoints("ends", args), preview=preview)
    clients = sorted(declared.all("Instance", "client"), key=lambda one: one.name)
    assert [one["zone"] for one in clients] == [*ZONES, ZONES[0]]
    assert len(declared.all("Instance", "server")) == 1
    for rule in declared.all("Firewall"):
        assert rule["sourceRanges"] == ["10.0.0.0/16", "10.1.0.0/16"]
    for one in declared.all("Instance"):
        assert "accessConfigs" not in one["networkInterfaces"][0]
        # Debian's package has an iperf3.service; systemd-run refuses a name that is taken.
        script = one["metadata"]["startup-script"]
        assert re.findall(r"--unit=(\S+)", script) == ["multinic-iperf3"]
    assert "zones: is empty" in refused(Endpoints, {**ENDS, "zones": []})
    assert "machine_type: 'big' is not a machine type" in refused(Endpoints, {**ENDS, "machine_type": "big"})
    assert "image: is required" in refused(Endpoints, {**ENDS, "image": ""})
    assert "zones[0]: 'here' is not a zone such as us-central1-b" in refused(Endpoints, {**ENDS, "zones": ["here"]})
    assert "zones: are of several regions" in refused(Endpoints, {**ENDS, "zones": [*ZONES, "us-east1-b"]})
    assert "labels.A: a label's key" in refused(Endpoints, {**ENDS, "labels": {"A": "x"}})
    named = {**ENDS["clients"], "network": "net"}
    assert "clients.network: 'net' is not a full link" in refused(Endpoints, {**ENDS, "clients": named})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cidrs": []}, "cidrs: is empty; give the ranges that may reach the VMs"),
        ({"zones": ["us-east1-b"]}, f"clients.subnetwork: {network(0)['subnetwork']} is not in region us-east1"),
        ({"machine_type": "n2-highcpu-3"}, "machine_type: n2-highcpu-3 is not one of Google Cloud's"),
        ({"machine_type": "t2a-standard-4"}, "image: is not for the CPUs of t2a machines; give an image for arm64"),
        (
            {"image": "projects/rocky-linux-cloud/global/images/rocky-linux-9-v20260921", "disk_gb": 10},
            "disk_gb: 10 GB is less than the image has; give 20",
        ),
    ],
)
def test_wrong_endpoints(change: dict[str, Any], message: str) -> None:
    assert message in refused(Endpoints, {**ENDS, **change})


def test_firewall_rules_of_endpoints_are_made_where_the_network_is() -> None:
    args: Any = {**ENDS, "project": "service-a"}
    declared = testing.run(lambda: Endpoints("ends", args))
    assert {rule["project"] for rule in declared.all("Firewall")} == {"lab"}
    assert {vm["project"] for vm in declared.all("Instance")} == {"service-a"}


@pytest.mark.parametrize("args", [None, [], "router", 7])
@pytest.mark.parametrize("component", [Endpoints, MultinicRouter, NextHop, RoutedNetworks, RouterFleet])
def test_inputs_that_are_no_mapping_are_one_problem(component: Any, args: Any) -> None:
    said = refused(component, args)
    assert said == f"1 input cannot be used:\n  args: must be a mapping of names to values, not {args!r}"


def test_a_group_gets_time_for_each_of_its_vms() -> None:
    def seconds(**more: Any) -> int:
        return timeout_sec(router(router_args(2, **more), Problems()).fleet)

    assert seconds(replicas={"min": 1}) < seconds(replicas={"min": 8})
    assert seconds(replicas={"min": 8}, updates={"max_surge": 4}) < seconds(replicas={"min": 8})
    assert seconds(updates={"min_ready_sec": 600}) > seconds() + 4 * 590

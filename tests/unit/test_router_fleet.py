"""The router VMs that MultinicRouter declares: groups, sizes, template, machine."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.declaring import declare
from tests.unit.shapes import IMAGE, router_args


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
    none = declare().all("InstanceGroupManager")[0]
    assert (none["targetStoppedSize"], none["targetSuspendedSize"]) == (0, 0)


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


def test_groups_come_after_the_firewall() -> None:
    # They wait for their VMs to be healthy, and without the rules no probe arrives.
    declared = declare()
    firewall = {rule.urn for rule in declared.all("Firewall")}
    for group in declared.all("InstanceGroupManager"):
        assert firewall <= set(group.depends_on)


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

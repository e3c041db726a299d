"""The dev stack under mocks: what `make demo` will bring up."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest

import stacks
from multinic import InputError, testing
from multinic.lab.scenarios.settings import REFERENCE as REFERENCE_1
from stacks import dev


def test_has_all_resources_of_reference_1(dev_config: dict[str, Any], preview: bool) -> None:
    declared = testing.run(dev.program, config=dev_config, preview=preview)
    counts = {
        "compute.Network": 2,
        "compute.Subnetwork": 2,
        "compute.InstanceTemplate": 1,
        "compute.InstanceGroupManager": 3,
        "compute.Autoscaler": 3,
        "compute.HealthCheck": 2,
        "compute.RegionBackendService": 2,
        "compute.Address": 2,
        "compute.ForwardingRule": 2,
        "compute.Route": 2,
        "compute.Firewall": 6,
        "compute.Instance": 2,
        "serviceaccount.Account": 1,
        "projects.IAMMember": 1,
    }
    assert {kind: len(declared.all(kind)) for kind in counts} == counts


def test_exports_are_flat_and_plain(dev_config: dict[str, Any]) -> None:
    outputs = testing.run(dev.program, config=dev_config).outputs
    assert outputs["zones"] == ["us-central1-a", "us-central1-b", "us-central1-c"]
    assert len(outputs["clients"]) == len(outputs["client_addresses"]) == len(outputs["client_zones"]) == 1
    assert len(outputs["servers"]) == len(outputs["server_addresses"]) == len(outputs["server_zones"]) == 1
    for name, value in outputs.items():
        values = value if isinstance(value, list) else value.values() if isinstance(value, dict) else [value]
        assert all(isinstance(one, str) and one for one in values), name


def test_settings_of_reference_1_by_configuration_alone(dev_config: dict[str, Any]) -> None:
    dev_config["multinic:router"] |= REFERENCE_1
    declared = testing.run(dev.program, config=dev_config)
    numbers = ("checkIntervalSec", "timeoutSec", "healthyThreshold", "unhealthyThreshold")
    assert [declared.one("HealthCheck", "traffic")[key] for key in numbers] == [3, 2, 2, 2]
    assert [declared.one("HealthCheck", "heal")[key] for key in numbers] == [10, 5, 2, 3]
    for service in declared.all("RegionBackendService"):
        assert service["sessionAffinity"] == "NONE"
        assert service["connectionDrainingTimeoutSec"] == 300
        assert service["connectionTrackingPolicy"] == {
            "trackingMode": "PER_CONNECTION",
            "connectionPersistenceOnUnhealthyBackends": "DEFAULT_FOR_PROTOCOL",
        }
    assert {group["updatePolicy"]["minReadySec"] for group in declared.all("InstanceGroupManager")} == {120}
    config = json.loads(declared.one("InstanceTemplate")["metadata"]["multinic-config"])
    assert config["drain_seconds"] == 9  # 2 probes 3 s apart, and the margin


def wrong(config: dict[str, Any]) -> str:
    declared = testing.Mocks()
    with pytest.raises(InputError) as caught:
        testing.run(dev.program, config=config, given=declared)
    assert declared.declared.resources == []
    return str(caught.value)


def test_no_zone_is_refused_by_name(dev_config: dict[str, Any]) -> None:
    dev_config["multinic:zones"] = []
    assert "multinic:zones: is empty; give at least one zone such as us-central1-b" in wrong(dev_config)


def test_overlapping_networks_are_refused_by_name(dev_config: dict[str, Any]) -> None:
    dev_config["multinic:networks"][1]["cidr"] = "10.10.0.0/16"
    assert "multinic:networks[1].cidr: 10.10.0.0/16 overlaps 10.10.0.0/24 (" in wrong(dev_config)


def test_all_problems_of_one_run_are_reported_together(dev_config: dict[str, Any]) -> None:
    dev_config["multinic:router"]["machine"]["tpye"] = "n2-highcpu-4"
    dev_config["multinic:router"]["health"] = {"traffic": {"timeout_sec": 5}}
    dev_config["multinic:router"]["region"] = "us-west1"
    dev_config["multinic:zones"] = ["us-central1-b", "us-west1-a"]
    dev_config["multinic:endpoints"] = {"disk_gb": "ten"}
    dev_config["multinic:ruoter"] = {}
    text = wrong(dev_config)
    for line in (
        "multinic:router.machine.tpye: no such input; did you mean type?",
        "multinic:router.health.traffic.timeout_sec: 5 s is longer than interval_sec, 1 s",
        "multinic:router.region: the region of a stack is given as gcp:region",
        "multinic:zones[1]: 'us-west1-a' is not an ordinary zone of region us-central1",
        "multinic:endpoints.disk_gb: must be a whole number, not 'ten'",
        "multinic:ruoter: no such setting; did you mean router?",
    ):
        assert line in text
    assert text.startswith("6 inputs cannot be used:")


def test_an_image_that_does_not_suit_the_endpoints_is_refused_by_name(dev_config: dict[str, Any]) -> None:
    machine = dev_config["multinic:router"]["machine"]
    dev_config["multinic:router"]["machine"] = {"image_family": "projects/debian-cloud/global/images/family/debian-12"}
    assert "multinic:endpoints.image: is required: give an exact image such as" in wrong(dev_config)
    arm = machine["image"].replace("bookworm", "bookworm-arm64")
    dev_config["multinic:router"]["machine"] = {"image": arm, "type": "t2a-standard-4"}
    assert "multinic:endpoints.image: is not for the CPUs of n2 machines; give an image for x86" in wrong(dev_config)
    dev_config["multinic:endpoints"] = {"machine_type": "t2a-standard-2"}
    assert testing.run(dev.program, config=dev_config).all("Instance")


def test_wrong_configuration_ends_a_program_without_a_traceback(dev_config: dict[str, Any]) -> None:
    dev_config["multinic:zones"] = []
    with pytest.raises(pulumi.RunError, match="multinic:zones: is empty"):
        testing.run(stacks.run, config=dev_config)
    with pytest.raises(pulumi.RunError, match="there is no program 'prod'; known: dev"):
        testing.run(stacks.run, config={"multinic:program": "prod"})

"""Which changes make a new resource, which are made in place, and which are none."""

from __future__ import annotations

from typing import Any

import pytest

from multinic.lab.pulumi.rest import Rest
from multinic.lab.pulumi.stand_in import Gcp
from multinic.lab.pulumi.types import TABLE
from multinic.lab.pulumi.values import DEFAULTS, UNKNOWN

# Inputs whose change makes a new resource, beside name and project. Recorded from the real plugin's own schema.
REPLACING = {
    "network:Network": "autoCreateSubnetworks description",
    "subnetwork:Subnetwork": "description network region",
    "firewall:Firewall": "direction",
    "route:Route": "description destRange network nextHopGateway nextHopIlb nextHopInstance nextHopInstanceZone "
    "nextHopIp nextHopVpnTunnel priority tags",
    "address:Address": "address addressType description ipVersion network networkTier prefixLength purpose region "
    "subnetwork",
    "healthCheck:HealthCheck": "",
    "regionHealthCheck:RegionHealthCheck": "region",
    "instanceGroupManager:InstanceGroupManager": "baseInstanceName zone",
    "regionInstanceGroupManager:RegionInstanceGroupManager": "baseInstanceName description distributionPolicyZones "
    "region",
    "autoscaler:Autoscaler": "zone",
    "regionAutoscaler:RegionAutoscaler": "region",
    "regionBackendService:RegionBackendService": "loadBalancingScheme network",
    "forwardingRule:ForwardingRule": "allPorts backendService description ipAddress ipProtocol ipVersion "
    "isMirroringCollector loadBalancingScheme network networkTier portRange ports region serviceLabel subnetwork",
    # The plugin's schema does not say it of the startup script, but its documentation does.
    "instance:Instance": "bootDisk confidentialInstanceConfig hostname metadataStartupScript networkInterfaces "
    "networkPerformanceConfig zone",
    "router:Router": "network region",
    "routerNat:RouterNat": "region router type",
    "account:Account": "accountId",
    "iAMMember:IAMMember": "condition member role",
}


@pytest.mark.parametrize("token", REPLACING)
def test_the_same_inputs_replace_as_in_the_plugin(token: str) -> None:
    (kind,) = (kind for full, kind in TABLE.items() if full.endswith("/" + token))
    found = {field.name for field in kind.fields.fields if field.replaces} - {"name", "project"}
    assert found == set(REPLACING[token].split())


def test_everything_of_a_template_replaces_it() -> None:
    for token in ("gcp:compute/instanceTemplate:InstanceTemplate",):
        assert [field.name for field in TABLE[token].fields.fields if not field.replaces] == []


def _differences(token: str, old: dict[str, Any], new: dict[str, Any], state: dict[str, Any] | None = None) -> Any:
    provider = Gcp(Rest("http://127.0.0.1:9", "t"), "lab", "us-central1", "us-central1-a")
    before, _ = provider.check(f"gcp:compute/{token}", "logical", None, old, bytes(32))
    after, _ = provider.check(f"gcp:compute/{token}", "logical", before, new, bytes([7] * 32))
    return provider.diff(f"gcp:compute/{token}", before, state or {}, after)


NETWORK = "network:Network"
FIREWALL = "firewall:Firewall"
GROUP = "instanceGroupManager:InstanceGroupManager"
RANGES = {"network": "n", "allows": [{"protocol": "all"}], "sourceRanges": ["10.0.0.0/8", "10.1.0.0/16"]}
TEMPLATE = "projects/p/global/instanceTemplates/t-1?uniqueId="
TEMPLATE_1 = {"baseInstanceName": "r", "versions": [{"instanceTemplate": TEMPLATE + "1"}]}


def test_an_automatic_name_stays_although_the_seed_is_another() -> None:
    assert _differences(NETWORK, {}, {}).changed == []


def test_a_replaced_resource_with_an_automatic_name_is_made_before_the_old_one_goes() -> None:
    found = _differences(NETWORK, {"description": "a"}, {"description": "b"})
    assert (found.replaces, found.delete_first) == (["description"], False)


def test_one_with_a_name_of_the_programs_goes_first() -> None:
    found = _differences(NETWORK, {"name": "n", "description": "a"}, {"name": "n", "description": "b"})
    assert (found.replaces, found.delete_first) == (["description"], True)
    renamed = _differences(NETWORK, {"name": "n"}, {"name": "m"})
    assert (renamed.replaces, renamed.delete_first) == (["name"], False)


def test_another_project_of_the_provider_replaces() -> None:
    assert _differences(NETWORK, {}, {}, {"project": "lab"}).changed == []
    assert _differences(NETWORK, {}, {}, {"project": "old"}).replaces == ["project"]


def test_order_in_sets_forms_of_links_and_defaults_are_no_difference() -> None:
    other = RANGES | {
        "network": "https://www.googleapis.com/compute/v1/projects/lab/global/networks/n",
        "sourceRanges": ["10.1.0.0/16", "10.0.0.0/8"],
        "priority": 1000,
        "disabled": False,
    }
    assert _differences(FIREWALL, RANGES, other).changed == []
    assert _differences(FIREWALL, RANGES, RANGES | {"sourceRanges": ["10.0.0.0/8"]}).changed == ["sourceRanges"]


def test_a_link_that_is_not_known_yet_is_a_difference() -> None:
    assert _differences(FIREWALL, RANGES, RANGES | {"network": UNKNOWN}).changed == ["network"]


def test_a_template_of_the_same_name_and_another_number_is_another() -> None:
    second = {"versions": [{"instanceTemplate": TEMPLATE + "2"}]}
    assert _differences(GROUP, TEMPLATE_1, TEMPLATE_1 | second).changed == ["versions"]


def test_a_size_that_is_left_to_the_autoscaler_is_no_difference() -> None:
    assert _differences(GROUP, TEMPLATE_1 | {"targetSize": 2}, TEMPLATE_1).changed == []
    assert _differences(GROUP, TEMPLATE_1, TEMPLATE_1 | {"targetSize": 2}).changed == ["targetSize"]


def test_hidden_defaults_are_noted() -> None:
    provider = Gcp(Rest("http://127.0.0.1:9", "t"))
    inputs, _ = provider.check(f"gcp:compute/{NETWORK}", "logical", None, {"autoCreateSubnetworks": False}, bytes(32))
    assert "name" in inputs[DEFAULTS] and "autoCreateSubnetworks" not in inputs[DEFAULTS]

"""What the plugin refuses by itself, in a preview, and what it leaves to the API."""

from __future__ import annotations

from typing import Any

import pytest

from multinic.lab.pulumi.rest import Rest
from multinic.lab.pulumi.stand_in import Gcp
from multinic.lab.pulumi.values import UNKNOWN

NET: dict[str, Any] = {"network": "n", "sourceRanges": ["10.0.0.0/8"], "allows": [{"protocol": "tcp"}]}
TEMPLATE: dict[str, Any] = {"machineType": "e2-small", "disks": [{"boot": True}]}
GROUP: dict[str, Any] = {"baseInstanceName": "r", "zone": "z-a", "versions": [{"instanceTemplate": "t"}]}
ROUTE: dict[str, Any] = {"network": "n", "destRange": "10.0.0.0/8"}
POLICY: dict[str, Any] = {"type": "PROACTIVE", "minimalAction": "REPLACE"}
RULE: dict[str, Any] = {"region": "r-1"}

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("compute/network:Network", {"name": "Bad_Name"}, '"Bad_Name" doesn\'t match regexp'),
    ("compute/network:Network", {"name": "x" * 64}, "doesn't match regexp"),
    ("compute/network:Network", {"autoCreateSubnetworks": "perhaps"}, "expected true or false"),
    ("compute/network:Network", {"routingMode": "LOCAL"}, "expected to be one of"),
    ("compute/subnetwork:Subnetwork", {"network": "n", "region": "r", "ipCidrRange": "10.0.0.0/33"}, "valid CIDR"),
    ("compute/subnetwork:Subnetwork", {"region": "r"}, "Missing required argument 'network'"),
    ("compute/subnetwork:Subnetwork", {"network": "n"}, "Cannot determine region"),
    ("compute/firewall:Firewall", {"network": "n", "sourceRanges": ["0.0.0.0/0"]}, "exactly one of allows, denies"),
    ("compute/firewall:Firewall", {"network": "n", "allows": NET["allows"]}, "must be defined when direction is"),
    ("compute/firewall:Firewall", NET | {"sourceTags": ["a"], "targetServiceAccounts": ["b"]}, "conflicts with"),
    ("compute/firewall:Firewall", NET | {"priority": 65536}, "in the range (0 - 65535), got 65536"),
    ("compute/firewall:Firewall", NET | {"direction": "SIDEWAYS"}, "expected to be one of"),
    ("compute/route:Route", ROUTE, "exactly one of nextHopGateway"),
    ("compute/route:Route", ROUTE | {"nextHopIlb": "f", "nextHopIp": "10.0.0.1"}, "got nextHopIlb, nextHopIp"),
    ("compute/healthCheck:HealthCheck", {}, "exactly one of httpHealthCheck"),
    ("compute/healthCheck:HealthCheck", {"httpHealthCheck": {}, "tcpHealthCheck": {"port": 1}}, "exactly one of"),
    ("compute/instanceTemplate:InstanceTemplate", TEMPLATE | {"namePrefix": "x" * 55}, "longer than 54"),
    ("compute/instanceTemplate:InstanceTemplate", {"machineType": "e2-small"}, "Missing required argument 'disks'"),
    ("compute/instanceTemplate:InstanceTemplate", TEMPLATE | {"networkInterfaces": [{"nicType": "E1000"}]}, "one of"),
    (
        "compute/instanceTemplate:InstanceTemplate",
        TEMPLATE | {"networkPerformanceConfig": {"totalEgressBandwidthTier": "TIER_9"}},
        "expected to be one of",
    ),
    (
        "compute/instanceGroupManager:InstanceGroupManager",
        GROUP | {"updatePolicy": POLICY | {"maxSurgeFixed": 1, "maxSurgePercent": 10}},
        "conflicts with maxSurgeFixed",
    ),
    (
        "compute/instanceGroupManager:InstanceGroupManager",
        GROUP | {"autoHealingPolicies": {"healthCheck": "h", "initialDelaySec": 3601}},
        "in the range (0 - 3600)",
    ),
    (
        "compute/instanceGroupManager:InstanceGroupManager",
        GROUP | {"updatePolicy": POLICY | {"type": "EAGER"}},
        "expected to be one of",
    ),
    ("compute/regionBackendService:RegionBackendService", RULE | {"protocol": "QUIC"}, "expected to be one of"),
    ("compute/regionBackendService:RegionBackendService", RULE | {"sessionAffinity": "STICKY"}, "one of"),
    ("compute/regionBackendService:RegionBackendService", RULE | {"loadBalancingScheme": "INSIDE"}, "one of"),
    (
        "compute/regionBackendService:RegionBackendService",
        RULE | {"backends": [{"group": "g", "balancingMode": "EVEN"}]},
        "expected to be one of",
    ),
    ("compute/forwardingRule:ForwardingRule", RULE | {"ports": ["1", "2", "3", "4", "5", "6"]}, "at most 5"),
    ("serviceaccount/account:Account", {"accountId": "short"}, "doesn't match regexp"),
    ("serviceaccount/account:Account", {"accountId": "x" * 31}, "doesn't match regexp"),
    ("projects/iAMMember:IAMMember", {"project": "p", "role": "r", "member": "somebody"}, "has no type"),
]

PASSES: list[tuple[str, dict[str, Any]]] = [
    ("compute/network:Network", {"mtu": 100}),
    ("compute/subnetwork:Subnetwork", {"network": "n", "region": "r", "ipCidrRange": "10.0.0.5/24"}),
    ("compute/firewall:Firewall", NET | {"sourceRanges": ["10.0.0.0/33"]}),
    ("compute/firewall:Firewall", NET | {"allows": [{"protocol": "tcp", "ports": ["99999"]}]}),
    ("compute/address:Address", {"region": "r", "address": "10.0.0.999"}),
    ("compute/healthCheck:HealthCheck", {"httpHealthCheck": {"port": 99999}, "checkIntervalSec": 0, "timeoutSec": 9}),
    ("compute/regionBackendService:RegionBackendService", RULE | {"backends": [{"group": "g"}]}),
    ("compute/forwardingRule:ForwardingRule", RULE | {"allPorts": True, "ports": ["80"]}),
    (
        "compute/autoscaler:Autoscaler",
        {
            "zone": "z-a",
            "target": "g",
            "autoscalingPolicy": {"minReplicas": 4, "maxReplicas": 1, "mode": "MAYBE", "cpuUtilization": {"target": 7}},
        },
    ),
    ("compute/instanceGroupManager:InstanceGroupManager", GROUP | {"baseInstanceName": "X_Y"}),
    (
        "compute/instanceTemplate:InstanceTemplate",
        TEMPLATE | {"scheduling": {"provisioningModel": "SPOT", "automaticRestart": True}},
    ),
    (
        "compute/instanceTemplate:InstanceTemplate",
        TEMPLATE | {"metadata": {"startup-script": "a"}, "metadataStartupScript": "b", "labels": {"Bad Key": "x"}},
    ),
    # What a preview does not know yet is refused by nobody.
    ("compute/subnetwork:Subnetwork", {"network": UNKNOWN, "region": "r", "ipCidrRange": UNKNOWN}),
    ("compute/firewall:Firewall", NET | {"priority": UNKNOWN, "allows": UNKNOWN, "sourceRanges": [UNKNOWN]}),
    ("projects/iAMMember:IAMMember", {"project": "p", "role": "r", "member": UNKNOWN}),
]


def _check(token: str, inputs: dict[str, Any]) -> list[str]:
    provider = Gcp(Rest("http://127.0.0.1:9", "t"))
    return [problem.reason for problem in provider.check(f"gcp:{token}", "logical", None, inputs, bytes(32))[1]]


@pytest.mark.parametrize(("token", "inputs", "reason"), REFUSED, ids=lambda value: str(value)[:60])
def test_refused(token: str, inputs: dict[str, Any], reason: str) -> None:
    found = _check(token, inputs)
    assert len(found) == 1, found
    assert reason in found[0]


@pytest.mark.parametrize(("token", "inputs"), PASSES, ids=lambda value: str(value)[:60])
def test_left_to_the_api(token: str, inputs: dict[str, Any]) -> None:
    assert _check(token, inputs) == []


def test_a_logical_name_that_leaves_no_room_for_the_suffix_is_refused() -> None:
    provider = Gcp(Rest("http://127.0.0.1:9", "t"))
    token = "gcp:compute/network:Network"
    fits, none = provider.check(token, "n" * 55, None, {}, bytes(32))
    assert none == [] and fits["name"] == "n" * 55 + "-0000000"
    _, problems = provider.check(token, "n" * 56, None, {}, bytes(32))
    assert "at most 55 characters" in problems[0].reason

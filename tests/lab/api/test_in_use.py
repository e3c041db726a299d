"""What somebody uses cannot be deleted, and what has changed meanwhile cannot be overwritten: pair by pair.

Uses: the references of the discovery document's fields. Stale fingerprints: 412 ``conditionNotMet``, discovery document
compute.v1, for instance ``Subnetwork.fingerprint``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.lab.api.conftest import Door

Made = tuple[str, dict[str, Any]]
"""A collection, and the body of what is made in it."""
V1 = "/compute/v1/projects/lab"
REGION, ZONE = f"{V1}/regions/us-central1", f"{V1}/zones/us-central1-a"
IMAGE = "projects/debian-cloud/global/images/debian-12-bookworm-v20260101"
SUBNET = "regions/us-central1/subnetworks/s"
DISK: dict[str, Any] = {"boot": True, "autoDelete": True, "initializeParams": {"sourceImage": IMAGE}}
MACHINE = {"machineType": "e2-small", "disks": [DISK], "networkInterfaces": [{"subnetwork": SUBNET}]}
VM = {**MACHINE, "name": "vm", "machineType": "zones/us-central1-a/machineTypes/e2-small"}
CHECK = {"name": "hc", "type": "HTTP", "httpHealthCheck": {"port": 80}}
GROUP = {"name": "g", "targetSize": 0, "versions": [{"instanceTemplate": "global/instanceTemplates/t"}]}
SCALING = {"minNumReplicas": 0, "maxNumReplicas": 1, "cpuUtilization": {"utilizationTarget": 0.5}}
SERVICE = {
    "name": "bs",
    "loadBalancingScheme": "INTERNAL",
    "network": "global/networks/n",
    "healthChecks": ["global/healthChecks/hc"],
}
RULE = {
    "name": "fr",
    "loadBalancingScheme": "INTERNAL",
    "allPorts": True,
    "backendService": "regions/us-central1/backendServices/bs",
    "subnetwork": SUBNET,
}
ROUTE = {"name": "r", "network": "global/networks/n", "destRange": "10.9.0.0/16", "priority": 900}
FIREWALL = {"name": "fw", "network": "global/networks/n", "allowed": [{"IPProtocol": "tcp"}]}
NAT = {
    "name": "nat",
    "sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS",
    "subnetworks": [{"name": SUBNET, "sourceIpRangesToNat": ["ALL_IP_RANGES"]}],
}
ADDRESS = {"name": "a", "addressType": "INTERNAL", "subnetwork": SUBNET, "address": "10.0.0.9"}

PLACE = {
    "networks": f"{V1}/global",
    "firewalls": f"{V1}/global",
    "routes": f"{V1}/global",
    "healthChecks": f"{V1}/global",
    "instanceTemplates": f"{V1}/global",
    "instances": ZONE,
    "disks": ZONE,
    "instanceGroupManagers": ZONE,
    "autoscalers": ZONE,
}


def path(collection: str, name: str = "") -> str:
    return f"{PLACE.get(collection, REGION)}/{collection}" + (f"/{name}" if name else "")


NETWORK = ("networks", {"name": "n", "autoCreateSubnetworks": False})
SUBNETWORK = ("subnetworks", {"name": "s", "network": "global/networks/n", "ipCidrRange": "10.0.0.0/24"})
TEMPLATE = ("instanceTemplates", {"name": "t", "properties": MACHINE})
BALANCER = (NETWORK, SUBNETWORK, ("healthChecks", CHECK), ("backendServices", SERVICE))
POLICY = ("resourcePolicies", {"name": "rp", "groupPlacementPolicy": {"availabilityDomainCount": 2}})

# (what is made, in this order; the last of it uses …, …)
USES = [
    ((NETWORK, SUBNETWORK), "networks/n"),
    ((NETWORK, ("firewalls", FIREWALL)), "networks/n"),
    ((NETWORK, ("routers", {"name": "ro", "network": "global/networks/n"})), "networks/n"),
    ((NETWORK, ("routes", {**ROUTE, "nextHopGateway": "global/gateways/default-internet-gateway"})), "networks/n"),
    ((NETWORK, ("healthChecks", CHECK), ("backendServices", SERVICE)), "networks/n"),
    ((NETWORK, SUBNETWORK, ("addresses", ADDRESS)), "subnetworks/s"),
    (
        (NETWORK, SUBNETWORK, ("routers", {"name": "ro", "network": "global/networks/n", "nats": [NAT]})),
        "subnetworks/s",
    ),
    ((NETWORK, SUBNETWORK, TEMPLATE), "subnetworks/s"),
    ((NETWORK, SUBNETWORK, ("instances", VM)), "subnetworks/s"),
    ((NETWORK, SUBNETWORK, ("instances", VM)), "disks/vm"),
    (
        (
            NETWORK,
            SUBNETWORK,
            ("addresses", ADDRESS),
            ("instances", {**VM, "networkInterfaces": [{"subnetwork": SUBNET, "networkIP": "10.0.0.9"}]}),
        ),
        "addresses/a",
    ),
    (
        (
            NETWORK,
            SUBNETWORK,
            POLICY,
            ("instances", {**VM, "resourcePolicies": ["regions/us-central1/resourcePolicies/rp"]}),
        ),
        "resourcePolicies/rp",
    ),
    ((NETWORK, SUBNETWORK, TEMPLATE, ("instanceGroupManagers", GROUP)), "instanceTemplates/t"),
    (
        (
            NETWORK,
            SUBNETWORK,
            TEMPLATE,
            ("healthChecks", CHECK),
            (
                "instanceGroupManagers",
                {**GROUP, "autoHealingPolicies": [{"healthCheck": "global/healthChecks/hc", "initialDelaySec": 60}]},
            ),
        ),
        "healthChecks/hc",
    ),
    (
        (
            NETWORK,
            SUBNETWORK,
            TEMPLATE,
            ("instanceGroupManagers", GROUP),
            (
                "autoscalers",
                {
                    "name": "as",
                    "target": "zones/us-central1-a/instanceGroupManagers/g",
                    "autoscalingPolicy": SCALING,
                },
            ),
        ),
        "instanceGroupManagers/g",
    ),
    (
        (
            NETWORK,
            SUBNETWORK,
            TEMPLATE,
            ("instanceGroupManagers", GROUP),
            ("healthChecks", CHECK),
            ("backendServices", {**SERVICE, "backends": [{"group": "zones/us-central1-a/instanceGroups/g"}]}),
        ),
        "instanceGroupManagers/g",
    ),
    (BALANCER, "healthChecks/hc"),
    ((*BALANCER, ("forwardingRules", RULE)), "backendServices/bs"),
    ((*BALANCER, ("forwardingRules", RULE)), "subnetworks/s"),
    ((*BALANCER, ("addresses", ADDRESS), ("forwardingRules", {**RULE, "IPAddress": "10.0.0.9"})), "addresses/a"),
    (
        (
            *BALANCER,
            ("forwardingRules", RULE),
            ("routes", {**ROUTE, "nextHopIlb": "regions/us-central1/forwardingRules/fr"}),
        ),
        "forwardingRules/fr",
    ),
]


@pytest.mark.parametrize(("made", "used"), USES, ids=[f"{made[-1][0]} uses {used}" for made, used in USES])
def test_what_is_used_stays(door: Door, made: Sequence[Made], used: str) -> None:
    for collection, body in made:
        door.ok("POST", path(collection), body)
    target = path(*used.split("/"))
    code, reason, message = door.refused("DELETE", target)
    assert (code, reason) == (400, "resourceInUseByAnotherResource")
    assert made[-1][1]["name"] in message or "networks" in used
    door.ok("GET", target)
    # In the opposite order everything goes.
    for collection, body in reversed(made):
        door.ok("DELETE", path(collection, body["name"]))
    assert door.refused("GET", target)[0] == 404


STALE = "c3RhbGU="
# (what is made, how it is changed, the field that carries the fingerprint, the body of a change)
CHANGES = [
    ((NETWORK, SUBNETWORK), "PATCH", "", "fingerprint", {"logConfig": {"enable": True}}),
    (BALANCER, "PATCH", "", "fingerprint", {"sessionAffinity": "CLIENT_IP"}),
    (BALANCER, "PUT", "", "fingerprint", {**SERVICE, "sessionAffinity": "CLIENT_IP"}),
    ((*BALANCER, ("forwardingRules", RULE)), "PATCH", "", "fingerprint", {"allowGlobalAccess": True}),
    ((*BALANCER, ("forwardingRules", RULE)), "POST", "/setLabels", "labelFingerprint", {"labels": {"a": "b"}}),
    ((NETWORK, SUBNETWORK, ("addresses", ADDRESS)), "POST", "/setLabels", "labelFingerprint", {"labels": {"a": "b"}}),
    (
        (NETWORK, SUBNETWORK, TEMPLATE, ("instanceGroupManagers", GROUP)),
        "PATCH",
        "",
        "fingerprint",
        {"updatePolicy": {"type": "PROACTIVE"}},
    ),
    (
        (NETWORK, SUBNETWORK, ("instances", VM)),
        "POST",
        "/setMetadata",
        "metadata.fingerprint",
        {"items": [{"key": "k", "value": "v"}]},
    ),
    ((NETWORK, SUBNETWORK, ("instances", VM)), "POST", "/setTags", "tags.fingerprint", {"items": ["x"]}),
    ((NETWORK, SUBNETWORK, ("instances", VM)), "POST", "/setLabels", "labelFingerprint", {"labels": {"a": "b"}}),
]


@pytest.mark.parametrize(
    ("made", "verb", "action", "field", "body"), CHANGES, ids=[f"{c[1]} {c[0][-1][0]}{c[2]}" for c in CHANGES]
)
def test_a_stale_fingerprint_is_refused(
    door: Door, made: Sequence[Made], verb: str, action: str, field: str, body: dict[str, Any]
) -> None:
    for collection, one in made:
        door.ok("POST", path(collection, ""), one)
    target = path(made[-1][0], made[-1][1]["name"])
    given = field.rpartition(".")[2]
    owner = door.ok("GET", target)
    before = owner
    for part in field.split("."):
        owner = owner[part]
    assert door.refused(verb, target + action, {**body, given: STALE})[:2] == (412, "conditionNotMet")
    assert door.ok("GET", target) == before
    door.ok(verb, target + action, {**body, given: owner})
    # That change made the fingerprint stale; of two writers who read the same, the second is refused.
    assert door.refused(verb, target + action, {**body, given: owner})[:2] == (412, "conditionNotMet")


MISSING = [
    ("subnetworks", {**SUBNETWORK[1], "network": "global/networks/no"}, "networks/no"),
    ("firewalls", {**FIREWALL, "network": "global/networks/no"}, "networks/no"),
    ("routers", {"name": "ro", "network": "global/networks/no"}, "networks/no"),
    ("routers", {"name": "ro", "network": "global/networks/n", "nats": [NAT]}, "subnetwork"),
    ("addresses", ADDRESS, "subnetworks/s"),
    ("routes", {**ROUTE, "nextHopIlb": "regions/us-central1/forwardingRules/no"}, "forwardingRules/no"),
    ("routes", {**ROUTE, "network": "global/networks/no", "nextHopIlb": "10.0.0.9"}, "networks/no"),
    ("instanceTemplates", TEMPLATE[1], "subnetworks/s"),
    ("instances", VM, "subnetworks/s"),
    ("instances", {**VM, "machineType": "zones/us-central1-a/machineTypes/n9-huge"}, ""),
    ("instanceGroupManagers", GROUP, "instanceTemplate"),
    (
        "autoscalers",
        {"name": "as", "target": "zones/us-central1-a/instanceGroupManagers/no", "autoscalingPolicy": SCALING},
        "instanceGroupManagers/no",
    ),
    ("backendServices", {**SERVICE, "network": "global/networks/no"}, "no"),
    ("backendServices", SERVICE, "healthCheck"),
    ("forwardingRules", RULE, "backendServices/bs"),
]


@pytest.mark.parametrize(("collection", "body", "words"), MISSING, ids=[f"{c} {w}" for c, _, w in MISSING])
def test_a_missing_reference_is_named(door: Door, collection: str, body: dict[str, Any], words: str) -> None:
    door.ok("POST", path("networks"), NETWORK[1])
    code, reason, message = door.refused("POST", path(collection), body)
    assert (code, reason) in {(404, "notFound"), (400, "invalid")}
    assert words in message
    assert door.refused("GET", path(collection, body["name"]))[0] == 404


@pytest.mark.parametrize(
    ("collection", "body"),
    [NETWORK, SUBNETWORK, ("firewalls", FIREWALL), ("healthChecks", CHECK), ("addresses", ADDRESS), TEMPLATE],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_names(door: Door, collection: str, body: dict[str, Any]) -> None:
    door.ok("POST", path("networks"), NETWORK[1])
    if collection != "networks":
        door.ok("POST", path("subnetworks"), {**SUBNETWORK[1], "ipCidrRange": "10.0.0.0/25"})
    for bad in ("x" * 64, "1a", "A", "a_b", "a-", "-a", "a b", "ä"):
        code, reason, message = door.refused("POST", path(collection), {**body, "name": bad})
        assert (code, reason) == (400, "invalid"), bad
        assert "resource.name" in message
    assert door.refused("POST", path(collection), {**body, "name": ""})[:2] == (400, "required")
    longest = {**body, "name": "x" * 63}
    if collection == "subnetworks":
        longest["ipCidrRange"] = "10.7.0.0/24"
    door.ok("POST", path(collection), longest)
    assert door.refused("POST", path(collection), longest)[:2] == (409, "alreadyExists")


def numbered(count: int, text: str = "t{}") -> list[str]:
    return [text.format(index) for index in range(count)]


def ranges(*texts: str) -> list[dict[str, str]]:
    return [{"rangeName": f"r{index}", "ipCidrRange": text} for index, text in enumerate(texts)]


def disk_of(gigabytes: int) -> dict[str, Any]:
    return {"disks": [{**DISK, "initializeParams": {**DISK["initializeParams"], "diskSizeGb": str(gigabytes)}}]}


def properties(**more: Any) -> dict[str, Any]:
    return {"name": "x", "properties": {**MACHINE, **more}}


LIMITS = [
    (
        "instances",
        {**VM, "machineType": "zones/us-central1-b/machineTypes/e2-small"},
        "must be in 'zones/us-central1-a'",
    ),
    ("instanceTemplates", properties(**disk_of(9)), "between the image's 10 GB and 65536 GB"),
    ("instanceTemplates", properties(**disk_of(65_537)), "between the image's 10 GB and 65536 GB"),
    ("instanceTemplates", properties(tags={"items": numbered(65)}), "at most 64 network tags"),
    ("instanceTemplates", properties(labels=dict.fromkeys(numbered(65), "v")), "at most 64 labels"),
    ("instanceTemplates", properties(metadata={"items": [{"key": "k" * 129, "value": "v"}]}), "regex"),
    (
        "instanceTemplates",
        properties(metadata={"items": [{"key": key, "value": "x" * 200_000} for key in "abc"]}),
        "512 KiB",
    ),
    ("instanceGroupManagers", {**GROUP, "targetSize": 1001}, "between 0 and 1000"),
    ("instanceGroupManagers", {**GROUP, "baseInstanceName": "x" * 59}, "regex"),
    ("instanceGroupManagers", {**GROUP, "namedPorts": [{"name": "heal", "port": 65_536}]}, "1 to 65535"),
    ("instanceGroupManagers", {**GROUP, "namedPorts": [{"name": "Heal", "port": 80}]}, "of its form"),
    ("forwardingRules", {**RULE, "allPorts": False, "ports": numbered(6, "8{}")}, "At most 5 ports"),
    ("forwardingRules", {**RULE, "allPorts": False, "ports": ["0"]}, "from 1 to 65535"),
    ("firewalls", {**FIREWALL, "sourceRanges": numbered(5001, "10.0.0.0/24")}, "At most 5000"),
    ("firewalls", {**FIREWALL, "sourceTags": numbered(31)}, "At most 30"),
    ("firewalls", {**FIREWALL, "targetTags": numbered(71)}, "At most 70"),
    ("firewalls", {**FIREWALL, "targetServiceAccounts": numbered(11, "s{}@example.com")}, "At most 10"),
    ("firewalls", {**FIREWALL, "allowed": [{"IPProtocol": "9" * 5000}]}, "protocol number"),
    ("subnetworks", {"secondaryIpRanges": ranges(*numbered(171, "10.8.{}.0/24"))}, "At most 170"),
    ("subnetworks", {"secondaryIpRanges": ranges("10.7.0.0/25")}, "overlaps"),
    ("subnetworks", {"secondaryIpRanges": ranges("10.8.0.0/24", "10.8.0.0/25")}, "overlaps"),
    ("subnetworks", {"secondaryIpRanges": ranges("10.8.0.0/24") + ranges("10.9.0.0/24")}, "name of its own"),
]


@pytest.mark.parametrize(("collection", "body", "words"), LIMITS, ids=[f"{c} {w}" for c, _, w in LIMITS])
def test_exceeded_limits(door: Door, collection: str, body: dict[str, Any], words: str) -> None:
    for made, one in (*BALANCER, TEMPLATE):
        door.ok("POST", path(made), one)
    if collection == "subnetworks":
        body = {"name": "s2", "network": "global/networks/n", "ipCidrRange": "10.7.0.0/24", **body}
    code, reason, message = door.refused("POST", path(collection), body)
    assert (code, reason) == (400, "invalid")
    assert words in message
    assert door.refused("GET", path(collection, body["name"]))[0] == 404


def test_a_change_cannot_rename(door: Door) -> None:
    for made, one in BALANCER:
        door.ok("POST", path(made), one)
    for collection, name in (("networks", "n"), ("backendServices", "bs"), ("healthChecks", "hc")):
        code, reason, message = door.refused("PATCH", path(collection, name), {"name": "other"})
        assert (code, reason) == (400, "invalid")
        assert "resource.name" in message
        door.ok("PATCH", path(collection, name), {"name": name})
    code, reason, _ = door.refused("PUT", path("backendServices", "bs"), {**SERVICE, "name": "other"})
    assert (code, reason) == (400, "invalid")


def test_what_is_asked_of_a_packet_is_checked(door: Door) -> None:
    door.ok("POST", path("networks"), NETWORK[1])
    door.ok("POST", path("subnetworks"), SUBNETWORK[1])
    door.ok("POST", path("instances"), VM)
    for port in ("9" * 5000, "\u00b2", "x"):
        query = {"source": "10.0.0.2", "destination": "10.0.0.3", "port": port}
        assert door.send("GET", "/lab/v1/packet", params=query).status_code < 500

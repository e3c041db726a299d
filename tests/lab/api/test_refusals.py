"""What the API refuses, in Google's form: code, reason and words."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.lab.api.bodies import (
    IMAGE,
    REGION,
    V1,
    ZONE,
    check,
    firewall,
    furnish,
    group,
    properties,
    route,
    rule,
    scaler,
    service,
    template,
)
from tests.lab.api.conftest import Door


def without(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != name}


@pytest.fixture
def furnished(door: Door) -> Door:
    return furnish(door)


INVALID = [
    ("networks", {"name": "n", "autoCreateSubnetworks": False, "mtu": 100}, "between 1300 and 8896"),
    ("networks", {"name": "n", "autoCreateSubnetworks": False, "mtu": 9999}, "between 1300 and 8896"),
    ("networks", {"name": "n", "autoCreateSubnetworks": False, "mtu": "many"}, "TYPE_INT32"),
    ("networks", {"name": "Bad_Name", "autoCreateSubnetworks": False}, "Must be a match of regex"),
    ("networks", {"name": "n", "autoCreateSubnetworks": "no"}, "TYPE_BOOL"),
    ("networks", {"name": "n"}, "Legacy networks"),
    (
        "networks",
        {"name": "n", "autoCreateSubnetworks": False, "routingConfig": {"routingMode": "LOCAL"}},
        "not a possible value",
    ),
    ("subnetworks", {"name": "s", "network": "global/networks/a", "ipCidrRange": "10.5.0.1/24"}, "host bits"),
    ("subnetworks", {"name": "s", "network": "global/networks/a", "ipCidrRange": "10.0.0.128/25"}, "conflicts with"),
    ("subnetworks", {"name": "s", "network": "global/networks/a", "ipCidrRange": "10.5.0.0/30"}, "between 4 and 29"),
    ("subnetworks", {"name": "s", "network": "global/networks/a", "ipCidrRange": "169.254.0.0/24"}, "keeps for itself"),
    ("subnetworks", {"name": "s", "network": "global/networks/a", "ipCidrRange": "10.8.0.0/16"}, "existing route"),
    ("subnetworks", {"name": "s", "network": "a/b/c", "ipCidrRange": "10.5.0.0/24"}, "malformed"),
    ("firewalls", without(firewall(), "allowed"), "Exactly one of"),
    ("firewalls", firewall(denied=[{"IPProtocol": "udp"}]), "Exactly one of"),
    ("firewalls", firewall(allowed=[{"IPProtocol": "tcp", "ports": ["99999"]}]), "0 to 65535"),
    ("firewalls", firewall(allowed=[{"IPProtocol": "tcpp"}]), "IPProtocol must be"),
    ("firewalls", firewall(allowed=[{"IPProtocol": "icmp", "ports": ["8"]}]), "tcp, udp and sctp"),
    ("firewalls", firewall(sourceRanges=["10.0.0.0/33"]), "CIDR"),
    ("firewalls", firewall(priority=70000), "between 0 and 65535"),
    ("firewalls", firewall(targetTags=["t"], sourceServiceAccounts=["a@b"]), "Tags and service accounts"),
    ("routes", route(destRange="10.9.0.1/16"), "host bits"),
    ("routes", route(destRange="10.0.0.0/24"), "range of the subnetwork"),
    ("routes", route(destRange="10.0.0.128/25"), "range of the subnetwork"),
    ("routes", without(route(), "nextHopIlb"), "Exactly one next hop"),
    ("routes", route(nextHopGateway="global/gateways/default-internet-gateway"), "Exactly one next hop"),
    ("routes", route(network="global/networks/b"), "must be in the route's network"),
    ("routes", route(destRange="10.8.0.0/16"), "same destination and priority"),
    ("routes", route(nextHopIlb="10.0.0.77"), "No internal forwarding rule"),
    ("addresses", {"name": "x", "addressType": "INTERNAL", "subnetwork": "sub-a", "address": "10.7.0.9"}, "outside"),
    (
        "addresses",
        {"name": "x", "addressType": "INTERNAL", "subnetwork": "sub-a", "address": "10.0.0.999"},
        "malformed",
    ),
    ("addresses", {"name": "x", "addressType": "INTERNAL", "subnetwork": "sub-a", "address": "10.0.0.1"}, "reserved"),
    ("addresses", {"name": "x", "addressType": "INTERNAL", "subnetwork": "sub-a", "purpose": "VPC_PEERING"}, "one of"),
    ("healthChecks", check(checkIntervalSec=5, timeoutSec=6), "greater than the check interval"),
    ("healthChecks", check(checkIntervalSec=0), "between 1 and 300"),
    ("healthChecks", check(httpHealthCheck={"port": 99999}), "between 1 and 65535"),
    ("healthChecks", check(type="TCP"), "Only 'tcpHealthCheck'"),
    ("healthChecks", check(httpHealthCheck={"requestPath": "status.json"}), "begin with '/'"),
    ("instanceTemplates", template(disks=[{"initializeParams": {"sourceImage": IMAGE}}]), "boot disk"),
    ("instanceTemplates", template(machineType="n2-tiny-3"), "cannot be found"),
    ("instanceTemplates", template(networkInterfaces=[properties()["networkInterfaces"][0]] * 2), "same network"),
    (
        "instanceTemplates",
        template(networkPerformanceConfig={"totalEgressBandwidthTier": "TIER_1"}),
        "not available for machine type",
    ),
    ("instanceTemplates", template(scheduling={"provisioningModel": "SPOT", "automaticRestart": True}), "Spot"),
    (
        "instanceTemplates",
        template(
            metadata={"items": [{"key": "startup-script", "value": "1"}, {"key": "startup-script", "value": "2"}]}
        ),
        "duplicate key",
    ),
    ("instanceTemplates", template(metadata={"items": [{"key": "a b", "value": "1"}]}), "regex"),
    ("instanceTemplates", template(metadata={"items": [{"key": "a", "value": "x" * 262_145}]}), "262144"),
    ("instanceTemplates", template(labels={"Bad": "1"}), "Label keys"),
    ("instanceTemplates", template(labels={"a": "UPPER"}), "Label values"),
    ("instanceTemplates", template(tags={"items": ["Not-a-tag"]}), "regex"),
    ("instanceGroupManagers", group(baseInstanceName="X_Y"), "regex"),
    (
        "instanceGroupManagers",
        group(updatePolicy={"replacementMethod": "RECREATE", "maxSurge": {"fixed": 1}}),
        "RECREATE needs",
    ),
    (
        "instanceGroupManagers",
        group(updatePolicy={"maxSurge": {"fixed": 0}, "maxUnavailable": {"fixed": 0}}),
        "cannot both be 0",
    ),
    ("instanceGroupManagers", group(updatePolicy={"maxSurge": {"percent": 20}}), "at least 10"),
    (
        "instanceGroupManagers",
        group(autoHealingPolicies=[{"healthCheck": "global/healthChecks/c", "initialDelaySec": 3601}]),
        "0 to 3600",
    ),
    ("instanceGroupManagers", group(versions=[{"instanceTemplate": "global/networks/a"}]), "collection"),
    ("instanceGroupManagers", group(versions=[{"instanceTemplate": "global/instanceTemplates/no"}]), "cannot be found"),
    ("autoscalers", scaler(minNumReplicas=3), "not be smaller"),
    ("autoscalers", scaler(cpuUtilization={"utilizationTarget": 7}), "above 0"),
    ("autoscalers", scaler(mode="SOMETIMES"), "not a possible value"),
    ("autoscalers", scaler(scalingSchedules={"d": {"schedule": "0 8 * * *", "durationSec": 60}}), "300 seconds"),
    ("backendServices", service(backends=[{**service()["backends"][0], "balancingMode": "UTILIZATION"}]), "CONNECTION"),
    ("backendServices", service(backends=[{**service()["backends"][0], "maxConnections": 5}]), "Capacity settings"),
    ("backendServices", service(backends=service()["backends"] * 2), "more than once"),
    ("backendServices", service(healthChecks=[]), "Exactly one health check"),
    ("backendServices", service(sessionAffinity="GENERATED_COOKIE"), "Must be one of"),
    ("backendServices", service(failoverPolicy={"failoverRatio": 0.5}), "failover true"),
    (
        "backendServices",
        service(
            connectionTrackingPolicy={
                "connectionPersistenceOnUnhealthyBackends": "ALWAYS_PERSIST",
                "trackingMode": "PER_SESSION",
            }
        ),
        "PER_CONNECTION only",
    ),
    ("backendServices", service(connectionDraining={"drainingTimeoutSec": 4000}), "between 0 and 3600"),
    ("forwardingRules", rule(ports=["80"]), "Exactly one of"),
    ("forwardingRules", rule(IPProtocol="L3_DEFAULT"), "does not fit"),
    ("forwardingRules", rule(network="global/networks/b"), "not in network"),
    ("forwardingRules", rule(IPAddress="10.0.0.2"), "already being used"),
    ("forwardingRules", rule(subnetwork="regions/us-central1/subnetworks/sub-b"), "must be the backend service's"),
]
PLACES = {
    "networks": f"{V1}/global",
    "firewalls": f"{V1}/global",
    "routes": f"{V1}/global",
    "healthChecks": f"{V1}/global",
    "instanceTemplates": f"{V1}/global",
    "instanceGroupManagers": ZONE,
    "autoscalers": ZONE,
}


@pytest.mark.parametrize(("collection", "body", "words"), INVALID, ids=lambda v: v if isinstance(v, str) else "")
def test_invalid(furnished: Door, collection: str, body: dict[str, Any], words: str) -> None:
    path = f"{PLACES.get(collection, REGION)}/{collection}"
    before = {key: copy.deepcopy(value) for key, value in furnished.cloud.store._objects.items()}
    code, reason, message = furnished.refused("POST", path, body)
    assert code == 400
    assert reason in ("invalid", "required", "badRequest", "resourceInUseByAnotherResource"), message
    assert words in message
    assert furnished.cloud.store._objects == before, "nothing has changed"


@pytest.mark.parametrize(
    ("verb", "path", "user"),
    [
        ("DELETE", f"{V1}/global/networks/a", "subnetworks/sub-a"),
        ("DELETE", f"{REGION}/subnetworks/sub-b", "instanceTemplates/t1"),
        ("DELETE", f"{V1}/global/healthChecks/c", "backendServices/bs-a"),
        ("DELETE", f"{V1}/global/instanceTemplates/t1", "instanceGroupManagers/fleet"),
        ("DELETE", f"{ZONE}/instanceGroupManagers/fleet", "backendServices/bs-a"),
        ("DELETE", f"{REGION}/backendServices/bs-a", "forwardingRules/fr-a"),
        ("DELETE", f"{REGION}/forwardingRules/fr-a", "routes/to-b"),
    ],
)
def test_in_use(furnished: Door, verb: str, path: str, user: str) -> None:
    code, reason, message = furnished.refused(verb, path)
    assert (code, reason) == (400, "resourceInUseByAnotherResource")
    assert "is already being used by" in message
    if "networks/a" not in path:
        assert user in message
    furnished.ok("GET", path)


@pytest.mark.parametrize(
    ("verb", "path", "body", "code", "reason"),
    [
        ("GET", f"{V1}/global/networks/no", None, 404, "notFound"),
        ("DELETE", f"{V1}/global/networks/no", None, 404, "notFound"),
        ("GET", "/compute/v1/projects/other/global/networks/a", None, 404, "notFound"),
        ("GET", "/compute/alpha/projects/lab/global/networks", None, 404, "notFound"),
        ("GET", "/compute/v1/nothing", None, 404, "notFound"),
        ("PUT", f"{V1}/global/networks", {}, 405, "httpMethodNotAllowed"),
        ("GET", f"{V1}/zones/mars-a/instances", None, 400, "invalid"),
        ("POST", f"{V1}/global/networks", {"name": "a", "autoCreateSubnetworks": False}, 409, "alreadyExists"),
        ("POST", f"{V1}/global/networks", [], 400, "invalid"),
        ("POST", f"{V1}/global/routes", without(route(), "priority"), 400, "required"),
        ("POST", f"{V1}/global/firewalls", firewall(network="global/networks/no"), 404, "notFound"),
        ("POST", f"{REGION}/forwardingRules", rule(loadBalancingScheme="EXTERNAL"), 501, "notImplemented"),
        (
            "POST",
            f"{V1}/global/routes",
            {**without(route(), "nextHopIlb"), "nextHopIp": "1.2.3.4"},
            501,
            "notImplemented",
        ),
        ("POST", f"{ZONE}/instanceGroupManagers/fleet/resize", None, 400, "required"),
        ("POST", f"{ZONE}/instanceGroupManagers", group(targetPools=["targetPools/x"]), 501, "notImplemented"),
        (
            "POST",
            f"{ZONE}/instanceGroupManagers",
            group(statefulPolicy={"preservedState": {"internalIPs": {"nic0": {"autoDelete": "NEVER"}}}}),
            501,
            "notImplemented",
        ),
        (
            "POST",
            f"{ZONE}/instanceGroupManagers",
            group(versions=[{"instanceTemplate": "global/instanceTemplates/t1"}] * 2),
            501,
            "notImplemented",
        ),
        (
            "POST",
            f"{ZONE}/instances?sourceInstanceTemplate=global/instanceTemplates/t1",
            {"name": "vm"},
            501,
            "notImplemented",
        ),
        ("POST", f"{ZONE}/instanceGroupManagers/fleet/resize?size=x", None, 400, "invalidParameter"),
        ("POST", f"{ZONE}/instanceGroupManagers/fleet/resize?size=-1", None, 400, "invalid"),
        ("GET", f"{V1}/global/networks?filter=((", None, 400, "invalid"),
        ("GET", f"{V1}/global/networks?maxResults=900", None, 400, "invalid"),
        ("GET", f"{V1}/global/networks?pageToken=zzz", None, 400, "invalid"),
        ("GET", f"{V1}/global/networks?orderBy=size", None, 400, "invalid"),
        ("GET", f"{V1}/global/networks?fields=items(", None, 400, "invalidParameter"),
        ("GET", f"{V1}/global/operations/no", None, 404, "notFound"),
        ("PATCH", f"{V1}/global/networks/a", {"autoCreateSubnetworks": True}, 400, "invalid"),
        ("PATCH", f"{REGION}/subnetworks/sub-a", {"fingerprint": "b2xkCg=="}, 412, "conditionNotMet"),
        (
            "POST",
            f"{REGION}/forwardingRules/fr-a/setLabels",
            {"labelFingerprint": "b2xkCg==", "labels": {}},
            412,
            "conditionNotMet",
        ),
    ],
)
def test_codes_and_reasons(furnished: Door, verb: str, path: str, body: dict[str, Any], code: int, reason: str) -> None:
    assert furnished.refused(verb, path, body)[:2] == (code, reason)


def test_stale_group_fingerprint(furnished: Door) -> None:
    path = f"{ZONE}/instanceGroupManagers/fleet"
    stale = furnished.ok("GET", path)["fingerprint"]
    body = {"fingerprint": stale, "updatePolicy": {"type": "PROACTIVE"}}
    furnished.ok("PATCH", path, body)
    assert furnished.refused("PATCH", path, body)[:2] == (412, "conditionNotMet")
    # What the group does by itself does not make a fingerprint stale.
    fresh = furnished.ok("GET", path)["fingerprint"]
    furnished.ok("PATCH", path, {"fingerprint": fresh, "updatePolicy": {"minReadySec": 5}})


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/iam/v1/projects/lab/serviceAccounts", {"accountId": "abc"}, "INVALID_ARGUMENT"),
        ("/iam/v1/projects/lab/serviceAccounts", {"accountId": "Upper-case"}, "INVALID_ARGUMENT"),
        ("/crm/v1/projects/lab:setIamPolicy", {"policy": {"etag": "c3RhbGU="}}, "ALREADY_EXISTS"),
        (
            "/crm/v1/projects/lab:setIamPolicy",
            {"policy": {"bindings": [{"role": "owner", "members": ["user:x"]}]}},
            "INVALID_ARGUMENT",
        ),
        (
            "/crm/v1/projects/lab:setIamPolicy",
            {"policy": {"bindings": [{"role": "roles/x", "members": ["x"]}]}},
            "INVALID_ARGUMENT",
        ),
    ],
)
def test_iam(door: Door, path: str, body: dict[str, Any], status: str) -> None:
    assert door.refused("POST", path, body)[1] == status


def test_unknown_fields_are_ignored_unless_strict(door: Door, strict_door: Door) -> None:
    body = {"name": "n", "autoCreateSubnetworks": False, "colour": "blue"}
    door.ok("POST", f"{V1}/global/networks", body)
    assert "colour" not in door.ok("GET", f"{V1}/global/networks/n")
    code, _, message = strict_door.refused("POST", f"{V1}/global/networks", body)
    assert code == 400
    assert 'Unknown name "colour"' in message
    # What the plugin sends is right, though no document has it.
    routing = {"routingMode": "REGIONAL", "deleteBgpAlwaysCompareMed": False}
    strict_door.ok(
        "POST", f"{V1}/global/networks", {"name": "n", "autoCreateSubnetworks": False, "routingConfig": routing}
    )


def test_not_json(door: Door) -> None:
    response = door.send("POST", f"{V1}/global/networks", content=b"{not json")
    assert response.status_code == 400
    assert response.json()["error"]["errors"][0]["reason"] == "parseError"


def test_without_the_token(door: Door) -> None:
    for headers in ({"Authorization": ""}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic x"}):
        response = door.send("GET", f"{V1}/global/networks", headers=headers)
        assert response.status_code == 401
        assert response.json()["error"]["status"] == "UNAUTHENTICATED"

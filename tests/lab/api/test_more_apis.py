"""Routers, placement policies, logging, service usage, the lab's own calls."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.api.conftest import Door

V1 = "/compute/beta/projects/lab"
REGION = f"{V1}/regions/us-central1"


def test_router_with_nat(door: Door) -> None:
    door.ok("POST", f"{V1}/global/networks", {"name": "a", "autoCreateSubnetworks": False})
    door.ok("POST", f"{REGION}/routers", {"name": "nat", "network": "global/networks/a", "bgp": None})
    nat: dict[str, Any] = {
        "name": "all",
        "natIpAllocateOption": "AUTO_ONLY",
        "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
        "initialNatIps": [],
        "natIps": [],
        "logConfig": None,
        "type": "PUBLIC",
    }
    door.ok("PATCH", f"{REGION}/routers/nat", {"nats": [nat]})
    (got,) = door.ok("GET", f"{REGION}/routers/nat")["nats"]
    assert got["name"] == "all"
    assert door.refused("PATCH", f"{REGION}/routers/nat", {"nats": [nat, nat]})[:2] == (400, "invalid")
    assert door.refused("DELETE", f"{V1}/global/networks/a")[1] == "resourceInUseByAnotherResource"
    door.ok("PATCH", f"{REGION}/routers/nat", {"nats": []})
    assert "nats" not in door.ok("GET", f"{REGION}/routers/nat")
    door.ok("DELETE", f"{REGION}/routers/nat")
    door.ok("DELETE", f"{V1}/global/networks/a")


def test_shared_vpc(door: Door) -> None:
    attach = {"xpnResource": {"id": "service-one", "type": "PROJECT"}}
    code, reason, message = door.refused("POST", f"{V1}/enableXpnResource", attach)
    assert (code, reason) == (400, "invalidResourceUsage")
    assert "not a shared VPC host project" in message
    for _ in range(2):
        door.ok("POST", f"{V1}/enableXpnHost")
        door.ok("POST", f"{V1}/enableXpnResource", attach)
    assert door.ok("GET", V1)["xpnProjectStatus"] == "HOST"
    assert door.ok("GET", f"{V1}/getXpnResources")["resources"] == [attach["xpnResource"]]
    # What the provider reads to find out whether a service project is attached.
    assert door.ok("GET", "/compute/beta/projects/service-one/getXpnHost")["name"] == "lab"
    assert "name" not in door.ok("GET", f"{V1}/getXpnHost")
    assert door.refused("GET", "/compute/beta/projects/service-two/getXpnHost")[0] == 404
    assert door.refused("GET", "/compute/beta/projects/service-one/global/networks")[0] == 404
    assert door.refused("POST", f"{V1}/disableXpnHost")[1] == "resourceInUseByAnotherResource"
    for bad in ({"id": "lab"}, {"id": "No Such"}, {}):
        assert door.refused("POST", f"{V1}/enableXpnResource", {"xpnResource": bad})[0] == 400
    door.ok("POST", f"{V1}/disableXpnResource", attach)
    assert door.refused("POST", f"{V1}/disableXpnResource", attach)[:2] == (400, "invalid")
    door.ok("POST", f"{V1}/disableXpnHost")
    assert door.ok("GET", V1)["xpnProjectStatus"] == "UNSPECIFIED_XPN_PROJECT_STATUS"


def test_placement_policy(door: Door) -> None:
    body = {
        "name": "spread",
        "groupPlacementPolicy": {"availabilityDomainCount": 2},
        "diskConsistencyGroupPolicy": None,
    }
    door.ok("POST", f"{REGION}/resourcePolicies", body)
    assert door.ok("GET", f"{REGION}/resourcePolicies/spread")["groupPlacementPolicy"] == body["groupPlacementPolicy"]
    assert door.refused("POST", f"{REGION}/resourcePolicies", {"name": "x"})[:2] == (400, "required")
    door.ok("DELETE", f"{REGION}/resourcePolicies/spread")


def test_log_entries(door: Door) -> None:
    write = {
        "logName": "projects/lab/logs/multinic",
        "resource": {"type": "gce_instance", "labels": {"instance_id": "7"}},
        "entries": [
            {"severity": "INFO", "jsonPayload": {"message": "drained", "nic": 0}, "timestamp": "2026-01-01T00:00:00Z"},
            {"severity": "ERROR", "jsonPayload": {"message": "repair failed"}, "timestamp": "2026-01-01T00:00:01Z"},
        ],
    }
    door.ok("POST", "/logging/v2/entries:write", write)

    def found(text: str, **more: str) -> list[str]:
        body = {"resourceNames": ["projects/lab"], "filter": text, **more}
        return [
            e["jsonPayload"]["message"] for e in door.ok("POST", "/logging/v2/entries:list", body).get("entries", [])
        ]

    assert found("") == ["drained", "repair failed"]
    assert found("", orderBy="timestamp desc") == ["repair failed", "drained"]
    assert found("severity>=WARNING") == ["repair failed"]
    assert found('logName="projects/lab/logs/multinic" AND jsonPayload.nic=0') == ["drained"]
    assert found('timestamp>"2026-01-01T00:00:00Z"') == ["repair failed"]
    assert found('resource.labels.instance_id="8"') == []
    code, status, _ = door.refused("POST", "/logging/v2/entries:list", {"resourceNames": ["projects/other"]})
    assert (code, status) == (403, "PERMISSION_DENIED")
    assert door.refused("POST", "/logging/v2/entries:write", {"entries": [{"logName": "x"}]})[0] == 400


def test_service_usage(door: Door) -> None:
    path = "/serviceusage/v1/projects/lab/services"
    names = [service["config"]["name"] for service in door.ok("GET", f"{path}?filter=state:ENABLED")["services"]]
    assert "compute.googleapis.com" in names
    assert door.ok("POST", f"{path}/compute.googleapis.com:enable", {})["done"]
    code, _, message = door.refused("POST", f"{path}/container.googleapis.com:enable", {})
    assert code == 501
    assert "container.googleapis.com" in message


def test_the_default_service_account_is_there(door: Door) -> None:
    """Google's provider looks it up: in the project first, then in IAM."""
    email = door.ok("GET", "/compute/v1/projects/lab")["defaultServiceAccount"]
    found = door.ok("GET", f"/iam/v1/projects/lab/serviceAccounts/{email}")
    assert (found["email"], found["displayName"]) == (email, "Compute Engine default service account")


def test_zones_are_found_by_their_region_in_any_base_path(door: Door) -> None:
    for base in ("http://127.0.0.1:8470/compute/beta", "https://compute.googleapis.com/compute/v1"):
        path = f"/compute/v1/projects/lab/zones?filter=(region eq {base}/projects/lab/regions/us-west1) (status eq UP)"
        assert [zone["name"][-1] for zone in door.ok("GET", path)["items"]] == ["a", "b", "c"]


def test_fields_and_filters(door: Door) -> None:
    for name in ("one", "two"):
        door.ok("POST", f"{V1}/global/networks", {"name": name, "autoCreateSubnetworks": False})
    path = f"{V1}/global/networks"
    assert door.ok("GET", f"{path}?fields=items(name,routingConfig/routingMode)") == {
        "items": [{"name": n, "routingConfig": {"routingMode": "REGIONAL"}} for n in ("one", "two")]
    }
    assert door.ok("GET", f"{path}?fields=items/name&filter=name eq t.*") == {"items": [{"name": "two"}]}
    assert door.ok("GET", f"{path}?fields=items/name&filter=name != one") == {"items": [{"name": "two"}]}
    # What the provider asks before it deletes the default routes of a new network.
    link = door.ok("GET", f"{path}/one")["selfLink"]
    query = f'(network="{link}") AND (destRange="0.0.0.0/0")'
    (route,) = door.ok("GET", f"{V1}/global/routes?filter={query}")["items"]
    assert route["nextHopGateway"].endswith("default-internet-gateway")
    door.ok("DELETE", f"{V1}/global/routes/{route['name']}")


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("", "abc"),
        ("labels.env = prod", "a"),
        ("labels.env:*", "ab"),
        ("-labels.env:*", "c"),
        ("NOT labels.env = prod", "bc"),
        ("(size > 1) AND (size < 3)", "b"),
        ("size>=2", "bc"),
        ("name = a OR name = c", "ac"),
        ('name = "b"', "b"),
        ("name eq '[ab]'", "ab"),
        ("name ne a", "bc"),
        ("zone:central", "a"),
        ("name != a name != b", "c"),
        ("on = true", "a"),
        ("tags.items = x", "a"),
    ],
)
def test_filter_expressions(expression: str, names: str) -> None:
    from multinic.lab.api.filters import parse

    items: list[dict[str, Any]] = [
        {
            "name": "a",
            "labels": {"env": "prod"},
            "size": 1,
            "zone": "us-central1-a",
            "on": True,
            "tags": {"items": ["x"]},
        },
        {"name": "b", "labels": {"env": "test"}, "size": 2, "on": False},
        {"name": "c", "size": 3},
    ]
    test = parse(expression)
    assert "".join(item["name"] for item in items if test(item)) == names


def test_the_labs_own_calls(door: Door) -> None:
    events = door.send("GET", "/lab/v1/events").json()
    last = max((event["number"] for event in events.get("events", [])), default=0)
    door.ok("POST", f"{V1}/global/networks", {"name": "a", "autoCreateSubnetworks": True})
    image = "projects/debian-cloud/global/images/family/debian-12"
    body = {
        "name": "vm",
        "machineType": "zones/us-central1-a/machineTypes/e2-small",
        "disks": [{"boot": True, "initializeParams": {"sourceImage": image}}],
        "networkInterfaces": [{"network": "global/networks/a"}],
    }
    door.ok("POST", f"{V1}/zones/us-central1-a/instances", body)
    machine = "projects/lab/zones/us-central1-a/instances/vm"
    found = door.send("GET", f"/lab/v1/events?after={last}").json()["events"]
    whats = [event["detail"]["what"] for event in found if event["kind"] == "machine"]
    assert whats == ["starting", "running"]
    for action in ("freeze", "thaw", "panic", "cutPower"):
        assert door.send("POST", f"/lab/v1/machines/{machine}:{action}").status_code == 200
    assert door.send("POST", f"/lab/v1/machines/{machine}:fly").status_code == 404
    assert door.send("POST", f"/lab/v1/machines/{machine}x:panic").status_code == 404
    way = door.send("GET", "/lab/v1/packet?source=10.128.0.2&destination=10.132.0.9").json()
    assert way["delivered"] is False
    assert door.send("GET", "/lab/v1/packet?source=10.128.0.2").status_code == 400
    door.ok("POST", f"{V1}/zones/us-central1-a/instances/vm/stop")
    assert door.send("POST", f"/lab/v1/machines/{machine}:panic").status_code == 400

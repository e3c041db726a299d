"""`multinic doctor`: what Google Cloud answers where something is missing, and that each is found, with its cure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from multinic.operate import project

from .between import Between
from .conftest import Command, Ground

OFF = (
    "Compute Engine API has not been used in project lab before or it is disabled. Enable it by visiting "
    "https://console.developers.google.com/apis/api/compute.googleapis.com/overview?project=lab then retry. If you "
    "enabled this API recently, wait a few minutes for the action to propagate to our systems and retry."
)
SERVICES = "^GET /serviceusage/v1/projects/lab/services/"
REGION = "^GET /compute/v1/projects/lab/regions/us-central1([?]|$)"
EFFECTIVE = "^GET .*/global/networks/{}[^/]*/getEffectiveFirewalls"


Rule = tuple[str, int, object]
"""A request, and the status and body of its answer."""


@pytest.fixture
def doctor(google: Between, multinic: Command) -> Callable[..., dict[str, Any]]:
    """Its findings by name, after a request was answered so."""

    def look(*rules: Rule, code: int = 5) -> dict[str, Any]:
        google.forget()
        for rule in rules:
            google.answer(*rule)
        return {one["what"]: one for one in multinic.json("doctor", code=code)}

    return look


def region(**quotas: tuple[int, int]) -> Rule:
    found = [{"metric": name, "usage": usage, "limit": limit} for name, (usage, limit) in quotas.items()]
    return REGION, 200, {"kind": "compute#region", "name": "us-central1", "quotas": found}


def test_apis_and_permissions(doctor: Callable[..., dict[str, Any]]) -> None:
    disabled = {"name": "projects/1/services/logging.googleapis.com", "state": "DISABLED"}
    granted = [one for one in project.PERMISSIONS if one not in ("compute.routes.create", "logging.logEntries.list")]
    found = doctor(
        (SERVICES + "logging", 200, disabled),
        (SERVICES + "iam", 403, OFF.replace("Compute Engine", "Service Usage").replace("compute.", "serviceusage.")),
        (":testIamPermissions", 200, {"permissions": granted}),
    )
    one = found["API logging.googleapis.com"]
    assert (one["state"], one["cure"]) == ("missing", "gcloud services enable logging.googleapis.com --project lab")
    assert found["API iam.googleapis.com"]["state"] == "unknown"
    assert "enable serviceusage.googleapis.com --project lab" in found["API iam.googleapis.com"]["cure"]
    assert found["API compute.googleapis.com"]["state"] == "ok"
    for name, command in (("compute.routes.create", "withdraw"), ("logging.logEntries.list", "logs")):
        one = found[f"permission {name}"]
        assert one["state"] == "missing" and command in one["detail"] and "grant a role" in one["cure"]
    assert sum(name.startswith("permission ") for name in found) == 2
    # Not even that may be asked: the rest is looked at all the same.
    found = doctor((":testIamPermissions", 403, "The caller does not have permission"), code=0)
    assert found["permissions"]["state"] == "unknown" and found["image debian-12-bookworm-v20260921"]["state"] == "ok"


def test_quotas(doctor: Callable[..., dict[str, Any]]) -> None:
    found = doctor(region(N2_CPUS=(95, 100), CPUS=(0, 72), SSD_TOTAL_GB=(500, 500), SNAPSHOTS=(9, 9)))
    assert (found["quota N2_CPUS"]["state"], found["quota N2_CPUS"]["detail"]) == ("warning", "95 of 100 used")
    assert found["quota SSD_TOTAL_GB"]["state"] == "missing" and "IAM → Quotas" in found["quota SSD_TOTAL_GB"]["cure"]
    assert "quota SNAPSHOTS" not in found, "no router needs one"
    # Three zones may grow from 1 to 4 VMs of 4 vCPUs each.
    grow = found["room to grow"]
    assert grow["state"] == "warning" and "9 more n2-highcpu-4 need 36 vCPUs, 5 of quota N2_CPUS" in grow["detail"]
    assert "ask for N2_CPUS ≥ 131 in us-central1" in grow["cure"]
    found = doctor(region(N2_CPUS=(10, 100)), code=0)
    assert found["quotas"]["state"] == found["room to grow"]["state"] == "ok"
    assert "36 vCPUs of 90 left in N2_CPUS" in found["room to grow"]["detail"]


def test_what_may_not_be_read_keeps_nobody_from_the_rest(doctor: Callable[..., dict[str, Any]]) -> None:
    forbidden = "Required 'compute.regions.get' permission for 'projects/lab/regions/us-central1'"
    found = doctor((REGION, 403, forbidden), ("/global/images/", 404, "The resource was not found"))
    for what in ("quotas", "room to grow"):
        assert found[what]["state"] == "unknown" and "compute.regions.get" in found[what]["detail"]
    image = found["image debian-12-bookworm-v20260921"]
    assert image["state"] == "missing" and "machine.image" in image["cure"]
    assert found["firewall policies"]["state"] == "ok"


def test_without_compute_engine_it_says_how_to_enable_it(
    google: Between, doctor: Callable[..., dict[str, Any]], multinic: Command
) -> None:
    found = doctor(("^GET /compute/", 403, OFF))
    assert "gcloud services enable compute.googleapis.com --project lab" in found["fleet"]["detail"]
    assert "gcloud services enable compute.googleapis.com --project lab" in multinic.refuses("status", code=1)


def test_firewall_policies_are_named(
    google: Between, doctor: Callable[..., dict[str, Any]], multinic: Command, ground: Ground
) -> None:
    deny = {"action": "deny", "direction": "INGRESS", "priority": 1, "match": {"srcIpRanges": ["0.0.0.0/0"]}}
    on = {"action": "goto_next", "direction": "INGRESS", "priority": 2147483647}
    policies = [
        {"type": "HIERARCHY", "name": "123", "shortName": "org", "rules": [on]},
        {"type": "NETWORK", "name": "corporate", "rules": [deny, on]},
    ]
    rules = (
        (EFFECTIVE.format("dev-left"), 200, {"firewalls": [], "firewallPolicys": policies}),
        (EFFECTIVE.format("dev-right"), 403, "Required 'compute.networks.getEffectiveFirewalls' permission"),
    )
    states = {name: one for name, one in doctor(*rules, code=0).items() if name.startswith("firewall policies")}
    (left,) = [one for name, one in states.items() if "dev-left" in name]
    (right,) = [one for name, one in states.items() if "dev-right" in name]
    assert left["state"] == "warning" and "firewall policy corporate (of the network)" in left["detail"]
    assert right["state"] == "unknown" and "getEffectiveFirewalls" in right["cure"]
    text = multinic("trace", ground.outputs["clients"][0], ground.outputs["servers"][0])
    assert "but firewall policy corporate (of the network) decides in network dev-left" in text
    assert "policies of network dev-right" in text and "org" not in text, "one that decides nothing is not named"
    google.forget()
    assert "polic" not in multinic("trace", ground.outputs["clients"][0], ground.outputs["servers"][0])

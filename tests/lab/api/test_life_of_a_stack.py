"""The requests that the real pulumi-gcp plugin sends for a router fleet, from nothing to nothing.

`requests.json` is written after requests recorded from the plugin: a fleet created, updated and destroyed. In it,
``{name}`` stands for what an earlier answer gave (a template's number, an address, a fingerprint).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.lab.api.conftest import Door

REQUESTS = json.loads((Path(__file__).parent / "requests.json").read_text())


class Replay:
    """Sends requests as the plugin would, with what it would have read before."""

    def __init__(self, door: Door, prefix: str = "/compute/beta/") -> None:
        self.door, self.prefix = door, prefix
        self.known: dict[str, str] = {}
        self.prints: dict[str, str] = {}

    def send(self, request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        path = self._fill(request["path"]).replace("/compute/beta/", self.prefix)
        if "{print}" in json.dumps(request["body"]):
            self._read_print(path)
        body = json.loads(self._fill(json.dumps(request["body"])))
        answer = self.door.ok(request["verb"], path, body)
        if request["verb"] == "POST" and path.endswith("/instanceTemplates"):
            self.known[body["name"]] = answer["targetId"]
        if request["verb"] == "GET" and "fingerprint" in answer:
            self.prints[path] = answer["fingerprint"]
        if request["verb"] == "GET" and "/addresses/" in path:
            self.known[answer["name"]] = answer["address"]
        if "etag" in answer:
            self.known["etag"] = answer["etag"]
        return path, answer

    def _fill(self, text: str) -> str:
        return re.sub(r"\{([\w-]+)\}", lambda m: self.known[m[1]], text)

    def _read_print(self, path: str) -> None:
        owner, _, action = path.rpartition("/")
        if not action.startswith("set"):
            # From its state: of a group that is before its autoscaler came and set the size.
            self.known["print"] = self.prints[path]
            return
        current = self.door.ok("GET", owner)
        prints = {
            "setLabels": lambda: current["labelFingerprint"],
            "setMetadata": lambda: current["metadata"]["fingerprint"],
            "setTags": lambda: current["tags"]["fingerprint"],
        }
        self.known["print"] = prints[action]()

    def steps(self, *names: str) -> list[tuple[str, dict[str, Any]]]:
        return [self.send(request) for request in REQUESTS if request["step"] in names]


@pytest.mark.parametrize("prefix", ["/compute/beta/", "/compute/v1/"])
def test_created_updated_destroyed(door: Door, prefix: str) -> None:
    replay = Replay(door, prefix)
    replay.steps("create")
    replay.steps("update")
    replay.steps("destroy")
    left = [
        key
        for collection in ("networks", "routes", "instances", "disks")
        for key, _ in door.cloud.store.everywhere(collection)
    ]
    assert left == []


def test_what_the_plugin_sent_is_what_it_reads(door: Door) -> None:
    """A field that comes back otherwise is a difference in every preview."""
    replay = Replay(door)
    replay.steps("create")
    for request in REQUESTS:
        if request["verb"] != "POST" or request["step"] != "create" or not isinstance(request["body"], dict):
            continue
        name = request["body"].get("name")
        if name is None or "set" in request["path"].rpartition("/")[2]:
            continue
        got = door.ok("GET", f"{request['path']}/{name}")
        for field, sent in json.loads(replay._fill(json.dumps(request["body"]))).items():
            if sent in (None, "", [], {}) or field in ("region", "zone", "params", "machineType", "disks"):
                continue
            if field == "versions":
                # Sent by number, answered by name: by number every preview would show a change.
                assert got["versions"][0]["instanceTemplate"].endswith("/instanceTemplates/router-1")
                continue
            if (name, field) == ("fleet-a", "targetSize"):
                assert got[field] == 1, "the autoscaler has set it"
                continue
            assert _same(sent, got.get(field)), (name, field, sent, got.get(field))


def _same(sent: Any, got: Any) -> bool:
    if isinstance(sent, dict):
        return all(
            _same(value, (got or {}).get(key))
            for key, value in sent.items()
            if value not in (None, "", [], {}, [None]) and key not in UNREAD
        )
    if isinstance(sent, list):
        return len(sent) == len(got or []) and all(map(_same, sent, got))
    if isinstance(sent, str) and isinstance(got, str) and "projects/" in sent:
        tail = sent[sent.index("projects/") :]
        return got.endswith(tail)
    return bool(sent == got)


UNREAD = {"deleteBgpAlwaysCompareMed", "metadataFields", "onRepair", "preservedState", "workloadPolicy"}


def test_groups_reach_what_the_plugin_waits_for(door: Door) -> None:
    Replay(door).steps("create", "update")
    path = "/compute/beta/projects/lab/zones/us-central1-b/instanceGroupManagers/fleet-b"
    for _ in range(2000):
        group = door.ok("GET", path)
        if group["status"]["isStable"]:
            break
        door.wait(10)
    assert group["targetSize"] == 3
    assert group["currentActions"]["none"] == 3


def test_templates_are_read_by_name_number_and_unique_link(door: Door) -> None:
    Replay(door).steps("create")
    base = "/compute/v1/projects/lab/global/instanceTemplates/"
    template = door.ok("GET", base + "router-1")
    assert door.ok("GET", base + template["id"]) == template
    group = {
        "name": "other",
        "targetSize": 0,
        "versions": [{"instanceTemplate": f"{template['selfLink']}?uniqueId={template['id']}"}],
    }
    door.ok("POST", "/compute/v1/projects/lab/zones/us-central1-c/instanceGroupManagers", group)
    got = door.ok("GET", "/compute/v1/projects/lab/zones/us-central1-c/instanceGroupManagers/other")
    assert got["instanceTemplate"] == template["selfLink"]
    assert door.refused("GET", base + "123456")[:2] == (404, "notFound")


def test_what_the_plugin_changes_of_a_stopped_instance_and_of_a_groups_ports(door: Door) -> None:
    Replay(door).steps("create")
    base = "/compute/beta/projects/lab/zones/us-central1-a"
    client = f"{base}/instances/client"
    larger = {"machineType": "projects/lab/zones/us-central1-a/machineTypes/n2-standard-8"}
    account = {
        "email": "routers@lab.iam.gserviceaccount.com",
        "scopes": ["https://www.googleapis.com/auth/cloud-platform"],
    }
    code, reason, message = door.refused("POST", f"{client}/setMachineType", larger)
    assert (code, reason) == (400, "resourceNotReady")
    assert "must be stopped" in message

    # The host's maintenance policy changes under a running VM, its provisioning model does not.
    policy = {"onHostMaintenance": "TERMINATE", "automaticRestart": False}
    door.ok("POST", f"{client}/setScheduling", policy)
    assert door.ok("GET", client)["scheduling"].items() >= policy.items()
    spot = {"provisioningModel": "SPOT", "automaticRestart": False, "onHostMaintenance": "TERMINATE"}
    assert "must be stopped" in door.refused("POST", f"{client}/setScheduling", spot)[2]
    assert "Spot" in door.refused("POST", f"{client}/setScheduling", spot | {"automaticRestart": True})[2]
    secure = {"enableSecureBoot": True, "enableVtpm": True}
    assert "must be stopped" in door.refused("PATCH", f"{client}/updateShieldedInstanceConfig", secure)[2]

    door.ok("POST", f"{client}/stop")
    door.ok("POST", f"{client}/setScheduling", spot)
    door.ok("PATCH", f"{client}/updateShieldedInstanceConfig", secure)
    door.ok("POST", f"{client}/setMachineType", larger)
    door.ok("POST", f"{client}/setServiceAccount", account)
    door.ok("POST", f"{client}/setMinCpuPlatform", {"minCpuPlatform": "Intel Ice Lake"})
    assert (
        door.refused("POST", f"{client}/setMachineType", {"machineType": "zones/us-central1-a/machineTypes/x"})[0]
        == 400
    )
    door.ok("POST", f"{client}/start")
    got = door.ok("GET", f"{client}?view=FULL")
    assert got["status"] == "RUNNING"
    assert got["machineType"].endswith("/zones/us-central1-a/machineTypes/n2-standard-8")
    assert (got["serviceAccounts"], got["minCpuPlatform"]) == ([account], "Intel Ice Lake")
    assert (got["scheduling"]["preemptible"], got["shieldedInstanceConfig"]) == (True, secure)

    ports = [{"name": "traffic", "port": 9001}]
    door.ok("POST", f"{base}/instanceGroups/fleet-a/setNamedPorts", {"namedPorts": ports})
    assert door.ok("GET", f"{base}/instanceGroupManagers/fleet-a")["namedPorts"] == ports
    group = door.ok("GET", f"{base}/instanceGroups/fleet-a")
    assert group["namedPorts"] == ports
    stale = {"namedPorts": [], "fingerprint": "AAAAAAAAAAA="}
    assert door.refused("POST", f"{base}/instanceGroups/fleet-a/setNamedPorts", stale)[0] == 412

    regional = "/compute/beta/projects/lab/regions/us-central1/instanceGroupManagers"
    versions = [{"instanceTemplate": "global/instanceTemplates/router-1"}]
    chosen = [{"zone": "zones/us-central1-c"}, {"zone": "zones/us-central1-a"}]
    body = {"name": "wide", "targetSize": 0, "versions": versions, "distributionPolicy": {"zones": chosen}}
    door.ok("POST", regional, body)
    policy = door.ok("GET", f"{regional}/wide")["distributionPolicy"]
    assert [one["zone"].partition("/v1/")[2] for one in policy["zones"]] == [
        "projects/lab/zones/us-central1-c",
        "projects/lab/zones/us-central1-a",
    ]
    assert policy["targetShape"] == "EVEN"

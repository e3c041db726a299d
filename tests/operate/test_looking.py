"""The commands that look: status, logs, trace; in a lab without guests."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest

from multinic.cli.names import complete_network, complete_target
from multinic.lab.cloud import Cloud

from .conftest import Command, Ground
from .seen import ZONES, healthy, wait_for


def resize(ground: Ground, group: dict[str, Any], size: int) -> None:
    def set_size(cloud: Cloud) -> None:
        cloud.instance_group_managers.set_size(group["link"], size)

    ground.inside(set_size)


def test_status_tells_all_and_asks_as_often_for_many_vms_as_for_few(
    ground: Ground, multinic: Command, fleet: Callable[[], Any]
) -> None:
    text = multinic("status")
    for word in (*ZONES, "router-fleet-template-", "HEALTHY", "1 to 4, ON", "10.20.0.0/24", "v2-second-fleet"):
        assert word in text
    few = multinic.json("status")
    group = few["fleet"]["groups"][0]
    resize(ground, group, 4)
    try:
        many = wait_for(multinic, lambda found: len(found["fleet"]["routers"]) == 6)
        assert many["requests"] == few["requests"] == 5 + len(ZONES) * (2 + 2)
        # Not per VM; and one zone less costs what a zone costs.
        other = multinic.json("status", "--fleet", "v2-second-fleet")
        assert few["requests"] - other["requests"] == 4
    finally:
        resize(ground, group, 1)
        wait_for(multinic, lambda found: len(found["fleet"]["routers"]) == 3)


def test_logs_are_found_by_fleet_vm_event_and_severity(
    ground: Ground, multinic: Command, fleet: Callable[[], Any]
) -> None:
    names = [router["name"] for router in fleet()["routers"]]

    def write(cloud: Cloud) -> None:
        rows = [("repaired", "WARNING", names[0]), ("drained", "NOTICE", names[1]), ("repaired", "WARNING", "other-vm")]
        entries = [
            {"severity": severity, "jsonPayload": {"event": event, "instance": name, "zone": "z", "count": 2}}
            for event, severity, name in rows
        ]
        cloud.log_entries.write({"logName": "projects/lab/logs/multinic", "entries": entries})

    ground.inside(write)
    text = multinic("logs")
    assert names[0] in text and names[1] in text and "count=2" in text and "other-vm" not in text
    assert names[1] not in multinic("logs", names[0])
    assert names[0] not in multinic("logs", "--event", "drained")
    assert "drained" not in multinic("logs", "--severity", "warning")
    assert {json.loads(line)["event"] for line in multinic("logs", "--json").splitlines()} == {"repaired", "drained"}
    assert "--since yesterday" in multinic.refuses("logs", "--since", "yesterday", code=2)
    assert "--severity loud" in multinic.refuses("logs", "--severity", "loud", code=2)


class Pauses:
    """A command's pauses, in which something happens instead."""

    def __init__(self, *happenings: Callable[[], object]) -> None:
        self._happenings: list[Callable[[], object]] = [*happenings, lambda: signal.raise_signal(signal.SIGINT)]

    def sleep(self, _seconds: float) -> None:
        self._happenings.pop(0)()


def nothing() -> None:
    pass


@pytest.mark.slow
def test_logs_follow_until_interrupted(
    ground: Ground, multinic: Command, fleet: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = fleet()["routers"][0]["name"]

    def write(cloud: Cloud) -> None:
        entry = {"severity": "NOTICE", "jsonPayload": {"event": "recovered", "instance": name}}
        cloud.log_entries.write({"logName": "projects/lab/logs/multinic", "entries": [entry]})

    pauses = Pauses(lambda: ground.inside(write), nothing, nothing)
    monkeypatch.setattr("multinic.operate.logs.time", pauses)
    multinic("logs", "--follow", "--since", "1s", "--json", code=130)
    assert [json.loads(line)["event"] for line in multinic.out.splitlines()].count("recovered") == 1


@pytest.mark.slow
def test_status_is_shown_again_and_again_until_interrupted(multinic: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multinic.cli.status.time", Pauses(nothing, nothing))
    multinic("status", "--watch", "--every", "0.5", "--json", code=130)
    found = [json.loads(line) for line in multinic.out.splitlines()]
    assert len(found) == 3 and all(len(one["fleet"]["routers"]) == 3 for one in found)


def test_a_trace_agrees_with_the_labs_own(ground: Ground, multinic: Command, fleet: Callable[[], Any]) -> None:
    client, server = ground.outputs["clients"][0], ground.outputs["servers"][0]
    found = multinic.json("trace", client, server, "--port", "5201")
    forth, back = found["flow"]["forth"], found["flow"]["back"]
    assert found["arrives"] is True
    assert forth["nics"] == ["nic0", "nic1"] and back["nics"] == ["nic1", "nic0"]
    assert set(forth["routers"]) == set(back["routers"]) == healthy(fleet())
    addresses = [title.rpartition("(")[2].rstrip(")") for title in forth["title"].split(" → ")]

    def of_the_lab(cloud: Cloud) -> dict[str, Any]:
        from multinic.lab.cloud.packet import trace

        return trace(cloud, addresses[0], addresses[1], "tcp", "5201")

    theirs = ground.inside(of_the_lab)
    assert theirs["delivered"] is True
    candidates = {one["machine"].rpartition("/")[2] for one in theirs["steps"][0]["candidates"]}
    assert candidates == set(forth["routers"])
    # By addresses it is the same.
    assert multinic.json("trace", *addresses, "--port", "5201")["flow"]["forth"]["routers"] == forth["routers"]
    assert "it arrives" in multinic("trace", client, server)
    said = multinic.refuses("trace", client, "nobody", code=2)
    assert "no VM of project lab is called nobody" in said


def test_a_trace_tells_what_is_in_the_way(ground: Ground, multinic: Command, fleet: Callable[[], Any]) -> None:
    client, server = ground.outputs["clients"][0], ground.outputs["servers"][0]
    rules = ground.inside(lambda cloud: {k: v for k, v in cloud.store.everywhere("firewalls") if "routed-nic0" in k})

    def put(cloud: Cloud, change: dict[str, Any]) -> None:
        for key, value in rules.items():
            cloud.store.put(key, {**value, **change})

    ground.inside(lambda cloud: put(cloud, {"disabled": True}))
    try:
        found = multinic.json("trace", client, server, code=5)
        assert "is not let into the routers" in str(found["flow"]["forth"]["problems"])
        problems = [one for one in multinic.json("doctor", code=5) if one["state"] == "missing"]
        assert [one["what"].partition(" of ")[0] for one in problems] == ["firewall"]
        assert "10.10.0.0/24" in problems[0]["detail"] and "pulumi up" in problems[0]["cure"]
    finally:
        ground.inside(lambda cloud: put(cloud, {"disabled": False}))
    names = [router["name"] for router in fleet()["routers"]]
    ground.machines.dull.update(names)
    try:
        wait_for(multinic, lambda found: not healthy(found["fleet"]))
        assert "no router is healthy" in multinic("trace", client, server, code=5)
        assert "NO_HEALTHY_ROUTER" in multinic("routes", "--warnings", code=5)
    finally:
        ground.machines.dull.clear()
        wait_for(multinic, lambda found: len(healthy(found["fleet"])) == 3)


def test_what_an_api_says_is_one_sentence(ground: Ground, multinic: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULTINIC_LAB_TOKEN", "another")
    assert "does not accept the credentials" in multinic.refuses("status", code=1)
    monkeypatch.setenv("MULTINIC_LAB_ENDPOINT", "http://127.0.0.1:9")
    said = multinic.refuses("status", code=1)
    assert "the lab at http://127.0.0.1:9 does not answer" in said


def test_completion_knows_vms_zones_and_networks(multinic: Command, fleet: Callable[[], Any]) -> None:
    found = fleet()
    assert complete_target("router-fleet-") == [router["name"] for router in found["routers"]]
    # From then on what was kept.
    assert complete_target("us-central1-b") == [ZONES[1]]
    assert complete_network("dev-r") == [hop["network"] for hop in found["hops"] if hop["network"].startswith("dev-r")]
    assert complete_network("nothing") == []

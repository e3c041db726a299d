"""Managed instance groups against a pretended substrate: what an update does to each VM, least and most."""

from __future__ import annotations

from typing import Any

import pytest

from multinic.lab.cloud.errors import ApiError
from multinic.lab.cloud.group_updates import needed
from multinic.lab.substrate import Machine
from tests.lab.cloud.world import OpenWorld, Run

ZONE = {"zone": "us-central1-a", "instanceGroupManager": "fleet"}
TEMPLATE = {"machineType": "n2-highcpu-4", "tags": {"items": ["a"]}, "disks": [{"boot": True}]}


@pytest.mark.parametrize(
    ("changes", "action"),
    [
        ({}, "NONE"),
        ({"metadata": {"items": [{"key": "k", "value": "v"}]}}, "REFRESH"),
        ({"tags": {"items": ["b"]}, "labels": {"a": "b"}}, "REFRESH"),
        ({"machineType": "n2-highcpu-8", "labels": {"a": "b"}}, "RESTART"),
        ({"disks": [{"boot": True, "diskSizeGb": "20"}]}, "REPLACE"),
        ({"machineType": "n2-highcpu-8", "canIpForward": True}, "REPLACE"),
    ],
)
def test_what_a_change_of_the_template_needs(changes: dict[str, Any], action: str) -> None:
    assert needed(TEMPLATE, TEMPLATE | changes) == action
    assert needed(TEMPLATE | changes, TEMPLATE) == action


def policy(**fields: object) -> dict[str, Any]:
    return {"updatePolicy": {"type": "PROACTIVE", "maxSurge": {"fixed": 1}, "maxUnavailable": {"fixed": 0}} | fields}


def test_another_machine_type_needs_a_restart_and_a_stand_in_serves_meanwhile(world: OpenWorld, run: Run) -> None:
    """Kind 15: the VM keeps its name, number, address and disk, and capacity is never less than asked for."""

    async def check() -> None:
        async with world() as w:
            key = await w.fleet(size=2, **policy(minimalAction="REFRESH"))
            before = {vm: w.cloud.store.require(vm) for vm in w.members(key)}
            rolled = w.cloud.events.after()[-1].number
            w.substrate.log.clear()
            await w.roll(key, machineType="n2-highcpu-8", tags={"items": ["router", "new"]})
            await w.until(lambda: w.group_view(key)["status"]["isStable"], "the group is stable again")
            done = [
                (e.detail["what"], e.detail["instance"] in before)
                for e in w.cloud.events.after(rolled)
                if e.kind == "group" and e.detail["what"] != "made"
            ]
            assert done == [("creating", False), ("restarting", True), ("restarting", True), ("deleting", False)]
            assert set(w.members(key)) == set(before), "the stand-in went in the end"
            for vm, old in before.items():
                now = w.cloud.store.require(vm)
                assert now["id"] == old["id"]
                assert now["networkInterfaces"] == old["networkInterfaces"]
                assert now["machineType"].endswith("/n2-highcpu-8")
                assert now["tags"]["items"] == ["router", "new"]
                assert w.substrate.running[vm].egress == 16e9
                assert w.metadata(vm)["instance"]["attributes"]["startup-script"] == "t2"
                assert ("stop", vm) in w.substrate.log
                assert ("delete", vm) not in w.substrate.log
            counts = [len(before)]
            for what, _ in w.substrate.log:
                counts.append(counts[-1] + {"start": 1, "stop": -1}.get(what, 0))
            assert (min(counts), max(counts)) == (2, 3), "never fewer than asked for, and surge is 1"

    run(check())


def test_a_restart_waits_for_the_vms_health(world: OpenWorld, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a VM answered before its restart does not count for it."""

    async def check() -> None:
        async with world() as w:
            key = await w.fleet(size=2, **policy(minimalAction="RESTART"))
            vms = set(w.members(key))
            real = w.substrate.start

            async def start(machine: Machine) -> None:
                if machine.key in vms:
                    w.substrate.failing[9000].add(machine.key)
                await real(machine)

            monkeypatch.setattr(w.substrate, "start", start)
            await w.roll(key)
            await w.until(lambda: w.changes("group", "repairing", key), "the restarted VM is healed in vain")
            assert len(w.changes("group", "restarting", key)) == 1
            assert len(set(w.substrate.running) & vms) >= 1

    run(check())


def test_an_update_that_needs_more_than_is_allowed_is_not_done(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await w.fleet(**policy(minimalAction="NONE", mostDisruptiveAllowedAction="RESTART"))
            (vm,) = w.members(key)
            identity = w.identity(vm)
            await w.roll(key, canIpForward=False)
            status = w.group_view(key)["status"]
            assert status["isStable"], "nothing is left to do"
            assert not status["versionTarget"]["isReached"]
            with pytest.raises(ApiError, match=r"mostDisruptiveAllowedAction.*more disruptive") as refused:
                body = {"allInstances": True, "mostDisruptiveAllowedAction": "RESTART"}
                await w.do("instanceGroupManagers.applyUpdatesToInstances", body, **ZONE)
            assert refused.value.code == 400
            assert w.identity(vm) == identity
            # A new VM is of the new template all the same, and the next template that needs less is rolled out.
            await w.do("instanceGroupManagers.resize", size=2, **ZONE)
            await w.stable(key)
            (new,) = set(w.members(key)) - {vm}
            assert not w.cloud.store.require(new)["canIpForward"]
            await w.roll(key, "t3")
            await w.until(lambda: w.metadata(vm)["instance"]["attributes"]["startup-script"] == "t3", "refreshed")
            assert w.identity(vm) == identity
            assert not w.group_view(key)["status"]["versionTarget"]["isReached"], "the other one would be replaced"

    run(check())


@pytest.mark.parametrize("least", [None, "REFRESH", "RESTART", "REPLACE"])
def test_named_vms_get_at_least_what_is_asked_for(world: OpenWorld, run: Run, least: str | None) -> None:
    """`applyUpdatesToInstances` acts also on VMs that are up to date."""

    async def check() -> None:
        async with world() as w:
            key = await w.fleet(size=2, **policy(type="OPPORTUNISTIC"))
            one, other = w.members(key)
            before = w.identity(one)
            body: dict[str, Any] = {"instances": [f"zones/us-central1-a/instances/{one.rpartition('/')[2]}"]}
            body |= {"minimalAction": least} if least else {}
            w.substrate.told.clear()
            await w.do("instanceGroupManagers.applyUpdatesToInstances", body, **ZONE)
            await w.stable(key)
            expected = {None: None, "REFRESH": "refreshed", "RESTART": "restarting", "REPLACE": "recreating"}[least]
            seen = [e.detail["what"] for e in w.cloud.events.after() if e.detail.get("instance") == one]
            assert [what for what in seen if what not in ("creating", "made")] == ([expected] if expected else [])
            assert (w.identity(one) == before) is (least != "REPLACE")
            assert ("stop", one) in w.substrate.log or least not in ("RESTART", "REPLACE")
            assert ("stop", other) not in w.substrate.log

    run(check())

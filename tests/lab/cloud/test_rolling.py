"""Managed instance groups against a pretended substrate: another template, rolled out."""

from __future__ import annotations

import pytest

from multinic.lab.substrate import Probe, ProbeResult
from tests.lab.cloud.world import HEAL, OpenWorld, Run


def test_a_rolling_update_never_has_fewer_ready_vms_than_asked_for(world: OpenWorld, run: Run) -> None:
    """Kind 15: an update takes no capacity away."""

    async def check() -> None:
        async with world() as w:
            key = await w.fleet(size=3, draining=5)
            old = set(w.members(key))
            await w.roll(key)
            assert not w.group_view(key)["status"]["versionTarget"]["isReached"]
            fewest, most = 99, 0

            def done() -> bool:
                nonlocal fewest, most
                fewest = min(fewest, len(w.substrate.running))
                most = max(most, len(w.members(key)))
                stable: bool = w.group_view(key)["status"]["isStable"]
                return stable

            await w.until(done, "the group is stable again")
            assert fewest >= 3
            assert most == 4, "surge is 1"
            assert old.isdisjoint(w.members(key)), "SUBSTITUTE gives new names"
            assert w.group_view(key)["status"]["versionTarget"]["isReached"]

    run(check())


def test_a_bad_template_stops_at_its_first_vm(world: OpenWorld, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kind 15: illness blocks a rollout, and the next good one goes through."""

    async def check() -> None:
        async with world() as w:
            key = await w.fleet(size=3)
            old = set(w.members(key))
            made_before = len(w.changes("group", "creating", key))
            running = set(w.substrate.running)

            # Every VM of the new template fails its heal check.
            real = w.substrate.probe

            async def probe(p: Probe) -> ProbeResult:
                if p.port == HEAL and p.machine not in running:
                    w.substrate.failing[HEAL].add(p.machine)
                return await real(p)

            monkeypatch.setattr(w.substrate, "probe", probe)
            await w.roll(key)
            await w.until(lambda: w.changes("group", "repairing", key), "the new VM is healed in vain")
            assert old <= set(w.substrate.running)
            assert len(w.changes("group", "creating", key)) == made_before + 1
            assert not w.group_view(key)["status"]["isStable"]
            # The next good template goes through.
            monkeypatch.setattr(w.substrate, "probe", real)
            w.substrate.failing[HEAL].clear()
            await w.roll(key, "t3")
            await w.stable(key)
            assert w.group_view(key)["status"]["versionTarget"]["isReached"]
            assert old.isdisjoint(w.members(key))

    run(check())


def test_recreate_keeps_names(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            policy = {
                "type": "PROACTIVE",
                "replacementMethod": "RECREATE",
                "maxSurge": {"fixed": 0},
                "maxUnavailable": {"fixed": 1},
            }
            key = await w.fleet(size=2, updatePolicy=policy)
            before = {vm: w.identity(vm) for vm in w.members(key)}
            await w.roll(key)
            await w.stable(key)
            assert set(w.members(key)) == set(before)
            assert all(w.identity(vm) != identity for vm, identity in before.items())

    run(check())


def test_opportunistic_groups_wait_to_be_told(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await w.fleet(updatePolicy={"type": "OPPORTUNISTIC"})
            before = w.members(key)
            await w.roll(key)
            view = w.group_view(key)["status"]
            assert view["isStable"]
            assert not view["versionTarget"]["isReached"]
            await w.do(
                "instanceGroupManagers.applyUpdatesToInstances",
                {"allInstances": True},
                zone="us-central1-a",
                instanceGroupManager="fleet",
            )
            await w.until(lambda: w.group_view(key)["status"]["versionTarget"]["isReached"], "updated")
            await w.stable(key)
            assert w.members(key) == before

    run(check())


def test_refresh_takes_over_metadata_in_place(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            policy = {"type": "PROACTIVE", "minimalAction": "REFRESH"}
            key = await w.fleet(updatePolicy=policy)
            (vm,) = w.members(key)
            before = w.identity(vm)
            w.substrate.told.clear()
            await w.roll(key)
            await w.until(lambda: w.group_view(key)["status"]["versionTarget"]["isReached"], "refreshed")
            assert w.identity(vm) == before
            assert vm in w.substrate.told
            assert w.metadata(vm)["instance"]["attributes"]["startup-script"] == "t2"
            # What needs a new VM still gets one.
            await w.roll(key, "t3", machineType="n2-highcpu-8")
            await w.until(lambda: w.members(key) != [vm], "replaced")
            await w.stable(key)

    run(check())

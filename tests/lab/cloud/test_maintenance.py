"""A host that is maintained: its VMs are migrated, or stopped and started, as they want it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from multinic.lab.cloud import maintenance
from multinic.lab.cloud.errors import ApiError
from tests.lab.cloud.world import OpenWorld, Run, World


async def simulate(w: World, vm: str) -> dict[str, Any]:
    params = {"zone": "us-central1-a", "instance": vm.rpartition("/")[2]}
    return await w.do("instances.simulateMaintenanceEvent", **params)


def kinds(w: World) -> list[str]:
    return [operation["operationType"] for operation in w.cloud.operations.listed("zones/us-central1-a")]


def notice(w: World, vm: str) -> str:
    event: str = w.metadata(vm)["instance"]["maintenanceEvent"]
    return event


def test_a_vm_is_migrated_after_its_notice_and_stands_still_for_a_moment(
    world: OpenWorld, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "PAUSE_SECONDS", 0.0)

    async def check() -> None:
        async with world() as w:
            key = await w.fleet()
            (vm,) = w.members(key)
            before, frozen, began = w.identity(vm), [], w.cloud.clock.now()

            async def freeze(machine: str, what: bool) -> None:
                frozen.append((what, notice(w, machine), w.cloud.clock.now() - began))

            monkeypatch.setattr(w.substrate, "freeze", freeze)
            w.substrate.told.clear()
            event = asyncio.create_task(simulate(w, vm))
            await w.until(lambda: w.substrate.told == [vm], "whoever waits for the notice wakes")
            assert notice(w, vm) == "MIGRATE_ON_HOST_MAINTENANCE"
            with pytest.raises(ApiError, match="is being migrated"):
                await simulate(w, vm)
            assert "error" not in await event
            assert [(what, told) for what, told, _ in frozen] == [
                (True, "MIGRATE_ON_HOST_MAINTENANCE"),
                (False, "MIGRATE_ON_HOST_MAINTENANCE"),
            ]
            assert frozen[0][2] >= 60
            assert notice(w, vm) == "NONE"
            assert w.substrate.told == [vm, vm]
            assert w.identity(vm) == before
            assert "compute.instances.migrateOnHostMaintenance" in kinds(w)
            assert not w.changes("group", "repairing", key)

    run(check())


def test_a_vm_that_cannot_be_migrated_is_stopped_and_started(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await w.fleet()
            await w.roll(key, scheduling={"onHostMaintenance": "TERMINATE"})
            await w.stable(key)
            (vm,) = w.members(key)
            before = w.identity(vm)
            w.substrate.log.clear()
            assert "error" not in await simulate(w, vm)
            assert [entry for entry in w.substrate.log if entry[1] == vm] == [("stop", vm), ("start", vm)]
            assert w.identity(vm) == before, "its group leaves it alone: it was started again"
            assert {"compute.instances.terminateOnHostMaintenance", "compute.instances.automaticRestart"} <= set(
                kinds(w)
            )
            assert not w.changes("group", "repairing", key)
            await w.serving()

    run(check())


def test_one_that_does_not_start_again_has_failed(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await w.fleet(autoHealingPolicies=[])
            await w.roll(key, scheduling={"onHostMaintenance": "TERMINATE"})
            await w.stable(key)
            (vm,) = w.members(key)
            before = w.identity(vm)
            w.substrate.broken.add("*")
            assert "no room for another guest" in str((await simulate(w, vm))["error"])
            w.substrate.broken.clear()
            await w.until(lambda: w.identity(vm) not in (None, before), "its group makes it anew")
            await w.stable(key)

    run(check())


def test_without_automatic_restart_its_group_makes_it_anew(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await w.fleet()
            await w.roll(key, scheduling={"onHostMaintenance": "TERMINATE", "automaticRestart": False})
            await w.stable(key)
            (vm,) = w.members(key)
            before = w.identity(vm)
            assert "error" not in await simulate(w, vm)
            await w.until(lambda: w.identity(vm) not in (None, before), "a new VM of the same name")
            await w.stable(key)
            assert "compute.instances.automaticRestart" not in kinds(w)

    run(check())


def test_a_vm_that_does_not_run_has_no_host(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            await w.networks()
            await w.instance("one")
            await w.do("instances.stop", zone="us-central1-a", instance="one")
            with pytest.raises(ApiError, match="TERMINATED, not RUNNING"):
                await simulate(w, "one")

    run(check())

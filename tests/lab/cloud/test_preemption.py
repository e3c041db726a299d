"""Spot VMs that Google takes back: notice, orderly end, and what their group makes of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from multinic.lab.cloud.errors import ApiError
from tests.lab.cloud.world import OpenWorld, Run

SPOT = {"provisioningModel": "SPOT", "automaticRestart": False, "onHostMaintenance": "TERMINATE"}


def test_a_preempted_router_is_told_shut_down_and_made_anew_at_once(
    world: OpenWorld, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kind 16: thirty seconds, of which the traffic port's closing takes the first."""

    async def check() -> None:
        async with world() as w:
            key = await w.fleet(autoHealingPolicies=[])
            await w.roll(key, scheduling=SPOT)
            await w.stable(key)
            (vm,) = w.members(key)
            before = w.identity(vm)
            assert w.metadata(vm)["instance"]["preempted"] == "FALSE"
            stopping, goes = asyncio.Event(), asyncio.Event()
            timeouts = []

            async def stop(machine: str, *, timeout: float) -> None:
                timeouts.append(timeout)
                stopping.set()
                await goes.wait()
                w.substrate.running.pop(machine)

            monkeypatch.setattr(w.substrate, "stop", stop)
            w.substrate.told.clear()
            w.cloud.machines.preempt(vm)
            # The notice is there before the power button is heard, and whoever waits for it wakes.
            assert w.metadata(vm)["instance"]["preempted"] == "TRUE"
            assert w.substrate.told == [vm]
            await asyncio.wait_for(stopping.wait(), 20)
            assert timeouts == [30.0]
            assert w.cloud.store.require(vm)["status"] == "STOPPING"
            assert not w.changes("group", "repairing", key), "it still runs"
            goes.set()
            await w.until(lambda: w.identity(vm) not in (None, before), "a new VM of the same name")
            await w.stable(key)
            (event,) = w.changes("group", "repairing", key)
            assert event.detail["cause"] == "stopped"
            assert w.metadata(vm)["instance"]["preempted"] == "FALSE"
            kinds = [o["operationType"] for o in w.cloud.operations.listed("zones/us-central1-a")]
            assert "compute.instances.preempted" in kinds

    run(check())


@pytest.mark.parametrize("scheduling", [SPOT | {"instanceTerminationAction": "DELETE"}, {"preemptible": True}])
def test_its_group_makes_it_anew_too_when_preemption_deletes_it(
    world: OpenWorld, run: Run, scheduling: dict[str, Any]
) -> None:
    async def check() -> None:
        async with world() as w:
            key = await w.fleet(autoHealingPolicies=[])
            await w.roll(key, scheduling=scheduling)
            await w.stable(key)
            (vm,) = w.members(key)
            before = w.identity(vm)
            name, zone = vm.rpartition("/")[2], "us-central1-a"
            await w.do("instances.simulateMaintenanceEvent", zone=zone, instance=name)
            await w.until(lambda: w.identity(vm) not in (None, before), "a new VM of the same name")
            await w.stable(key)

    run(check())


def test_only_spot_vms_that_run_are_preempted(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await w.fleet()
            (vm,) = w.members(key)
            with pytest.raises(ApiError, match="not a Spot VM"):
                w.cloud.machines.preempt(vm)

    run(check())

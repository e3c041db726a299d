"""Managed instance groups against a pretended substrate: repair by health, by power cut, and what is left alone."""

from __future__ import annotations

from tests.lab.cloud.world import HEAL, OpenWorld, Run


def test_a_vm_that_fails_its_heal_check_is_made_anew_under_its_name(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await w.fleet()
            (vm,) = w.members(key)
            before = w.identity(vm)
            w.substrate.failing[HEAL].add(vm)
            await w.until(lambda: w.changes("group", "repairing", key), "repair")
            w.substrate.failing[HEAL].clear()
            await w.until(lambda: w.identity(vm) not in (None, before), "a new VM of the same name")
            await w.stable(key)
            assert w.members(key) == [vm]
            (event,) = w.changes("group", "repairing", key)
            assert event.detail["cause"] == "unhealthy"

    run(check())


def test_a_panicked_vm_is_healed_though_it_stays_running(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await w.fleet()
            (vm,) = w.members(key)
            before = w.identity(vm)
            await w.substrate.panic(vm)
            assert w.cloud.store.require(vm)["status"] == "RUNNING"
            await w.until(lambda: w.changes("group", "repairing", key), "repair")
            w.substrate.silent.clear()
            await w.until(lambda: w.identity(vm) not in (None, before), "a new VM of the same name")
            # Nobody hears a power button after a panic: no orderly stop was tried.
            assert ("stop", vm) not in w.substrate.log

    run(check())


def test_a_vm_that_comes_back_before_the_heal_check_gives_up_is_left_alone(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world(speed=20) as w:
            key = await w.fleet()
            (vm,) = w.members(key)
            before = w.identity(vm)
            await w.substrate.panic(vm)
            await w.until(lambda: w.changes("health", "UNHEALTHY", vm), "the traffic check notices")
            w.substrate.came_to_life(vm)
            await w.serving()
            assert w.identity(vm) == before
            assert not w.changes("group", "repairing")

    run(check())


def test_a_panicked_vm_that_is_stopped_does_not_come_back_by_itself(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            await w.networks()
            await w.instance("one")
            (vm,) = w.substrate.running
            await w.substrate.panic(vm)
            await w.do("instances.stop", zone="us-central1-a", instance="one")
            assert w.cloud.store.require(vm)["status"] == "TERMINATED"
            assert vm not in w.substrate.running, "its kernel would reboot it"

    run(check())


def test_a_power_cut_is_repaired_at_once_without_a_heal_check(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await w.fleet(autoHealingPolicies=[])
            (vm,) = w.members(key)
            before = w.identity(vm)
            await w.substrate.cut_power(vm)
            assert w.cloud.store.require(vm)["status"] == "TERMINATED"
            await w.until(lambda: w.identity(vm) not in (None, before), "a new VM of the same name")
            await w.stable(key)

    run(check())


def test_a_vm_that_never_gets_healthy_is_healed_only_after_the_initial_delay(world: OpenWorld, run: Run) -> None:
    """Kind 6: a loop of healing begins no sooner than a boot may take."""

    async def check() -> None:
        async with world() as w:
            await w.networks()
            await w.checks()
            await w.template("t1")
            w.substrate.failing[HEAL].add("*")
            key = await w.group()
            await w.until(lambda: w.changes("group", "repairing", key), "repair")
            (running,) = w.changes("machine", "running")[:1]
            (repairing,) = w.changes("group", "repairing", key)[:1]
            # 60 s of initial delay and three probes 10 s apart, on a clock a hundred times faster.
            assert (repairing.time - running.time) * w.cloud.clock.speed >= 80
            assert not w.group_view(key)["status"]["isStable"]

    run(check())


def test_observe_only_groups_do_not_heal(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await w.fleet(instanceLifecyclePolicy={"onFailedHealthCheck": "DO_NOTHING"})
            (vm,) = w.members(key)
            before = w.identity(vm)
            w.substrate.failing[HEAL].add(vm)
            await w.until(
                lambda: [e for e in w.changes("health", "UNHEALTHY", vm) if e.detail["purpose"] == "heal"],
                "the heal check fails",
            )
            await w.cloud.clock.sleep(60)
            assert w.identity(vm) == before

    run(check())


def test_a_vm_that_cannot_be_made_is_reported_and_tried_again(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            await w.networks()
            await w.checks()
            await w.template("t1")
            w.substrate.broken.add("*")
            key = await w.group()
            where = {"zone": "us-central1-a", "instanceGroupManager": "fleet"}
            await w.until(lambda: w.cloud.groups.open(key).errors, "an error is noted")
            errors = (await w.do("instanceGroupManagers.listErrors", **where))["items"]
            assert "no room for another guest" in errors[0]["error"]["message"]
            managed = (await w.do("instanceGroupManagers.listManagedInstances", **where))["managedInstances"]
            assert "no room" in managed[0]["lastAttempt"]["errors"]["errors"][0]["message"]
            w.substrate.broken.clear()
            await w.stable(key)

    run(check())

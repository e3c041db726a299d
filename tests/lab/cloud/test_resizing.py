"""Managed instance groups against a pretended substrate: more VMs, fewer, and which go."""

from __future__ import annotations

from multinic.lab.substrate import Backend
from tests.lab.cloud.world import HEAL, OpenWorld, Run


def test_a_vm_drains_before_it_is_deleted(world: OpenWorld, run: Run) -> None:
    """Kind 16."""

    async def check() -> None:
        async with world() as w:
            await w.fleet(size=2, draining=30)
            await w.do("instanceGroupManagers.resize", size=1, zone="us-central1-a", instanceGroupManager="fleet")
            network = "projects/lab/global/networks/a"

            def draining() -> list[Backend]:
                backends = w.substrate.plans[network].balancers[0].backends
                return [b for b in backends if not b.takes_new and b.keeps_existing]

            (leaving,) = await w.until(draining, "a backend drains")
            assert leaving.machine in w.substrate.running
            await w.until(lambda: w.changes("machine", "deleted", leaving.machine), "it goes")
            assert leaving.machine not in w.substrate.running
            drained = w.changes("machine", "draining", leaving.machine)[0]
            gone = w.changes("machine", "deleted", leaving.machine)[0]
            assert (gone.time - drained.time) * w.cloud.clock.speed >= 30
            assert leaving.machine not in [b.machine for b in w.substrate.plans[network].balancers[0].backends]
            # Its shutdown script ran before it went.
            assert w.substrate.log.index(("stop", leaving.machine)) < w.substrate.log.index(("delete", leaving.machine))

    run(check())


def test_unhealthy_vms_go_first_when_a_group_shrinks(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await w.fleet(size=3, instanceLifecyclePolicy={"defaultActionOnFailure": "DO_NOTHING"})
            sick = w.members(key)[1]
            w.substrate.failing[HEAL].add(sick)
            await w.until(
                lambda: [e for e in w.changes("health", "UNHEALTHY", sick) if e.detail["purpose"] == "heal"],
                "the heal check fails",
            )
            await w.do("instanceGroupManagers.resize", size=2, zone="us-central1-a", instanceGroupManager="fleet")
            await w.until(lambda: len(w.members(key)) == 2, "the group has shrunk")
            assert sick not in w.members(key)

    run(check())


def test_delete_instances_lowers_the_size_and_abandon_leaves_the_vm(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await w.fleet(size=3)
            first, second, third = w.members(key)
            where = {"zone": "us-central1-a", "instanceGroupManager": "fleet"}
            await w.do("instanceGroupManagers.deleteInstances", {"instances": [first]}, **where)
            await w.until(lambda: w.members(key) == [second, third], "deleted")
            await w.do("instanceGroupManagers.abandonInstances", {"instances": [second]}, **where)
            assert w.members(key) == [third]
            assert second in w.substrate.running
            assert w.group_view(key)["targetSize"] == 1
            await w.stable(key)
            await w.do("instances.delete", zone="us-central1-a", instance=second.rpartition("/")[2])

    run(check())


def test_the_autoscaler_sets_the_size_of_a_group_that_had_none(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            await w.networks()
            await w.checks()
            await w.template("t1")
            key = await w.group(size=0)
            body = {
                "name": "as",
                "target": "zones/us-central1-a/instanceGroupManagers/fleet",
                "autoscalingPolicy": {"minNumReplicas": 2, "maxNumReplicas": 4, "cpuUtilization": {}},
            }
            await w.do("autoscalers.insert", body, zone="us-central1-a")
            await w.stable(key)
            assert len(w.members(key)) == 2
            body["autoscalingPolicy"] = {"minNumReplicas": 0, "maxNumReplicas": 1}
            await w.do("autoscalers.update", body, zone="us-central1-a", autoscaler="as")
            await w.until(lambda: len(w.members(key)) == 1, "no more than the maximum")

    run(check())

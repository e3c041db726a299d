"""Outages of a zone: its machines are silent, nobody says so, and none starts there until the zone is back."""

from __future__ import annotations

from multinic.lab.cloud.errors import ApiError
from tests.lab.cloud.world import OpenWorld, Run, World

ZONE = "us-central1-a"


async def _fleet(w: World) -> str:
    await w.networks()
    await w.checks()
    await w.template("t1")
    key = await w.group(size=2)
    await w.balancers([key])
    await w.stable(key)
    await w.serving(count=2)
    return key


def test_silent_machines_stay_running_until_checks_find_out(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await _fleet(w)
            before = {member: w.cloud.store.require(member)["id"] for member in w.members(key)}
            await w.cloud.outages.fail(ZONE)
            assert not w.substrate.running
            assert {w.cloud.store.require(member)["status"] for member in before} == {"RUNNING"}
            assert not w.changes("machine", "stopped"), "who waits for it learns nothing"
            assert len(w.changes("machine", "lost power unseen")) == 2
            error = "error"
            await w.until(lambda: [e for e in w.cloud.events.after() if e.detail["what"] == error], "no room there")
            assert not w.substrate.running
            (first, *_) = w.cloud.groups.open(key).errors
            assert first["error"]["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED"
            await w.cloud.outages.restore(ZONE)
            await w.stable(key)
            await w.serving(count=2)
            assert {member: w.cloud.store.require(member)["id"] for member in w.members(key)}.keys() == before.keys()
            assert len(w.substrate.running) == 2

    run(check())


def test_a_short_outage_is_repaired_when_the_zone_is_back(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await _fleet(w)
            await w.cloud.outages.fail(ZONE)
            await w.cloud.outages.restore(ZONE)
            await w.until(lambda: len(w.substrate.running) == 2, "all run again")
            await w.stable(key)

    run(check())


def test_other_zones_do_not_notice(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            await _fleet(w)
            await w.cloud.outages.fail("us-central1-b")
            assert len(w.substrate.running) == 2

    run(check())


def test_an_unknown_zone_is_refused(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            for act in (w.cloud.outages.fail, w.cloud.outages.restore):
                try:
                    await act("mars-north1-a")
                except ApiError as error:
                    assert error.code == 404
                else:
                    raise AssertionError("an unknown zone was accepted")

    run(check())

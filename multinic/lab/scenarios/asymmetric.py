"""The asymmetric scenario: the two directions of a connection pass different routers, and one of them is drained."""

from __future__ import annotations

from multinic.lab.errors import LabError
from multinic.lab.scenarios import drain
from multinic.lab.scenarios.fleet import RouterState, backend_service_of, bytes_in, route_to
from multinic.lab.scenarios.scenario import Scenario
from multinic.lab.scenarios.stage import Stage

ONE_SIDED = "CLIENT_IP_NO_DESTINATION"
"""Hashes the source only: all that the client sends passes one router, whatever way the answers take."""
SECONDS = 2.0


def _set_affinity(stage: Stage, affinity: str) -> None:
    """Of the load balancer in the client's network only."""
    path = backend_service_of(stage.lab, route_to(stage.lab, stage.server.address))
    stage.lab.compute("PATCH", path, {"sessionAffinity": affinity})


def _prepare(stage: Stage) -> None:
    _set_affinity(stage, ONE_SIDED)


def _require_one_way_each(stage: Stage) -> None:
    """Raises `LabError` unless the second stream's router gets that stream by its nic1 and no answers by its nic0."""
    fleet = stage.routers()
    before = {router.key: bytes_in(stage.lab, router) for router in fleet}
    stage.hold(SECONDS)
    came = {
        router.key: [
            after - earlier for earlier, after in zip(before[router.key], bytes_in(stage.lab, router), strict=True)
        ]
        for router in fleet
    }
    back = max(fleet, key=lambda router: came[router.key][1])
    there = max(fleet, key=lambda router: came[router.key][0])
    one_way = came[back.key]
    if back == there or one_way[0] * 100 > one_way[1]:
        raise LabError(f"{back.name} should see one direction only, but its NICs got {one_way} bytes")
    stage.say(f"from the client by {there.name}, from the server by {back.name}")


def _act(stage: Stage) -> None:
    _require_one_way_each(stage)
    stage.mark("seen on two routers")
    drain.SCENARIO.act(stage)
    _set_affinity(stage, "CLIENT_IP_PORT_PROTO")


def _other(first: RouterState, router: RouterState) -> bool:
    return router != first


SCENARIO = Scenario(
    name="asymmetric",
    title="directions on different routers, one of them drained",
    planned=True,
    why="routers keep no state, so that neither cares whether it sees the other direction",
    act=_act,
    prepare=_prepare,
    beside=_other,
)

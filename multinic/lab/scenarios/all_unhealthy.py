"""The all-unhealthy scenario: every router answers its traffic check with 503, and all of them go on forwarding."""

from __future__ import annotations

from multinic.lab.errors import LabError
from multinic.lab.scenarios.drain import KEY
from multinic.lab.scenarios.scenario import Scenario
from multinic.lab.scenarios.stage import Stage

HOLD_SECONDS = 5.0


def _act(stage: Stage) -> None:
    fleet = stage.routers()
    for router in fleet:
        stage.set_metadata(router.key, {KEY: "true"})
    stage.say(f"{KEY}=true on all routers")
    stage.wait(lambda: not any("HEALTHY" in router.health.values() for router in stage.routers()), "all unhealthy")
    stage.hold(HOLD_SECONDS)
    if not stage.flows.flow_since(stage.zero + stage.marks["all unhealthy"] + 1):
        raise LabError("with all routers unhealthy nothing flows; the load balancers should send to all of them")
    for router in fleet:
        stage.set_metadata(router.key, {KEY: None})
    stage.mark("drains removed")


SCENARIO = Scenario(
    name="all-unhealthy",
    title="all routers unhealthy",
    planned=False,
    why="with nobody healthy the load balancers send to all, as the last resort",
    act=_act,
)

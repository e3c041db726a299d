"""The drain scenario: an operator takes a router out of service by its metadata, and puts it back."""

from __future__ import annotations

from multinic.lab.scenarios.scenario import Scenario
from multinic.lab.scenarios.stage import Stage

KEY = "multinic-drain"


def _act(stage: Stage) -> None:
    router = stage.victim
    stage.set_metadata(router.key, {KEY: "true"})
    stage.say(f"{KEY}=true on {router.name}")
    stage.wait_until_it_serves_not(router.key, "drained")
    stage.hold(2)
    if stage.flows_move:
        stage.require_no_traffic(router)
    else:
        stage.say(f"connections stay on {router.name}: these settings let them")
    stage.set_metadata(router.key, {KEY: None})
    stage.say(f"{KEY} removed")


SCENARIO = Scenario(
    name="drain",
    title="drain of one router",
    planned=True,
    why="its traffic check answers 503, and the load balancers move its flows while it still forwards",
    act=_act,
)

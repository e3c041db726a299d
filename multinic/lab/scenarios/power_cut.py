"""The power-cut scenario: a router's VM stops from one moment to the next."""

from __future__ import annotations

from multinic.lab.scenarios.scenario import BY_CHECK, Scenario
from multinic.lab.scenarios.stage import Stage


def _act(stage: Stage) -> None:
    router = stage.victim
    identity = stage.identity(router.key)
    stage.lab.act(router.key, "cutPower")
    stage.say(f"power cut of {router.name}")
    stage.wait_until_dropped(router)
    stage.wait_until_recreated(router.key, identity)


SCENARIO = Scenario(
    name="power-cut",
    title="power cut of one router",
    planned=False,
    why="its VM is TERMINATED at once, so its load balancers drop it and its group recreates it without waiting for "
    "a check; the gap ends with the first retransmission after that",
    act=_act,
    steps=BY_CHECK,
)

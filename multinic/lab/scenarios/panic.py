"""The panic scenario: the kernel of the router that carries the streams panics."""

from __future__ import annotations

from multinic.lab.scenarios.events import healed
from multinic.lab.scenarios.scenario import BY_CHECK, Scenario
from multinic.lab.scenarios.stage import Stage


def _act(stage: Stage) -> None:
    router = stage.victim
    stage.lab.act(router.key, "panic")
    stage.say(f"kernel panic in {router.name}")
    stage.wait_until_dropped(router)
    stage.wait_for(lambda: healed(stage.events_of(router.key)) is not None, f"{router.name} runs again")


SCENARIO = Scenario(
    name="panic",
    title="kernel panic in one router",
    planned=False,
    why="its VM stays RUNNING and silent, so that the traffic check must find out; the gap ends with the first "
    "retransmission after that. The kernel reboots itself, or the heal check is faster and its group recreates it",
    act=_act,
    steps=BY_CHECK,
)

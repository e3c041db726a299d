"""Scenarios in which a router's VM stops: without warning, or as a Spot VM at 30 s notice."""

from __future__ import annotations

from multinic.lab.scenarios.scenario import BY_CHECK, Scenario
from multinic.lab.scenarios.stage import Stage


def _act(stage: Stage, action: str, said: str) -> None:
    router = stage.victim
    identity = stage.identity(router.key)
    stage.lab.act(router.key, action)
    stage.say(f"{router.name}: {said}")
    stage.wait_until_dropped(router)
    stage.wait_until_recreated(router.key, identity)


POWER_CUT = Scenario(
    name="power-cut",
    title="power cut of one router",
    planned=False,
    why="its VM is TERMINATED at once, so its load balancers drop it and its group recreates it without waiting for "
    "a check; the gap ends with the first retransmission after that",
    act=lambda stage: _act(stage, "cutPower", "power cut"),
    steps=BY_CHECK,
)
PREEMPTION = Scenario(
    name="preemption",
    title="preemption of a Spot router",
    planned=False,
    why="the power button starts the shutdown script, which closes the traffic check and forwards until the load "
    "balancers have moved all flows; its group then repairs the VM that stopped",
    act=lambda stage: _act(stage, "preempt", "preempted"),
    config={"multinic:router": {"machine": {"spot": True}}},
    steps=BY_CHECK,
)

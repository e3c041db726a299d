"""The preemption scenario: Google Cloud takes a Spot router away, at 30 s notice."""

from __future__ import annotations

from multinic.lab.scenarios.scenario import BY_CHECK, Scenario
from multinic.lab.scenarios.stage import Stage


def _act(stage: Stage) -> None:
    router = stage.victim
    identity = stage.identity(router.key)
    stage.lab.act(router.key, "preempt")
    stage.say(f"{router.name} is preempted")
    stage.wait_until_dropped(router)
    stage.wait_until_recreated(router.key, identity)


SCENARIO = Scenario(
    name="preemption",
    title="preemption of a Spot router",
    planned=False,
    why="the power button starts the shutdown script, which closes the traffic check and forwards until the load "
    "balancers have moved all flows; its group then repairs the VM that stopped",
    act=_act,
    config={"multinic:router": {"machine": {"spot": True}}},
    steps=BY_CHECK,
)

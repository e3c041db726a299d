"""The upgrade scenario: a second generation comes up, takes over by priority, and the first one is destroyed."""

from __future__ import annotations

from dataclasses import replace

from multinic.lab.scenarios.deployed import DeployedStack
from multinic.lab.scenarios.fleet import RouterState
from multinic.lab.scenarios.program import merged
from multinic.lab.scenarios.scenario import Scenario
from multinic.lab.scenarios.stage import Stage

PRIORITY = 900
"""Of the first generation's routes, the library's default; smaller wins."""


def _act(stage: Stage) -> None:
    """By the steps of docs/upgrade.md."""
    name, first = next((name, stack) for name, stack in stage.stacks.items() if stack is stage.fleet)
    old = stage.routers_of(first)
    others = {"multinic:router": {"generation": "v2", "routes": {"priority": PRIORITY + 1}}}
    program = replace(first.program, stack=f"{name}-v2")
    stage.say(f"stack {program.stack}: the second generation, at priority {PRIORITY + 1}")
    second = DeployedStack.up(stage.lab, program, merged(first.config, others), stage.say)
    stage.stacks[program.stack] = second
    stage.wait_until_serving()
    stage.mark("second generation serves")
    stage.say(f"stack {name}: its routes get priority {PRIORITY + 2}")
    first.update({"multinic:router": {"routes": {"priority": PRIORITY + 2}}}, stage.say)
    stage.mark("cut over")
    for router in old:
        stage.require_no_traffic(router)
    first.down(stage.say)
    del stage.stacks[name]
    stage.mark("first generation destroyed")


def _of_the_changed_fleet(stage: Stage, router: RouterState) -> bool:
    return router.key in {one.key for one in stage.routers_of(stage.fleet)}


def _any(first: RouterState, router: RouterState) -> bool:
    return True


SCENARIO = Scenario(
    name="upgrade",
    title="upgrade by a second generation",
    planned=True,
    why="the second generation's routes take over in the moment in which the first one's get the greater priority; the "
    "first goes when nothing passes it any more",
    act=_act,
    regions=True,
    changes_program=True,
    through=_of_the_changed_fleet,
    beside=_any,
)

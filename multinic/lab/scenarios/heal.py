"""The heal scenario: an operator has a group recreate a router that somebody finds ill."""

from __future__ import annotations

from multinic.lab.scenarios.fleet import group_of
from multinic.lab.scenarios.scenario import Scenario
from multinic.lab.scenarios.stage import Stage


def _act(stage: Stage) -> None:
    router = stage.victim
    identity, path = stage.identity(router.key), router.key.split("/", 2)[2]
    stage.lab.compute("POST", f"{group_of(stage.lab, router)}/recreateInstances", {"instances": [path]})
    stage.say(f"recreateInstances of {router.name}")
    stage.wait_until_recreated(router.key, identity)


SCENARIO = Scenario(
    name="heal",
    title="recreateInstances of one router",
    planned=True,
    why="its group drains it first: new connections go elsewhere, and the rest moves before the VM goes",
    act=_act,
)

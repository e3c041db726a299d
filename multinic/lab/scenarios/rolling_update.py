"""The rolling-update scenario: the program is run again with another template, and the groups replace every router."""

from __future__ import annotations

from multinic.lab.scenarios.scenario import Scenario
from multinic.lab.scenarios.stage import Stage

KEY = "release"


def release(stage: Stage) -> str:
    """A release that no router of the fleet has yet."""
    found = [int(stage.metadata(router.key).get(KEY, "0")) for router in stage.routers()]
    return str(max(found, default=0) + 1)


def all_have(stage: Stage, wanted: str) -> bool:
    """Whether every router serves and is of this release."""
    return all(router.serving and stage.metadata(router.key).get(KEY) == wanted for router in stage.routers())


def _act(stage: Stage) -> None:
    wanted = release(stage)
    stage.say(f"the program runs again with metadata {KEY}={wanted} for the routers")
    stage.update({"multinic:router": {"machine": {"metadata": {KEY: wanted}}}})
    stage.mark("program done")
    stage.wait(lambda: all_have(stage, wanted), "all replaced")


SCENARIO = Scenario(
    name="rolling-update",
    title="rolling update",
    planned=True,
    why="each group makes the new router first, waits until it serves, and drains the old one",
    act=_act,
    changes_program=True,
)

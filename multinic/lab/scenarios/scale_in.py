"""The scale-in scenario: the load of the scale-out ends, and the autoscaler removes the router that the streams use."""

from __future__ import annotations

from multinic.lab.scenarios.fleet import RouterState, group_of
from multinic.lab.scenarios.scale_out import CONFIG, EGRESS_SCALE, scale_out, size
from multinic.lab.scenarios.scenario import Scenario
from multinic.lab.scenarios.stage import Stage


def _prepare(stage: Stage) -> None:
    if stage.load is None:
        scale_out(stage, stage.routers()[0])


def _is_youngest(stage: Stage, router: RouterState) -> bool:
    """Whether its group has others and it is the one that goes first."""
    zone = router.key.rpartition("/")[0]
    made = {one["name"]: one["creationTimestamp"] for one in stage.lab.items(zone.split("/", 2)[2])}
    members = [one for one in stage.routers() if one.key.rpartition("/")[0] == zone]
    return len(members) > 1 and router.key == max(members, key=lambda one: made[one.name]).key


def _act(stage: Stage) -> None:
    group = group_of(stage.lab, stage.victim)
    before = size(stage, group)
    stage.end_load()
    stage.say("the load has ended")
    stage.wait(lambda: size(stage, group) < before, "autoscaler has decided")
    stage.wait(lambda: stage.router(stage.victim.key) is None, "router gone")


SCENARIO = Scenario(
    name="scale-in",
    title="scale-in",
    planned=True,
    why="its group drains the router first: new connections go elsewhere, and the rest moves before the VM goes",
    act=_act,
    prepare=_prepare,
    config=CONFIG,
    egress_scale=EGRESS_SCALE,
    through=_is_youngest,
)

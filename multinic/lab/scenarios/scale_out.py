"""The scale-out scenario: more traffic than one router of a zone shall carry, and its autoscaler adds another one."""

from __future__ import annotations

from multinic.lab.scenarios.fleet import RouterState, group_of
from multinic.lab.scenarios.flows import open_through
from multinic.lab.scenarios.scenario import Scenario
from multinic.lab.scenarios.stage import Stage

EGRESS_SCALE = 0.02
"""Makes 200 Mbit/s of the 10 Gbit/s of the routers' machine type, which this machine could not bring."""
LOAD_MEGABITS = 130.0
"""Beside the watched streams: two thirds of the cap, so 7.5 % of the CPU."""
CONFIG = {
    "multinic:router": {
        "autoscaler": {
            "cpu_target": 0.05,
            "cooldown_sec": 15,
            "stabilization_sec": 60,
            "scale_in": {"max_replicas": 1, "window_sec": 60},
        }
    }
}
"""The load asks for two routers; the shortest times that are allowed."""


def scale_out(stage: Stage, router: RouterState) -> None:
    """Puts load on a router and waits until its zone has one more."""
    group = group_of(stage.lab, router)
    before = size(stage, group)
    fleet = stage.routers()
    stage.load, _ = open_through(
        stage.lab,
        fleet,
        "load",
        stage.client,
        stage.server,
        0,
        lambda one: one.key == router.key,
        megabits=LOAD_MEGABITS,
    )
    stage.say(f"{LOAD_MEGABITS:.0f} Mbit/s more through {router.name}")
    stage.wait(lambda: size(stage, group) > before, "autoscaler has decided")
    stage.wait_until_serving()
    stage.mark("scaled out")


def size(stage: Stage, group: str) -> int:
    """How many routers a group wants."""
    return int(stage.lab.compute("GET", group)["targetSize"])


def _act(stage: Stage) -> None:
    scale_out(stage, stage.victim)


SCENARIO = Scenario(
    name="scale-out",
    title="scale-out under load",
    planned=True,
    why="a new router takes new connections only; those that there are stay where they are tracked",
    act=_act,
    config=CONFIG,
    egress_scale=EGRESS_SCALE,
)

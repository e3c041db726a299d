"""The bad-template scenario: a template whose routers never become good must stop at its first VM in each zone."""

from __future__ import annotations

from multinic.lab.errors import LabError
from multinic.lab.scenarios.fleet import RouterState
from multinic.lab.scenarios.rolling_update import KEY, all_have, release
from multinic.lab.scenarios.scenario import Scenario
from multinic.lab.scenarios.stage import Stage

SCRIPT = "systemctl disable --now hc-traffic.service hc-health.service\n"
"""A mistake in a startup script: the router forwards, but says so to nobody."""
HOLD_SECONDS = 25.0
"""After this long, plus a boot, a rollout that goes on would have reached the second router of a zone: a good one is
ready after two heal checks (20 s) or, at the earliest, with its first healthy answer and `min_ready_sec` (10 s)."""


def _act(stage: Stage) -> None:
    good = {router.key for router in stage.routers()}
    zones = {_zone(key) for key in good}
    wanted = release(stage)
    machine = {"metadata": {KEY: wanted}, "startup_script": SCRIPT}
    stage.say("the program runs again with a startup script that stops the health endpoints")
    stage.update({"multinic:router": {"machine": machine, "updates": {"wait": False}}})
    stage.mark("bad template")
    stage.wait(lambda: {_zone(router.key) for router in _others(stage, good)} == zones, "one VM in each zone")
    stage.hold(HOLD_SECONDS + stage.boot_delay)
    bad = _others(stage, good)
    if len(bad) != len(zones) or any("HEALTHY" in router.health.values() for router in bad):
        raise LabError(f"the rollout did not stop at its first VM in each zone: {[router.name for router in bad]}")
    left = {router.key for router in stage.routers() if router.serving} & good
    if left != good:
        raise LabError(f"only {len(left)} of {len(good)} good routers still serve")
    stage.mark("stopped by itself")
    repaired = str(int(wanted) + 1)
    mended = {"machine": {"metadata": {KEY: repaired}, "startup_script": ""}, "updates": {"wait": True}}
    stage.update({"multinic:router": mended})
    stage.wait(lambda: all_have(stage, repaired), "the next template went through")
    _remove_kept_templates(stage)


def _remove_kept_templates(stage: Stage) -> None:
    """Removes the template that was replaced without waiting, which the program keeps as its groups went on using it.

    It would hold the subnetworks; a user removes it by hand, too.
    """
    made = {made.id.rpartition("/")[2] for made in stage.fleet.deployment.resources}
    for template in stage.lab.items("global/instanceTemplates"):
        if not {template["name"], str(template["id"])} & made:
            stage.lab.compute("DELETE", f"global/instanceTemplates/{template['name']}")
            stage.say(f"template {template['name']}, kept since nobody waited for its groups, removed")


def _others(stage: Stage, good: set[str]) -> list[RouterState]:
    return [router for router in stage.routers() if router.key not in good]


def _zone(key: str) -> str:
    return key.split("/")[3]


SCENARIO = Scenario(
    name="bad-template",
    title="bad template, then a good one",
    planned=True,
    why="the new VM in each zone never becomes healthy, so that no old one is touched; the next template replaces both",
    act=_act,
    changes_program=True,
)

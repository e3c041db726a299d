"""The zone-outage scenario: every VM of a zone loses its power, and none can be made there until the zone is back."""

from __future__ import annotations

from multinic.lab.scenarios.fleet import RouterState
from multinic.lab.scenarios.scenario import BY_CHECK, Scenario
from multinic.lab.scenarios.stage import Stage

OUTAGE_SECONDS = 10.0
"""Long enough to see that nothing comes back in the zone and that the others carry on."""


def _without_ends(stage: Stage, router: RouterState) -> bool:
    """In a zone with neither client nor server: their own end is not what the scenario asks about."""
    return router.key.split("/")[3] not in (stage.client.zone, stage.server.zone)


def _act(stage: Stage) -> None:
    zone = stage.victim.key.split("/")[3]
    stage.lab.act_on_zone(zone, "fail")
    stage.say(f"zone {zone} is down")
    stage.wait_until_dropped(stage.victim)
    stage.hold(OUTAGE_SECONDS)
    stage.lab.act_on_zone(zone, "restore")
    stage.mark("zone is back")


SCENARIO = Scenario(
    name="zone-outage",
    title="outage of a zone",
    planned=False,
    why="the routers of the zone are silent at once and nobody says so: the traffic check finds out, and the gap ends "
    "with the first retransmission after the load balancers have moved their flows to other zones",
    act=_act,
    through=_without_ends,
    steps=BY_CHECK,
)

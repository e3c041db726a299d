"""The route-withdrawn scenario: the route to the server's network is deleted and comes back a little later."""

from __future__ import annotations

from multinic.lab.scenarios.fleet import route_to
from multinic.lab.scenarios.scenario import Scenario
from multinic.lab.scenarios.stage import Stage

GONE_SECONDS = 3.0
FIELDS = ("name", "description", "network", "destRange", "priority", "nextHopIlb", "tags")


def _act(stage: Stage) -> None:
    route = route_to(stage.lab, stage.server.address)
    stage.lab.compute("DELETE", f"global/routes/{route['name']}")
    stage.mark("route deleted")
    stage.hold(GONE_SECONDS)
    stage.lab.compute("POST", "global/routes", {key: route[key] for key in FIELDS if key in route})
    stage.mark("route is back")


SCENARIO = Scenario(
    name="route-withdrawn",
    title="route withdrawn, nothing in its place",
    planned=False,
    why=f"without a route the network drops packets without a word; the route was away for {GONE_SECONDS:g} s, and the "
    "gap ends with the first retransmission after that",
    act=_act,
    steps=(("no route", "route is back"),),
)

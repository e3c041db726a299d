"""The route-replaced scenario: the route to the server's network is withdrawn in favour of another one."""

from __future__ import annotations

from multinic.lab.scenarios.fleet import route_to
from multinic.lab.scenarios.route_withdrawn import FIELDS
from multinic.lab.scenarios.scenario import Scenario
from multinic.lab.scenarios.stage import Stage

HOLD_SECONDS = 3.0


def _act(stage: Stage) -> None:
    route = {key: value for key, value in route_to(stage.lab, stage.server.address).items() if key in FIELDS}
    other = {**route, "name": f"{route['name'][:60]}-2", "priority": route["priority"] + 1}
    stage.lab.compute("POST", "global/routes", other)
    stage.mark("second route made")
    stage.lab.compute("DELETE", f"global/routes/{route['name']}")
    stage.mark("first route deleted")
    stage.hold(HOLD_SECONDS)
    stage.lab.compute("POST", "global/routes", route)
    stage.mark("first route is back")
    stage.lab.compute("DELETE", f"global/routes/{other['name']}")
    stage.mark("second route deleted")


SCENARIO = Scenario(
    name="route-replaced",
    title="route withdrawn in favour of another",
    planned=True,
    why="the route of the next priority takes over with the same change of rules that takes the first one away",
    act=_act,
)

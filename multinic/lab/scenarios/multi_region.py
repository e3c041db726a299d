"""The multi-region scenario: two region stacks, clients in each reach servers in the other, and a router is drained."""

from __future__ import annotations

from multinic.lab.errors import LabError
from multinic.lab.scenarios import drain
from multinic.lab.scenarios.fleet import RouterState
from multinic.lab.scenarios.scenario import Scenario
from multinic.lab.scenarios.stage import Stage


def _require_own_region(stage: Stage) -> None:
    """Raises `LabError` unless each packet passes the routers of its destination's region."""
    for client, server in stage.pairs:
        for source, destination in ((client, server), (server, client)):
            way = f"source={source.address}&destination={destination.address}"
            first = stage.lab.request("GET", f"/lab/v1/packet?{way}")["steps"][0]
            regions = {one["machine"].split("/")[3].rpartition("-")[0] for one in first.get("candidates", [])}
            if regions != {destination.zone.rpartition("-")[0]}:
                raise LabError(f"from {source.name} ({source.zone}) to {destination.zone}: by routers in {regions}")


def _act(stage: Stage) -> None:
    _require_own_region(stage)
    drain.SCENARIO.act(stage)


def _any(first: RouterState, router: RouterState) -> bool:
    return True


SCENARIO = Scenario(
    name="multi-region",
    title="two regions, a router drained",
    planned=True,
    why="clients of both regions use the next hop of their destination's region, and answers that of their own; a "
    "router that goes is replaced by the others of its region",
    act=_act,
    regions=True,
    beside=_any,
)

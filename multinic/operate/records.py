"""Routes that were taken away, kept as routes: each leaves one that applies to no VM and says what it stands for.

The record is in the project itself, so that whoever comes next can put the route back, from any machine. It is made
before the route is deleted, and deleted after the route is back: whatever breaks in between, nothing is forgotten.
Its next hop is the internet gateway and not the load balancer, so that it keeps nothing from being deleted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from multinic.operate.api import Api, message
from multinic.operate.errors import OperateError
from multinic.operate.fleet import Fleet, Route

TAG = "multinic-withdrawn"
"""Network tag that no VM has: a route with it applies to none."""

CUT_OVER = "multinic cut-over to "
"""How the description of a cut-over's temporary route begins; the rest is the fleet's name."""

_FIRST = "multinic withdrawn: "
_GATEWAY = "projects/{project}/global/gateways/default-internet-gateway"
_LONGEST = 63


def derived(name: str, end: str) -> str:
    """A name made from another one, as long as names may be, and always the same."""
    if len(name) + len(end) + 1 <= _LONGEST:
        return f"{name}-{end}"
    digest = hashlib.sha256(name.encode()).hexdigest()[:6]
    return f"{name[: _LONGEST - len(end) - 8].rstrip('-')}-{digest}-{end}"


def record_of(route: Route) -> Route:
    """The route that stands for a withdrawn one."""
    kept = {"name": route.name, "hop": route.next_hop, "tags": list(route.tags), "text": route.description}
    return Route(
        name=derived(route.name, "withdrawn"),
        project=route.project,
        network=route.network,
        network_link=route.network_link,
        destination=route.destination,
        priority=route.priority,
        tags=(TAG,),
        next_hop=_GATEWAY.format(project=route.project),
        description=_FIRST + json.dumps(kept, separators=(",", ":")),
    )


def original_of(record: Route) -> Route | None:
    """The route that a record stands for; None where a route is no record."""
    if TAG not in record.tags or not record.description.startswith(_FIRST):
        return None
    try:
        kept: dict[str, Any] = json.loads(record.description.removeprefix(_FIRST))
        return Route(
            name=str(kept["name"]),
            project=record.project,
            network=record.network,
            network_link=record.network_link,
            destination=record.destination,
            priority=record.priority,
            tags=tuple(str(tag) for tag in kept["tags"]),
            next_hop=str(kept["hop"]),
            description=str(kept["text"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


def withdrawn(fleet: Fleet) -> list[tuple[Route, Route]]:
    """(record, route) of the fleet's routes that were taken away."""
    found = []
    for record in fleet.routes:
        original = original_of(record)
        if original is not None and fleet.own(original):
            found.append((record, original))
    return found


def insert(api: Api, route: Route, existing: Sequence[Route]) -> None:
    """Makes a route, unless the very same is there.

    Raises:
        OperateError: It was refused, or another route has its name.
    """
    for other in existing:
        if (other.name, other.project) == (route.name, route.project):
            ours = (route.network_link, route.destination, route.priority, sorted(route.tags), route.next_hop)
            theirs = (other.network_link, other.destination, other.priority, sorted(other.tags), other.next_hop)
            if ours == theirs:
                return
            raise OperateError(f"another route is called {route.name} already ({other.title}); delete or rename it")
    hop = {"next_hop_gateway" if "/gateways/" in route.next_hop else "next_hop_ilb": route.next_hop}
    body = message(
        "Route",
        name=route.name,
        network=route.network_link,
        dest_range=route.destination,
        priority=route.priority,
        tags=list(route.tags),
        description=route.description,
        **hop,
    )
    api.do("Routes", "insert", project=route.project, route_resource=body)


def delete(api: Api, route: Route) -> None:
    """Deletes a route; one that is gone already is no error.

    Raises:
        OperateError: It was refused.
    """
    try:
        api.do("Routes", "delete", project=route.project, route=route.name)
    except OperateError as error:
        if "was not found" not in str(error):
            raise

"""Drain and undrain: a router closes its traffic check because its metadata says so, and forwards what still comes."""

from __future__ import annotations

import time
from collections.abc import Sequence

from multinic.operate.api import Api, message
from multinic.operate.errors import OperateError
from multinic.operate.fleet import DRAIN_KEY, Fleet, Router
from multinic.operate.plan import Plan, last_router, remaining, rollouts
from multinic.operate.reading import Reader
from multinic.operate.waiting import Say, until


def plan(fleet: Fleet, routers: Sequence[Router]) -> Plan[Router]:
    """What a drain of these VMs does."""
    items = tuple(one for one in routers if not one.drained)
    zones = {one.zone for one in items}
    warnings = rollouts(fleet, zones)
    for group in fleet.groups:
        mine = [one for one in items if one.group == group.name]
        if mine and len(mine) == sum(one.group == group.name for one in fleet.routers):
            warnings.append(
                f"VMs that join {group.zone} later come undrained; drain it again then, or set its size to 0"
            )
        if mine and group.autoscaler and group.autoscaler.mode == "ON" and group.size > group.autoscaler.least:
            warnings.append(f"the autoscaler of {group.zone} may take away a VM that has nothing to do")
    if items:
        warnings.append("a VM that is recreated (heal, rolling-update, repair) comes back undrained")
    return Plan(
        items=items,
        changes=tuple(f"set {DRAIN_KEY}=true on {one.name} ({one.zone})" for one in items),
        idle=tuple(f"{one.name} is drained already" for one in routers if one.drained),
        traffic=(
            "new connections go to other routers within some seconds; those that are open move with their next packet",
            remaining(fleet, items),
        )
        if items
        else (),
        warnings=tuple(warnings),
        refusal=last_router(fleet, items) + _useless(fleet, items),
    )


def _useless(fleet: Fleet, items: Sequence[Router]) -> str:
    # https://docs.cloud.google.com/load-balancing/docs/internal/ilb-next-hop-overview: all unhealthy means all
    if items and last_router(fleet, items):
        return ": a load balancer without healthy routers sends to all of them, so nothing would be drained"
    return ""


def plan_undrain(routers: Sequence[Router]) -> Plan[Router]:
    """What an undrain of these VMs does."""
    items = tuple(one for one in routers if one.drained)
    return Plan(
        items=items,
        changes=tuple(f"remove {DRAIN_KEY} from {one.name} ({one.zone})" for one in items),
        idle=tuple(f"{one.name} is not drained" for one in routers if not one.drained),
        traffic=("the routers get connections again; some that are open move to them, and go on",) if items else (),
    )


def apply(api: Api, fleet: Fleet, routers: Sequence[Router], *, drained: bool) -> None:
    """Writes the metadata.

    Raises:
        OperateError: It was refused; the VMs before it are done.
    """
    for router in routers:
        _write(api, fleet, router, drained=drained)


def wait(reader: Reader, fleet: Fleet, routers: Sequence[Router], say: Say, *, drained: bool, timeout: float) -> None:
    """Waits until the load balancers have noticed.

    Raises:
        StoppedError: They did not in time.
    """
    names, began = {router.name for router in routers}, time.monotonic()

    def noticed(now: Fleet) -> bool:
        mine = [one for one in now.routers if one.name in names]
        # A VM that a group took away meanwhile gets no traffic either.
        return all(not any(map(one.serves, now.networks)) if drained else now.serving(one) for one in mine)

    what = "the load balancers noticed" if drained else "healthy in every network"
    until(reader, fleet, noticed, what, timeout=timeout)
    say(f"{what} after {time.monotonic() - began:.1f} s")


def _write(api: Api, fleet: Fleet, router: Router, *, drained: bool, attempts: int = 4) -> None:
    where = {"project": fleet.project, "zone": router.zone, "instance": router.name}
    for left in reversed(range(attempts)):
        metadata = api.get("Instances", **where).metadata
        items = [item for item in metadata.items if item.key != DRAIN_KEY]
        if drained:
            items.append(message("Items", key=DRAIN_KEY, value="true"))
        try:
            api.do(
                "Instances",
                "set_metadata",
                **where,
                metadata_resource={"fingerprint": metadata.fingerprint, "items": items},
            )
            return
        except OperateError as error:
            # Somebody else wrote between our reading and our writing; theirs must not be lost.
            if left == 0 or "fingerprint" not in str(error).lower():
                raise

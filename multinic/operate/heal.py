"""Heal: a group recreates a VM under its name, draining it first."""

from __future__ import annotations

import time
from collections.abc import Sequence

from multinic.operate.api import Api
from multinic.operate.errors import StoppedError
from multinic.operate.fleet import Fleet, Router
from multinic.operate.plan import Plan, last_router, remaining, rollouts
from multinic.operate.reading import Reader
from multinic.operate.waiting import Say, until

TIMEOUT_SECONDS = 900.0
"""Draining, shutting down, booting and two heal checks take about two minutes with the defaults."""


def plan(fleet: Fleet, router: Router) -> Plan[Router]:
    """What recreating a VM does."""
    group = fleet.group(router.group)
    if not router.stays and router.action != "NONE":
        return Plan(idle=(f"{router.name} is being taken care of already: {router.action.lower()}",))
    warnings = rollouts(fleet, {router.zone})
    if router.template != group.template:
        warnings.append(f"it comes back with {group.template}, the group's template now, instead of {router.template}")
    if router.drained:
        warnings.append("it is drained now and comes back undrained")
    return Plan(
        items=(router,),
        changes=(f"recreate {router.name} ({router.zone}) under the same name",),
        traffic=(
            "it is drained first: new connections go elsewhere, those that are open move, the others do not notice",
            remaining(fleet, (router,)),
        ),
        warnings=tuple(warnings),
        refusal=last_router(fleet, (router,)),
    )


def apply(api: Api, fleet: Fleet, routers: Sequence[Router]) -> None:
    """Asks the groups to recreate VMs.

    Raises:
        OperateError: It was refused.
    """
    for router in routers:
        path = f"projects/{fleet.project}/zones/{router.zone}/instances/{router.name}"
        api.do(
            "InstanceGroupManagers",
            "recreate_instances",
            project=fleet.project,
            zone=router.zone,
            instance_group_manager=router.group,
            instance_group_managers_recreate_instances_request_resource={"instances": [path]},
        )


def wait(
    reader: Reader, fleet: Fleet, router: Router, say: Say, *, timeout: float = TIMEOUT_SECONDS, steady: bool = False
) -> Fleet:
    """Waits until another VM serves under the name.

    Args:
        reader: Reads the fleet.
        fleet: As it was before.
        router: As it was before.
        say: Gets a line for each step.
        timeout: Seconds.
        steady: Stop when another router that served does not serve any more.

    Raises:
        StoppedError: Not in time, or health dropped.
    """
    began, told = time.monotonic(), ""
    dropped: set[str] = set()

    def watch(now: Fleet) -> None:
        nonlocal told, dropped
        state = progress(now, router)
        if state != told:
            say(f"{router.name}: {state}, after {time.monotonic() - began:.1f} s")
            told = state
        if steady:
            seen = not_serving(now, fleet, router)
            # Twice in a row: a state may be read while it changes.
            if seen & dropped:
                raise StoppedError(f"health dropped: {', '.join(sorted(seen & dropped))} does not serve any more")
            dropped = seen

    def done(now: Fleet) -> bool:
        one = now.router(router.name)
        # NONE: the heal check is content as well, and the group has nothing more to do with it.
        return one is not None and one.id not in ("", router.id) and one.action == "NONE" and now.serving(one)

    now = until(reader, fleet, done, f"{router.name} serves again", timeout=timeout, meanwhile=watch)
    say(f"{router.name}: another VM, and it serves in every network, after {time.monotonic() - began:.1f} s")
    return now


def progress(fleet: Fleet, before: Router) -> str:
    """How far a VM's recreation is."""
    now = fleet.router(before.name)
    if now is None or not now.id:
        return "the old VM is gone"
    if now.id == before.id:
        return "draining" if now.action == "RECREATING" else f"the old VM is {now.status.lower()}"
    if now.status != "RUNNING":
        return f"the new VM is {now.status.lower()}"
    return "the new VM runs, its checks are not content yet"


def not_serving(now: Fleet, before: Fleet, router: Router) -> set[str]:
    """Other VMs that served before, are still there, and do not serve now."""
    served = {one.name for one in before.routers if before.serving(one) and one.name != router.name}
    return {one.name for one in now.routers if one.name in served and not now.serving(one)}

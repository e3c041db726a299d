"""Panic: the kernel of a router dies at once, as an exercise, and the seconds are counted."""

from __future__ import annotations

import time
from contextlib import suppress

from multinic.operate import shell
from multinic.operate.door import Door
from multinic.operate.errors import OperateError
from multinic.operate.fleet import Fleet, Router
from multinic.operate.plan import Plan, last_router, remaining, rollouts
from multinic.operate.reading import Reader
from multinic.operate.waiting import Say, until

PANIC = ("systemctl", "start", "kpanic")
TIMEOUT_SECONDS = 900.0


def plan(fleet: Fleet, router: Router) -> Plan[Router]:
    """What a panic does."""
    if router.status != "RUNNING":
        return Plan(idle=(f"{router.name} does not run: it is {router.status.lower() or 'not there yet'}",))
    return Plan(
        items=(router,),
        changes=(f"panic the kernel of {router.name} ({router.zone}): {' '.join(PANIC)}",),
        traffic=(
            "connections through it pause until the traffic check has noticed, then go on by other routers",
            remaining(fleet, (router,)),
        ),
        warnings=tuple(rollouts(fleet, {router.zone})),
        refusal=last_router(fleet, (router,)),
    )


def apply(door: Door, fleet: Fleet, router: Router) -> None:
    """Panics the kernel.

    Raises:
        OperateError: There is no way to a shell on the router, or it refused.
    """
    if not door.lab:
        shell.run(door, fleet, router, PANIC, may_break=True)
        return
    # A guest of the lab is a container: its unit runs, but the kernel's part can only be played by the lab.
    with suppress(OperateError):
        shell.run(door, fleet, router, PANIC, may_break=True)
    key = f"projects/{fleet.project}/zones/{router.zone}/instances/{router.name}"
    door.request("lab", "POST", f"v1/machines/{key}:panic")


def wait(
    reader: Reader, fleet: Fleet, router: Router, say: Say, *, timeout: float = TIMEOUT_SECONDS
) -> dict[str, float]:
    """Counts the seconds until the load balancers noticed, and until the router serves again.

    Returns:
        ``detected`` and ``serves``, in seconds after the panic, as exact as the readings are frequent.

    Raises:
        StoppedError: Not in time.
    """
    began, marks = time.monotonic(), {}
    silent = f"no load balancer sends {router.name} new connections"

    def unseen(now: Fleet) -> bool:
        one = now.router(router.name)
        return one is None or not any(map(one.serves, now.networks))

    def back(now: Fleet) -> bool:
        one = now.router(router.name)
        return one is not None and one.stays and now.serving(one)

    for name, test, what in (("detected", unseen, silent), ("serves", back, f"{router.name} serves again")):
        fleet = until(reader, fleet, test, what, timeout=timeout)
        marks[name] = round(time.monotonic() - began, 1)
        say(f"{what}, {marks[name]:.1f} s after the panic")
    return marks

"""What a command is going to do, worked out and explained before anything is done."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Generic, TypeVar

from multinic.operate.errors import RefusedError
from multinic.operate.fleet import Fleet, Router

T = TypeVar("T")


@dataclass(frozen=True)
class Plan(Generic[T]):
    """A change that has not begun.

    Attributes:
        items: What is changed, in order.
        changes: What is done, a line each.
        idle: What is so already, and needs nothing.
        traffic: What connections notice.
        warnings: What else is worth knowing.
        refusal: Why it is not done without ``--force``; empty if nothing speaks against it.
    """

    items: tuple[T, ...] = ()
    changes: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    traffic: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    refusal: str = ""

    def require(self, *, force: bool) -> None:
        """Raises `RefusedError` where something speaks against it, unless it is forced."""
        if self.refusal and not force:
            raise RefusedError(f"{self.refusal}; --force does it nevertheless")


def last_router(fleet: Fleet, taken: Collection[Router]) -> str:
    """Why VMs may not be taken away: a network would lose the last router that serves it; empty if none would."""
    names = {router.name for router in taken}
    for network in fleet.networks:
        lost = [router.name for router in fleet.healthy(network) if router.name in names]
        if lost and not fleet.left(network, names):
            others = [router.name for router in fleet.healthy(network) if router.name not in names]
            leaving = f" ({', '.join(others)} is about to go as well)" if others else ""
            return f"{', '.join(lost)} would be the last healthy router of network {network} to go{leaving}"
    return ""


def remaining(fleet: Fleet, taken: Collection[Router]) -> str:
    """How many routers each network keeps, for people."""
    names = {router.name for router in taken}
    counts = [f"{network} {len(fleet.left(network, names))} of {len(fleet.routers)}" for network in fleet.networks]
    return f"healthy routers left: {', '.join(counts)}"


def rollouts(fleet: Fleet, zones: Collection[str]) -> list[str]:
    """Warnings about groups of these zones that are replacing VMs right now."""
    found = []
    for group in fleet.groups:
        if group.zone in zones and not group.reached:
            doing = ", ".join(f"{count} {action}" for action, count in group.actions.items()) or "about to begin"
            found.append(f"a rollout runs in {group.zone} ({doing}): a VM there may be replaced at any moment")
    return found

"""What a scenario is: something that happens to a serving fleet while connections run through it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from multinic.lab.scenarios.fleet import RouterState
from multinic.lab.scenarios.stage import Stage


def _same(first: RouterState, other: RouterState) -> bool:
    return other == first


@dataclass(frozen=True)
class Scenario:
    """One scenario.

    Attributes:
        name: As `multinic lab run` takes it.
        title: What happens, for people.
        planned: Somebody does it on purpose: nothing may be lost (`outcome.PROMISED_GAP_SECONDS`).
        why: What the connections notice of it, and why.
        act: Does it. Returns when it is over; that the fleet is whole again is waited for by the caller.
        prepare: What must be so before the connections are opened.
        changes_program: It runs the program again, which needs the real engine.
        regions: It runs on the networks, region and endpoints stacks of two regions, which needs the real engine;
            else on the `dev` stack.
        config: Laid over the stack's configuration; scenarios of one configuration share a fleet.
        egress_scale: Factor on what each machine type may send; None leaves the run's.
        through: Which routers may carry the first stream; every one where it is None.
        beside: Given the first stream's router, which routers may carry the other streams; by default the same one.
        steps: What a gap is made of, in order: its name, and the mark with which it ends. What is left after the last
            one is TCP's wait for its next retransmission.
    """

    name: str
    title: str
    planned: bool
    why: str
    act: Callable[[Stage], None]
    prepare: Callable[[Stage], None] | None = None
    changes_program: bool = False
    regions: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    egress_scale: float | None = None
    through: Callable[[Stage, RouterState], bool] | None = None
    beside: Callable[[RouterState, RouterState], bool] = _same
    steps: tuple[tuple[str, str], ...] = ()

    @property
    def needs_engine(self) -> bool:
        """Whether it can be run by the real engine only."""
        return self.changes_program or self.regions


BY_CHECK = (("detection", "detected"), ("rules", "rules changed"))
"""Steps of a gap that ends since the load balancers stop using a router."""

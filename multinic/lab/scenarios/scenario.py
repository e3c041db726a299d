"""What a scenario is: something that happens to a serving fleet while connections run through it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from multinic.lab.scenarios.fleet import RouterState
from multinic.lab.scenarios.stage import Stage


@dataclass(frozen=True)
class Scenario:
    """One scenario.

    Attributes:
        name: As `multinic lab run` takes it.
        title: What happens, for people.
        planned: Somebody does it on purpose: nothing may be lost (`outcome.PROMISED_GAP_SECONDS`).
        why: What the connections notice of it, and why.
        act: Does it. Returns when it is over; that the fleet is whole again is waited for by the caller.
        changes_program: It runs the program again, which needs the real engine.
        through: Which routers may carry the streams; every one where it is None.
    """

    name: str
    title: str
    planned: bool
    why: str
    act: Callable[[Stage], None]
    changes_program: bool = False
    through: Callable[[Stage, RouterState], bool] | None = None

"""A VM of a managed instance group, as the group's controller knows it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field


@dataclass
class Managed:
    """A VM of the group.

    Attributes:
        name: Its name, kept when it is repaired.
        zone: Its zone's name.
        template: Key of the template that it is made from.
        action: ``currentAction``.
        since: Lab time at which it ran last, for the initial delay.
        available_from: Lab time at which it ran and, where the group heals, was healthy once; None before that.
        restarted: An update restarted it, and did not make it anew since.
        born: Lab time at which it joined the group.
    """

    name: str
    zone: str
    template: str
    action: str = "CREATING"
    since: float | None = None
    available_from: float | None = None
    restarted: bool = False
    born: float = 0.0
    job: asyncio.Task[None] | None = field(default=None, repr=False)

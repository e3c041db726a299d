"""What happened in the lab and when: health changes, repairs, machines that started, panicked or stopped."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

log = logging.getLogger("multinic.lab")


@dataclass(frozen=True)
class Event:
    """One thing that happened.

    Attributes:
        number: Counts up by one from 1; what ``after`` of the REST call refers to.
        time: ``time.monotonic()`` of the machine that the lab runs on, in seconds.
        wall: Unix time in seconds.
        kind: ``health``, ``machine`` or ``group``.
        subject: Key of what it happened to.
        detail: What happened; always has ``what``.
    """

    number: int
    time: float
    wall: float
    kind: str
    subject: str
    detail: dict[str, Any]


class Events:
    """The log; keeps the newest `limit` events."""

    def __init__(self, limit: int = 20_000) -> None:
        self._events: deque[Event] = deque(maxlen=limit)
        self._next = 1
        self._listeners: list[Callable[[Event], None]] = []

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Has `listener` called with each new event."""
        self._listeners.append(listener)

    def add(self, kind: str, subject: str, what: str, **detail: Any) -> Event:
        """Notes that something happened now."""
        event = Event(self._next, time.monotonic(), time.time(), kind, subject, {"what": what, **detail})
        self._next += 1
        self._events.append(event)
        log.info("%s %s: %s %s", kind, subject, what, detail or "")
        for listener in self._listeners:
            listener(event)
        return event

    def after(self, number: int = 0) -> list[Event]:
        """Events later than the one with that number, oldest first."""
        return [event for event in self._events if event.number > number]

    def as_json(self, number: int = 0) -> list[dict[str, Any]]:
        """`after`, as JSON objects."""
        return [asdict(event) for event in self.after(number)]

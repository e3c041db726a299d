"""Waits for what a fleet is to become, reading it again and again."""

from __future__ import annotations

import time
from collections.abc import Callable

from multinic.operate.errors import OperateError, StoppedError
from multinic.operate.fleet import Fleet
from multinic.operate.reading import Reader

SILENCE_SECONDS = 30.0
"""How long a fleet may be unreadable while something is waited for."""

Say = Callable[[str], None]
"""Gets a line for each thing that happens."""


def until(
    reader: Reader,
    fleet: Fleet,
    test: Callable[[Fleet], bool],
    what: str,
    *,
    timeout: float,
    meanwhile: Callable[[Fleet], None] = lambda fleet: None,
) -> Fleet:
    """Reads the fleet's VMs until a test is content, and returns the fleet as it is then.

    Args:
        reader: Reads it.
        fleet: As it was.
        test: Whether it is so.
        what: What is waited for, for people.
        timeout: Seconds.
        meanwhile: Is shown each state that was not so yet; may raise.

    Raises:
        StoppedError: Not in time, or the fleet could not be read for `SILENCE_SECONDS`.
    """
    began = answered = time.monotonic()
    while True:
        try:
            fleet = reader.members(fleet)
            answered = time.monotonic()
            if test(fleet):
                return fleet
            meanwhile(fleet)
        except StoppedError:
            raise
        except OperateError as error:
            # A moment without answers is no reason to let go of a change that is under way.
            if time.monotonic() - answered > SILENCE_SECONDS:
                raise StoppedError(f"{what}: cannot be seen any more ({error}); what was begun goes on") from None
        if time.monotonic() - began >= timeout:
            raise StoppedError(f"{what}: not within {timeout:.0f} s; `multinic status` shows how things are")
        time.sleep(reader.api.door.pause)

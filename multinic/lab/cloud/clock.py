"""Time for the controllers: real, or faster by a stated factor."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta


class Clock:
    """Counts lab seconds.

    Args:
        speed: Lab seconds that pass in one real second. Only the controllers' own waiting runs faster; guests and
            packets do not.
    """

    def __init__(self, speed: float = 1.0) -> None:
        if speed <= 0:
            raise ValueError(f"speed must be above 0, not {speed}")
        self.speed = speed
        self._start = time.monotonic()
        self._began = datetime.now(UTC)

    def now(self) -> float:
        """Lab seconds on a clock that only goes forward."""
        return self._start + (time.monotonic() - self._start) * self.speed

    def wall(self) -> datetime:
        """The lab's date and time: the real one when the lab began, and from then on at the lab's speed."""
        return self._began + timedelta(seconds=self.now() - self._start)

    async def sleep(self, seconds: float) -> None:
        """Waits that many lab seconds."""
        await asyncio.sleep(max(0.0, seconds) / self.speed)

    async def wait(self, event: asyncio.Event, seconds: float | None) -> bool:
        """Waits for an event, at most that many lab seconds (None: as long as it takes); True when it came."""
        # Not wait_for: in Python 3.11 it swallows a cancellation that comes together with the event.
        try:
            async with asyncio.timeout(None if seconds is None else max(0.0, seconds) / self.speed):
                await event.wait()
        except TimeoutError:
            return False
        return True


def timestamp() -> str:
    """Now, as Google writes ``creationTimestamp``."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "-00:00")

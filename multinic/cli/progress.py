"""Lines of progress, and a sign of life where nothing is said for a while."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self, TextIO

QUIET_SECONDS = 5.0


class Progress:
    """Prints lines; after `QUIET_SECONDS` without one says how long the last has been going on.

    Used as a context manager; what it does in its block is never without a sign of life for longer.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        """Prints to `stream`, by default standard output."""
        self._stream = stream
        self._lock = threading.Lock()
        self._spoke = self._began = time.monotonic()
        self._ended = threading.Event()
        self._reminder = threading.Thread(target=self._remind, daemon=True)

    def __call__(self, line: str) -> None:
        """Prints a line."""
        with self._lock:
            print(line, flush=True, file=self._stream)
            self._spoke = self._began = time.monotonic()

    def __enter__(self) -> Self:
        self._reminder.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._reminder.join()

    def _remind(self) -> None:
        while not self._ended.wait(1.0):
            with self._lock:
                now = time.monotonic()
                if now - self._spoke >= QUIET_SECONDS:
                    print(f"  … {now - self._began:.0f} s", flush=True, file=self._stream)
                    self._spoke = now

"""What happened, for people and programs: always a line in the journal, and a file for `multinic-log` to send on."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import paths

PRIORITIES = {"DEBUG": 7, "INFO": 6, "NOTICE": 5, "WARNING": 4, "ERROR": 3, "CRITICAL": 2}
MAX_SPOOLED = 200
"""Events that wait while Cloud Logging cannot be reached; beyond it the oldest go. The journal has them all."""


def emit(event: str, severity: str = "INFO", **fields: Any) -> None:
    """Records an event.

    Args:
        event: Stable name, for example ``repaired``.
        severity: Of Cloud Logging.
        fields: What belongs to it; must fit JSON.
    """
    words = " ".join(f"{key}={json.dumps(value, ensure_ascii=False, default=str)}" for key, value in fields.items())
    # The number in front is the priority, as systemd reads it from a service's output.
    prefix = f"<{PRIORITIES.get(severity, 6)}>" if "JOURNAL_STREAM" in os.environ else ""
    try:
        print(f"{prefix}{event} {words}".rstrip(), file=sys.stderr, flush=True)
        record = {"event": event, "severity": severity, "time": time.time(), **fields}
        os.makedirs(paths.SPOOL, mode=0o700, exist_ok=True)
        paths.write(
            os.path.join(paths.SPOOL, f"{time.time_ns():020d}-{os.getpid()}.json"),
            json.dumps(record, default=str),
            0o600,
        )
        for name in spooled()[:-MAX_SPOOLED]:
            os.unlink(os.path.join(paths.SPOOL, name))
    except OSError:
        pass  # Neither a full /run nor a closed output is a reason to stop routing.


def spooled() -> list[str]:
    """Names of the events that wait, oldest first."""
    try:
        return sorted(name for name in os.listdir(paths.SPOOL) if name.endswith(".json"))
    except OSError:
        return []

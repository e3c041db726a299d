"""Log entries as Cloud Logging keeps them: written by guests and programs, found again by filter.

https://cloud.google.com/logging/docs/reference/v2/rest/v2/entries. Kept in memory, the newest 50,000.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any

from .clock import timestamp
from .errors import ApiError
from .store import Object

SEVERITIES = ("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY")
_LOG_NAME = re.compile(r"projects/([^/]+)/logs/[\w.%-]{1,512}")
_KEPT = 50_000


class LogEntries:
    """All entries, oldest first."""

    def __init__(self, project: str) -> None:
        self._project = project
        self._entries: deque[Object] = deque(maxlen=_KEPT)

    def write(self, body: Object) -> dict[str, Any]:
        """``entries.write``: request-wide log name, resource and labels fill in what an entry leaves out."""
        made = []
        for index, entry in enumerate(body.get("entries") or []):
            name = str(entry.get("logName") or body.get("logName") or "")
            found = _LOG_NAME.fullmatch(name)
            if found is None:
                raise ApiError(400, "badRequest", f"entries[{index}]: the log name '{name[:100]}' is malformed.")
            if found[1] != self._project:
                raise ApiError(403, "forbidden", f"Permission denied on resource project {found[1]}.")
            now = timestamp().replace("-00:00", "Z")
            made.append(
                {
                    "severity": "DEFAULT",
                    "timestamp": now,
                    **entry,
                    "logName": name,
                    "receiveTimestamp": now,
                    "resource": entry.get("resource") or body.get("resource") or {"type": "global"},
                    "labels": {**(body.get("labels") or {}), **(entry.get("labels") or {})},
                }
            )
        if not body.get("dryRun"):
            self._entries.extend(made)
        return {}

    def all(self) -> list[dict[str, Any]]:
        """The entries, oldest first; each with ``_severity``, its rank, for comparisons."""
        return [{**entry, "_severity": SEVERITIES.index(entry["severity"])} for entry in self._entries]

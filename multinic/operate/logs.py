"""The routers' own entries in Cloud Logging.

https://cloud.google.com/logging/docs/reference/v2/rest/v2/entries/list
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from multinic.operate.door import Door
from multinic.operate.errors import WordError

LOG = "multinic"
SEVERITIES = ("DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL")
PAGE = 1000
_SPAN = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_OVERLAP = timedelta(seconds=30)
"""Entries may arrive later than they were written; those seen before are left out."""


@dataclass(frozen=True)
class Query:
    """What is wanted.

    Attributes:
        project: Project of the routers.
        fleet: What their VMs' names begin with; empty for all.
        machine: Name of one VM; empty for all.
        severity: Least severity.
        event: Name of the event, such as ``drained``; empty for all.
    """

    project: str
    fleet: str = ""
    machine: str = ""
    severity: str = "DEBUG"
    event: str = ""

    def filter(self, since: datetime) -> str:
        """In Cloud Logging's own language."""
        found = [
            f'logName="projects/{self.project}/logs/{LOG}"',
            f'timestamp>="{since.isoformat(timespec="milliseconds").replace("+00:00", "Z")}"',
        ]
        if self.severity != "DEBUG":
            found.append(f"severity>={self.severity}")
        if self.machine:
            found.append(f'jsonPayload.instance="{self.machine}"')
        elif self.fleet:
            found.append(f'jsonPayload.instance:"{self.fleet}-"')
        if self.event:
            found.append(f'jsonPayload.event="{self.event}"')
        return " AND ".join(found)


@dataclass(frozen=True)
class Entry:
    """One entry."""

    id: str
    time: str
    severity: str
    machine: str
    event: str
    fields: dict[str, Any]

    @property
    def text(self) -> str:
        """The event's fields, for people."""
        return " ".join(f"{name}={_plain(value)}" for name, value in self.fields.items())


def span(text: str) -> timedelta:
    """A span such as 90s, 15m, 2h or 1d.

    Raises:
        WordError: It is none.
    """
    found = _SPAN.fullmatch(text.strip())
    # Cloud Logging keeps entries for 10 years at most.
    if found is None or int(found[1]) * _UNITS[found[2]] > 3650 * _UNITS["d"]:
        raise WordError(f"--since {text}: must be a span such as 90s, 15m, 2h or 1d, of 3650d at most")
    return timedelta(seconds=int(found[1]) * _UNITS[found[2]])


def read(door: Door, query: Query, since: datetime, limit: int) -> list[Entry]:
    """The newest entries, oldest first.

    Raises:
        OperateError: Cloud Logging's refusal.
    """
    found: list[Entry] = []
    token = ""
    while len(found) < limit:
        body = {
            "resourceNames": [f"projects/{query.project}"],
            "filter": query.filter(since),
            "orderBy": "timestamp desc",
            "pageSize": min(PAGE, limit),
            **({"pageToken": token} if token else {}),
        }
        answer = door.request("logging", "POST", "v2/entries:list", body)
        entries = [_entry(one) for one in answer.get("entries", [])]
        found += [one for one in entries if one.machine.startswith(f"{query.fleet}-" if query.fleet else "")]
        token = answer.get("nextPageToken", "")
        if not token:
            break
    return found[:limit][::-1]


def follow(door: Door, query: Query, since: datetime, *, pause: float = 2.0) -> Iterator[Entry]:
    """New entries as they come, for ever.

    Raises:
        OperateError: Cloud Logging's refusal.
    """
    seen: set[str] = set()
    while True:
        began = datetime.now(UTC)
        entries = read(door, query, since, PAGE)
        yield from (one for one in entries if one.id not in seen)
        seen = {one.id for one in entries}
        since = max(since, began - _OVERLAP)
        time.sleep(pause)


def _entry(one: dict[str, Any]) -> Entry:
    payload = one.get("jsonPayload") or {"message": one.get("textPayload", "")}
    stamp, severity = str(one.get("timestamp", "")), str(one.get("severity", "DEFAULT"))
    machine, event = str(payload.get("instance", "")), str(payload.get("event", ""))
    fields = {name: value for name, value in payload.items() if name not in ("event", "instance", "zone")}
    return Entry(str(one.get("insertId") or f"{stamp} {machine} {event}"), stamp, severity, machine, event, fields)


def _plain(value: Any) -> str:
    text = str(value)
    return f'"{text}"' if " " in text else text

"""The engine's event log, read while it is written: lines for people, errors, and a summary."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

from multinic.lab.pulumi.deployment import REMIND_EVERY_S, Progress

_DOING = {
    "create": "creating",
    "create-replacement": "creating anew",
    "update": "updating",
    "delete": "deleting",
    "delete-replaced": "deleting replaced",
    "read": "reading",
    "refresh": "reading",
    "import": "importing",
}
_AGAIN = "an unhandled error occurred: "
_FAILED = "update failed"
_TAGS = re.compile(r"<\{%.*?%\}>")


class EventLog:
    """Reads the file that ``--event-log`` writes.

    Source of its form: https://github.com/pulumi/pulumi/blob/master/sdk/go/common/apitype/events.go.

    Attributes:
        errors: What program and resources reported, for people.
        changes: How many resources were touched, by what was done to them; what stayed the same is left out.
    """

    def __init__(self, path: Path, say: Progress) -> None:
        self.errors: list[str] = []
        self.changes: dict[str, int] = {}
        self._path = path
        self._say = say
        self._position = 0
        self._under_way: dict[str, str] = {}
        self._last = time.monotonic()

    def read(self) -> None:
        """Take in what has been written since the last time."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._position)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._position += len(line)
                    self._take(json.loads(line))
        if self._under_way and time.monotonic() - self._last > REMIND_EVERY_S:
            self._tell("still at " + ", ".join(sorted(self._under_way.values())))

    def _tell(self, line: str) -> None:
        self._last = time.monotonic()
        self._say(line)

    def _take(self, event: dict[str, Any]) -> None:
        if "preludeEvent" in event:
            self._under_way.clear()
        elif "resourcePreEvent" in event:
            self._begin(event["resourcePreEvent"])
        elif "resOutputsEvent" in event:
            self._under_way.pop(event["resOutputsEvent"]["metadata"]["urn"], None)
        elif "resOpFailedEvent" in event:
            self._under_way.pop(event["resOpFailedEvent"]["metadata"]["urn"], None)
        elif "diagnosticEvent" in event:
            self._diagnose(event["diagnosticEvent"])
        elif "summaryEvent" in event:
            found = event["summaryEvent"].get("resourceChanges") or {}
            self.changes = {key: count for key, count in found.items() if key != "same" and count}

    def _begin(self, event: dict[str, Any]) -> None:
        metadata = event["metadata"]
        doing = _DOING.get(metadata["op"])
        if not doing or metadata["type"] == "pulumi:pulumi:Stack":
            return
        label = f"{metadata['type'].rsplit(':', 1)[-1]} {metadata['urn'].rsplit('::', 1)[-1]}"
        if event.get("planning"):
            # A preview is quick and says the same again that the update says.
            return
        self._under_way[metadata["urn"]] = label
        self._tell(f"{doing} {label}")

    def _diagnose(self, event: dict[str, Any]) -> None:
        text = _TAGS.sub("", event.get("message", "")).strip()
        if event.get("severity") == "error" and text:
            urn = event.get("urn", "")
            resource = "" if not urn or "pulumi:pulumi:Stack" in urn else f"{_label(urn)}: "
            line = resource + text.removeprefix("error: ").removeprefix(_AGAIN)
            if line not in self.errors and text != _FAILED:
                self.errors.append(line)
        elif event.get("severity") in ("warning", "info") and event.get("urn") and text and not event.get("ephemeral"):
            self._tell(text)


def _label(urn: str) -> str:
    _, _, types, name = urn.split("::", 3)
    return f"{types.rpartition('$')[2].rsplit(':', 1)[-1]} {name}"

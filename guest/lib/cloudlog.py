"""`multinic-log`: sends the events that wait to Cloud Logging, by REST with the VM's own token. Best effort, bounded.

Nothing waits for it. What cannot be sent stays until it can, or until newer events push it out; the journal has all.
https://cloud.google.com/logging/docs/reference/v2/rest/v2/entries/write
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import sys
import time
from typing import Any
from urllib.parse import urlsplit

import events
import metadata
import paths

SERVICE = "https://logging.googleapis.com"
LOG = "multinic"
TIMEOUT = 5.0
"""Seconds for each step of a request."""

BATCH = 100
"""Entries in one request."""

SETTLE = 2.0
"""Seconds in which more events may come before a batch is sent."""

TEMPORARY = 75
"""Exit code that has systemd try again later (EX_TEMPFAIL of sysexits.h)."""


def main() -> int:
    """Runs `add` or `flush`."""
    parser = argparse.ArgumentParser(prog="multinic-log", description="Structured events for Cloud Logging.")
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("add", help="record an event: in the journal at once, in Cloud Logging soon")
    add.add_argument("event", help="stable name, such as drained")
    add.add_argument("fields", nargs="*", metavar="KEY=VALUE", help="what belongs to it")
    add.add_argument("--severity", default="INFO", choices=sorted(events.PRIORITIES), help="as Cloud Logging has them")
    flush = commands.add_parser("flush", help="send what waits")
    flush.add_argument("--now", action="store_true", help="do not wait for more events first")
    arguments = parser.parse_args()
    if arguments.command == "add":
        fields = dict(field.partition("=")[::2] for field in arguments.fields)
        events.emit(arguments.event, arguments.severity, **fields)
        return 0
    time.sleep(0 if arguments.now else SETTLE)
    try:
        return send()
    except (OSError, ValueError, LookupError, TypeError, metadata.UnavailableError) as error:
        print(f"multinic-log: not sent yet: {error!r}", file=sys.stderr)
        return TEMPORARY


def send() -> int:
    """Sends all batches; what was taken, or refused for good, is gone from the spool.

    One at a time: at shutdown the service and the script want to, and each event is to be sent once.
    """
    try:
        spool = os.open(paths.SPOOL, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        fcntl.flock(spool, fcntl.LOCK_EX)
        return _send_all()
    finally:
        os.close(spool)


def _send_all() -> int:
    held = metadata.saved(max_age=float("inf"))
    tree = held[1] if held is not None else metadata.tree()[1]
    token = ""
    while True:
        names = events.spooled()[:BATCH]
        if not names:
            return 0
        # The oldest may have been pushed out since they were listed.
        records = [(name, event) for name in names if (event := _event(name)) is not None]
        if not records:
            continue
        token = token or _token()
        status, answer = _post(token, body(tree, records))
        if status == 429 or status >= 500:
            raise OSError(f"status {status}")
        if status != 200:
            # No permission, or the API is off: asking again changes nothing.
            print(f"multinic-log: refused with status {status}: {answer[:300]!r}", file=sys.stderr)
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(paths.SPOOL, name))


def _event(name: str) -> dict[str, Any] | None:
    """What waits under this name; nothing but its name if it cannot be read, None if it is gone."""
    text = paths.read(os.path.join(paths.SPOOL, name))
    if text is None:
        return None
    try:
        held = json.loads(text)
    except ValueError:
        return {}
    return held if isinstance(held, dict) else {}


def body(tree: Any, records: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """The request's body: each event's file name is its insert id, so that one sent twice is kept once."""
    instance = tree["instance"]
    project = str(tree["project"]["projectId"])
    zone = str(instance.get("zone") or "").rpartition("/")[2]
    name = str(instance.get("name") or "")
    entries = []
    for key, record in records:
        seconds = float(record.pop("time", 0.0))
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"
        severity = str(record.pop("severity", "DEFAULT"))
        entries.append(
            {
                "insertId": key,
                "timestamp": stamp,
                "severity": severity,
                "jsonPayload": {"instance": name, "zone": zone, **record},
            }
        )
    return {
        "logName": f"projects/{project}/logs/{LOG}",
        "resource": {
            "type": "gce_instance",
            "labels": {"project_id": project, "instance_id": str(instance.get("id") or ""), "zone": zone},
        },
        "entries": entries,
        "partialSuccess": True,
    }


def _token() -> str:
    _, answer = metadata.get("/computeMetadata/v1/instance/service-accounts/default/token")
    return str(json.loads(answer)["access_token"])


def _post(token: str, content: dict[str, Any]) -> tuple[int, bytes]:
    import http.client  # Takes longer to load than all else here: not while the VM boots.

    parts = urlsplit(SERVICE)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.netloc, timeout=TIMEOUT)
    try:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request("POST", "/v2/entries:write", json.dumps(content), headers)
        response = connection.getresponse()
        return response.status, response.read(65536)
    except http.client.HTTPException as error:
        raise OSError(f"half an answer: {error!r}") from error
    finally:
        connection.close()

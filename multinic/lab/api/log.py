"""Cloud Logging v2: ``entries:write`` and ``entries:list``.

https://cloud.google.com/logging/docs/reference/v2/rest; filters:
https://cloud.google.com/logging/docs/view/logging-query-language (comparisons, AND, OR, NOT).
"""

from __future__ import annotations

import json
import logging
import re
from typing import Any

from ..cloud import ApiError, Cloud
from ..cloud.call import Call
from ..cloud.log_entries import SEVERITIES
from .filters import parse
from .lists import cut
from .requests import Service

log = logging.getLogger("multinic.lab")


def write_of_guest(cloud: Cloud, body: bytes) -> tuple[int, bytes]:
    """Answers a VM's ``entries:write``: HTTP status and body."""
    try:
        try:
            given = json.loads(body)
        except (ValueError, RecursionError):
            raise ApiError(400, "parseError", "Invalid JSON payload received.") from None
        answer, code = SERVICE.serve(cloud, "POST", "v2/entries:write", {}, given), 200
    except ApiError as error:
        answer, code = error.body(compute=False), error.code
    except Exception:
        log.exception("entries:write of a VM")
        answer, code = ApiError(500, "internalError", "The lab itself failed.").body(compute=False), 500
    return code, json.dumps(answer).encode()


def _list(cloud: Cloud, call: Call) -> dict[str, Any]:
    body = call.body
    named = body.get("resourceNames") or [f"projects/{one}" for one in body.get("projectIds", [])]
    if not named:
        raise ApiError(400, "badRequest", "At least one of resourceNames must be given.")
    for name in named:
        if name not in (f"projects/{cloud.project}", f"projects/{cloud.projects.number}"):
            raise ApiError(403, "forbidden", f"Permission denied on {name}.")
    order = body.get("orderBy", "timestamp asc")
    if order not in ("timestamp", "timestamp asc", "timestamp desc"):
        raise ApiError(400, "badRequest", f"orderBy '{order[:50]}' is not 'timestamp asc' or 'timestamp desc'.")
    test = parse(_ranks(str(body.get("filter") or "")))
    found = [entry for entry in cloud.log_entries.all() if test(entry)]
    found.sort(key=lambda entry: str(entry["timestamp"]), reverse=order.endswith("desc"))
    entries = [{name: v for name, v in entry.items() if name != "_severity"} for entry in found]
    # pageSize is at most 1000: discovery document logging.v2, ListLogEntriesRequest.pageSize.
    shown, following = cut(entries, body.get("pageSize") or 50, body.get("pageToken"), biggest=1000)
    return {"entries": shown, "nextPageToken": following}


def _ranks(text: str) -> str:
    """Severities compare by rank: ``severity>=WARNING``."""
    rank = {name: str(index) for index, name in enumerate(SEVERITIES)}
    pattern = rf'\bseverity\s*(=|!=|<=|>=|<|>)\s*"?({"|".join(SEVERITIES)})"?(?![\w])'
    return re.sub(pattern, lambda found: f"_severity{found[1]}{rank[found[2]]}", text)


SERVICE = Service(
    "logging",
    "logging.v2",
    {"entries.write": lambda cloud, call: cloud.log_entries.write(call.body), "entries.list": _list},
)

"""Cloud Logging v2: ``entries:write`` and ``entries:list``.

https://cloud.google.com/logging/docs/reference/v2/rest; filters:
https://cloud.google.com/logging/docs/view/logging-query-language (comparisons, AND, OR, NOT).
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import re
from typing import Any

from ..cloud import ApiError, Cloud
from ..cloud.log_entries import SEVERITIES
from .bodies import BodyChecker
from .documents import document
from .filters import parse

log = logging.getLogger("multinic.lab")


def serve(cloud: Cloud, verb: str, path: str, body: Any) -> dict[str, Any]:
    """Answers one request; `path` begins with the version."""
    match verb, path:
        case "POST", "v2/entries:write":
            return cloud.log_entries.write(_checked(cloud, "WriteLogEntriesRequest", body))
        case "POST", "v2/entries:list":
            return _list(cloud, _checked(cloud, "ListLogEntriesRequest", body))
    raise ApiError(501, "notImplemented", f"The lab does not serve {verb} /logging/{path}.")


def write_of_guest(cloud: Cloud, body: bytes) -> tuple[int, bytes]:
    """Answers a VM's ``entries:write``: HTTP status and body."""
    try:
        try:
            given = json.loads(body)
        except (ValueError, RecursionError):
            raise ApiError(400, "parseError", "Invalid JSON payload received.") from None
        answer, code = serve(cloud, "POST", "v2/entries:write", given), 200
    except ApiError as error:
        answer, code = error.body(compute=False), error.code
    except Exception:
        log.exception("entries:write of a VM")
        answer, code = ApiError(500, "internalError", "The lab itself failed.").body(compute=False), 500
    return code, json.dumps(answer).encode()


def _list(cloud: Cloud, body: dict[str, Any]) -> dict[str, Any]:
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
    size = min(max(int(body.get("pageSize") or 50), 1), 1000)
    start = _start(str(body.get("pageToken") or ""))
    page = [{name: v for name, v in entry.items() if name != "_severity"} for entry in found[start : start + size]]
    answer: dict[str, Any] = {"entries": page}
    if start + size < len(found):
        answer["nextPageToken"] = base64.urlsafe_b64encode(str(start + size).encode()).decode()
    return answer


def _ranks(text: str) -> str:
    """Severities compare by rank: ``severity>=WARNING``."""
    rank = {name: str(index) for index, name in enumerate(SEVERITIES)}
    pattern = rf'\bseverity\s*(=|!=|<=|>=|<|>)\s*"?({"|".join(SEVERITIES)})"?(?![\w])'
    return re.sub(pattern, lambda found: f"_severity{found[1]}{rank[found[2]]}", text)


def _start(token: str) -> int:
    if not token:
        return 0
    try:
        return max(0, min(int(base64.urlsafe_b64decode(token.encode())), 10**9))
    except (binascii.Error, ValueError):
        raise ApiError(400, "badRequest", "page_token is invalid.") from None


def _checked(cloud: Cloud, schema: str, body: Any) -> dict[str, Any]:
    checker = BodyChecker(
        (document("logging.v2"),),
        f"entries.{schema}",
        strict=cloud.strict,
        patch=False,
        note=lambda text: log.info("%s", text),
    )
    return checker.check(schema, {} if body is None else body)

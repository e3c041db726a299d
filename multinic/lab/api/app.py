"""The front door: one HTTP application for Google's APIs and the lab's own few calls.

Everything that wants something of the lab comes in here, with the lab's token, on loopback.
"""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from ..cloud import ApiError, Cloud
from . import compute, iam, lab, monitoring, resource_manager, service_usage
from . import log as cloud_logging
from .lists import without_empty
from .selection import only_fields

log = logging.getLogger("multinic.lab")
BIGGEST_BODY = 4 * 1024 * 1024
"""Bytes; Google's own limit for a template with full metadata is far below."""
SERVICES = {
    service.name: service
    for service in (
        iam.SERVICE,
        resource_manager.SERVICE,
        cloud_logging.SERVICE,
        monitoring.SERVICE,
        service_usage.SERVICE,
    )
}
"""Google's APIs beside Compute Engine, by the first segment of their paths."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class _GoneError(Exception):
    """The client hung up before its request was whole."""


@dataclass(frozen=True)
class _Request:
    verb: str
    path: str
    query: dict[str, list[str]]
    body: Any


def create_app(cloud: Cloud, token: str) -> Application:
    """The ASGI application (https://asgi.readthedocs.io/en/latest/specs/www.html).

    Args:
        cloud: What it serves; must have been started.
        token: What clients must send as ``Authorization: Bearer TOKEN``.
    """

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"the front door speaks HTTP only, not {scope['type']}")
        path = _path(scope)
        newer = not path.startswith(("compute/", "lab/"))
        try:
            _authorize(scope, token)
            status, answer = 200, await _answer(cloud, await _read(scope, path, receive))
        except _GoneError:
            return
        except ApiError as error:
            status, answer = error.code, error.body(compute=not newer)
        except Exception:
            log.exception("%s %s", scope["method"], path)
            broken = ApiError(500, "internalError", "The lab itself failed; its log has the details.")
            status, answer = 500, broken.body(compute=not newer)
        content = json.dumps(answer, ensure_ascii=True, separators=(",", ":")).encode()
        headers = [
            (b"content-type", b"application/json; charset=UTF-8"),
            (b"content-length", str(len(content)).encode()),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else content})

    return serve


def _path(scope: Scope) -> str:
    """The path as it was sent, still percent-encoded: a ``%2F`` in a name separates nothing."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.partition(b"?")[0].decode("latin-1").lstrip("/")


def _authorize(scope: Scope, token: str) -> None:
    given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
    word, _, value = given.partition(b" ")
    if word.lower() != b"bearer" or not hmac.compare_digest(value.strip(), token.encode()):
        raise ApiError(
            401,
            "authError",
            "Request had invalid authentication credentials: the lab expects its own token as Bearer.",
            location="Authorization",
            locationType="header",
        )


async def _read(scope: Scope, path: str, receive: Receive) -> _Request:
    query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    chunks, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _GoneError
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > BIGGEST_BODY:
            raise ApiError(413, "uploadTooLarge", f"The request is larger than {BIGGEST_BODY} bytes.")
        if not message.get("more_body"):
            return _Request(scope["method"], path, query, _json_of(b"".join(chunks)))


def _json_of(content: bytes) -> Any:
    if not content.strip():
        return None
    try:
        return json.loads(content, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ApiError(400, "parseError", "Parse Error: the request body is not valid JSON.") from None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


async def _answer(cloud: Cloud, request: _Request) -> Any:
    api, _, rest = request.path.partition("/")
    if api == "lab":
        return await lab.serve(cloud, request.verb, rest, request.query)
    if api == "compute":
        answer = await compute.serve(cloud, request.verb, rest, request.query, request.body)
    elif api in SERVICES:
        answer = SERVICES[api].serve(cloud, request.verb, rest, request.query, request.body)
    else:
        raise ApiError(404, "notFound", f"The requested URL /{request.path} was not found on this server.")
    answer = without_empty(answer)
    fields = (request.query.get("fields") or request.query.get("$fields") or [""])[0]
    return only_fields(answer, fields) if fields and fields != "*" else answer

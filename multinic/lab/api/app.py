"""The front door: one HTTP application for Compute Engine, IAM, Resource Manager and the lab's own few calls.

Everything that wants something of the lab comes in here, with the lab's token, on loopback.
"""

from __future__ import annotations

import hmac
import json
import logging
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ..cloud import ApiError, Cloud
from . import compute, iam, lab, resource_manager, service_usage
from . import log as cloud_logging
from .lists import only_fields, without_empty

log = logging.getLogger("multinic.lab")
BIGGEST_BODY = 4 * 1024 * 1024
"""Bytes; Google's own limit for a template with full metadata is far below."""
VERBS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


def create_app(cloud: Cloud, token: str) -> Starlette:
    """The application.

    Args:
        cloud: What it serves; must have been started.
        token: What clients must send as ``Authorization: Bearer TOKEN``.
    """

    async def serve(request: Request) -> Response:
        path = request.url.path.lstrip("/")
        newer = not path.startswith(("compute/", "lab/"))
        try:
            _authorize(request, token)
            answer = await _answer(cloud, request, path)
        except ApiError as error:
            return _json(error.body(compute=not newer), error.code)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception:
            log.exception("%s %s", request.method, request.url.path)
            broken = ApiError(500, "internalError", "The lab itself failed; its log has the details.")
            return _json(broken.body(compute=not newer), 500)
        return _json(answer)

    return Starlette(routes=[Route("/{path:path}", serve, methods=VERBS)])


def _authorize(request: Request, token: str) -> None:
    given = request.headers.get("authorization", "")
    word, _, value = given.partition(" ")
    if word.lower() != "bearer" or not hmac.compare_digest(value.strip().encode(), token.encode()):
        raise ApiError(
            401,
            "authError",
            "Request had invalid authentication credentials: the lab expects its own token as Bearer.",
            location="Authorization",
            locationType="header",
        )


async def _answer(cloud: Cloud, request: Request, path: str) -> Any:
    query = parse_qs(request.url.query, keep_blank_values=True)
    body = await _body(request)
    api, _, rest = path.partition("/")
    match api:
        case "compute":
            answer = await compute.serve(cloud, request.method, rest, query, body)
        case "iam":
            answer = iam.serve(cloud, request.method, rest, body)
        case "crm":
            answer = resource_manager.serve(cloud, request.method, rest, body)
        case "logging":
            answer = cloud_logging.serve(cloud, request.method, rest, body)
        case "serviceusage":
            answer = service_usage.serve(cloud, request.method, rest, body)
        case "lab":
            return await lab.serve(cloud, request.method, rest, query, body)
        case _:
            raise ApiError(404, "notFound", f"The requested URL /{path} was not found on this server.")
    answer = without_empty(answer)
    fields = query.get("fields", [""])[0]
    return only_fields(answer, fields) if fields and fields != "*" else answer


async def _body(request: Request) -> Any:
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > BIGGEST_BODY:
            raise ApiError(413, "uploadTooLarge", f"The request is larger than {BIGGEST_BODY} bytes.")
    if not content.strip():
        return None
    try:
        return json.loads(content, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ApiError(400, "parseError", "Parse Error: the request body is not valid JSON.") from None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _json(answer: Any, status: int = 200) -> Response:
    text = json.dumps(answer, ensure_ascii=True, separators=(",", ":"))
    return Response(text, status, media_type="application/json; charset=UTF-8")

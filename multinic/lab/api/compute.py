"""Compute Engine requests, v1 and beta."""

from __future__ import annotations

import uuid
from typing import Any

from ..cloud import ApiError, Cloud
from ..cloud.call import Call
from .documents import document
from .lists import page
from .requests import checked

HOLD_SECONDS = 60.0
"""How long the answer to a change is held back until its operation is DONE.

google-cloud-compute (1.57) polls unfinished operations at compute.googleapis.com, whatever `api_endpoint` it was given.
The plugin gives up a request after 120 s.
"""
VERSIONS = {"v1": ("compute.v1", "compute.beta"), "beta": ("compute.beta", "compute.v1")}


async def serve(cloud: Cloud, verb: str, path: str, query: dict[str, list[str]], body: Any) -> dict[str, Any]:
    """Answers one request; `path` begins with the version."""
    version, _, rest = path.partition("/")
    if version not in VERSIONS:
        raise ApiError(404, "notFound", f"The lab serves compute/v1 and compute/beta, not compute/{version[:50]}.")
    call = checked(cloud, tuple(document(name) for name in VERSIONS[version]), verb, rest, query, body)
    if verb == "GET":
        return page(await cloud.call(call), call.params)
    answer = await _once(cloud, call)
    if answer.get("kind") == "compute#operation" and answer["status"] != "DONE":
        answer = await cloud.operations.wait(call.scope, answer["name"], HOLD_SECONDS)
    return page(answer, call.params) if "managedInstances" in answer or "items" in answer else answer


async def _once(cloud: Cloud, call: Call) -> dict[str, Any]:
    """Carries out a change; one whose ``requestId`` has been seen gives the first one's operation.

    Discovery document compute.v1, parameter ``requestId``: "If you make a request a second time with the same request
    ID, the server can check if original operation with the same request ID was received, and if so, will ignore the
    second request … The request ID must be a valid UUID with the exception that zero UUID is not supported".
    """
    given = str(call.params.get("requestId") or "")
    if not given:
        return await cloud.call(call)
    try:
        number = uuid.UUID(given)
    except ValueError:
        number = uuid.UUID(int=0)
    if number.int == 0:
        raise ApiError(
            400,
            "invalid",
            f"Invalid value for field 'requestId': '{given[:100]}'. Must be a valid UUID, and not the zero UUID.",
        )
    first = cloud.operations.of_request(call.scope, number)
    if first is not None:
        return first
    answer = await cloud.call(call)
    if answer.get("kind") == "compute#operation":
        cloud.operations.remember(call.scope, number, answer["name"])
    return answer

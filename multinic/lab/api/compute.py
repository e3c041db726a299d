"""Compute Engine requests: matched to a method of the discovery document, parameters and body checked by it."""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import unquote

from ..cloud import ApiError, Cloud
from ..cloud.call import Call
from .bodies import BodyChecker
from .documents import Document, Method, Parameter, document
from .lists import page

log = logging.getLogger("multinic.lab")
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
        raise ApiError(404, "notFound", f"The lab serves compute/v1 and compute/beta, not compute/{version}.")
    documents = tuple(document(name) for name in VERSIONS[version])
    found = documents[0].match(verb, rest.rstrip("/"))
    if isinstance(found, set):
        if not found:
            raise ApiError(404, "notFound", f"The requested URL /compute/{path} was not found on this server.")
        raise ApiError(405, "httpMethodNotAllowed", f"This URL takes {', '.join(sorted(found))}, not {verb}.")
    method, values = found
    params: dict[str, Any] = {name: unquote(value) for name, value in values.items()}
    params |= _query(documents[0], method, query)
    checked = _body(cloud, documents, method, body)
    call = Call(method.name, params, checked)
    answer = await cloud.call(call)
    if answer.get("kind") == "compute#operation" and answer["status"] != "DONE" and verb != "GET":
        answer = await cloud.operations.wait(call.scope, answer["name"], HOLD_SECONDS)
    return page(answer, params) if verb == "GET" or "managedInstances" in answer or "items" in answer else answer


def _query(found: Document, method: Method, query: dict[str, list[str]]) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for name, texts in query.items():
        parameter = found.parameter(method, name)
        if parameter is None or parameter.location != "query":
            # Google ignores parameters that a method does not have.
            continue
        params[name] = (
            [_typed(parameter, text) for text in texts] if parameter.repeated else _typed(parameter, texts[-1])
        )
    for name, parameter in method.parameters.items():
        if parameter.required and parameter.location == "query" and params.get(name) in (None, ""):
            raise ApiError(400, "required", f"Required parameter: {name}", location=name, locationType="parameter")
    return params


def _typed(parameter: Parameter, text: str) -> Any:
    good: Any = None
    match parameter.type:
        case "boolean":
            good = {"true": True, "false": False, "": None}.get(text.lower(), ...)
        case "integer":
            try:
                good = int(text) if text and len(text) < 20 else ... if text else None
            except ValueError:
                good = ...
        case _:
            good = text
            if parameter.enum and text and text not in parameter.enum:
                good = ...
    if good is ...:
        raise ApiError(
            400,
            "invalidParameter",
            f"Invalid value '{text[:100]}' for the parameter '{parameter.name}' ({parameter.type}).",
            location=parameter.name,
            locationType="parameter",
        )
    return good


def _body(cloud: Cloud, documents: tuple[Document, ...], method: Method, body: Any) -> dict[str, Any]:
    if method.request is None:
        return {}
    checker = BodyChecker(
        documents,
        method.name,
        strict=cloud.strict,
        patch=method.verb == "PATCH",
        note=lambda text: log.info("%s", text),
    )
    return checker.check(method.request, {} if body is None else body)

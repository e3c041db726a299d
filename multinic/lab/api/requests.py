"""Requests to Google's APIs: matched to a method of a discovery document, parameters and body checked by it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from ..cloud import ApiError, Cloud
from ..cloud.call import Call
from .bodies import BodyChecker
from .documents import Document, Method, Parameter, document

log = logging.getLogger("multinic.lab")


def checked(
    cloud: Cloud,
    documents: tuple[Document, ...],
    verb: str,
    path: str,
    query: Mapping[str, list[str]],
    body: Any,
) -> Call:
    """The call that a request means.

    Args:
        cloud: Says whether unknown fields are refused.
        documents: The document of the request's version first.
        verb: HTTP verb.
        path: As in the document, still percent-encoded.
        query: Values by name.
        body: JSON, or None.

    Raises:
        ApiError: 404, 405 or 400.
    """
    found = documents[0].match(verb, path.rstrip("/"))
    if isinstance(found, set):
        if not found:
            raise ApiError(404, "notFound", f"The requested URL /{path} was not found on this server.")
        raise ApiError(405, "httpMethodNotAllowed", f"This URL takes {', '.join(sorted(found))}, not {verb}.")
    method, values = found
    params: dict[str, Any] = {name: _decoded(name, value) for name, value in values.items()}
    return Call(method.name, params | _query(documents[0], method, query), _body(cloud, documents, method, body))


def _decoded(name: str, value: str) -> str:
    text = unquote(value)
    if "/" in text or "\0" in text:
        raise ApiError(
            400,
            "invalidParameter",
            f"Invalid value '{text[:100]}' for the parameter '{name}'.",
            location=name,
            locationType="parameter",
        )
    return text


def _query(found: Document, method: Method, query: Mapping[str, list[str]]) -> dict[str, Any]:
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
        # The mask of IAM's patch names what changes; nothing is cleared by an empty value.
        patch=method.verb == "PATCH" and documents[0].name.startswith("compute."),
        note=lambda text: log.info("%s", text),
    )
    return checker.check(method.request, {} if body is None else body)


@dataclass(frozen=True)
class Service:
    """One of Google's APIs beside Compute Engine.

    Attributes:
        name: First segment of its paths in the lab.
        document: Of its discovery document, such as ``iam.v1``.
        methods: What is served: name in the document → function of the cloud and the call.
    """

    name: str
    document: str
    methods: Mapping[str, Callable[[Cloud, Call], dict[str, Any]]]

    def serve(self, cloud: Cloud, verb: str, path: str, query: Mapping[str, list[str]], body: Any) -> dict[str, Any]:
        """Answers one request; `path` begins with the version."""
        found = document(self.document)
        call = checked(cloud, (found,), verb, path, query, body)
        handler = self.methods.get(call.method)
        if handler is None:
            api = found.name.partition(".")[0]
            raise ApiError(501, "notImplemented", f"The lab does not serve {api}.{call.method}. See docs/lab.md.")
        return handler(cloud, call)


def require_project(cloud: Cloud, name: str) -> None:
    """Refuses every project but the lab's own, as Resource Manager does: it never tells whether one is there."""
    if name not in (cloud.project, str(cloud.projects.number)):
        raise ApiError(403, "forbidden", f"The caller does not have permission on project '{name[:100]}'.")

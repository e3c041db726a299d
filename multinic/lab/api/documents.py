"""Google's discovery documents, cut down to what requests are matched and checked by.

google-api-python-client ships them: schemas of requests and answers, paths, parameters, enum values. They are big
(compute.v1 is 5 MB), so each is read once, when the first request needs it, and all texts are dropped.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from typing import Any

_KEPT = ("type", "format", "enum", "pattern", "readOnly", "$ref")
_VARIABLE = re.compile(r"\{\+?(\w+)\}(:\w+)?")
"""A part of a path that stands for any name, perhaps with an action: ``{resource}:getIamPolicy``."""


@dataclass(frozen=True)
class Parameter:
    """A path or query parameter."""

    name: str
    location: str
    type: str
    required: bool
    repeated: bool
    enum: tuple[str, ...] | None


@dataclass(frozen=True)
class Method:
    """One method.

    Attributes:
        name: Such as ``instances.insert``.
        verb: HTTP verb.
        path: Path template; Compute Engine's begin with ``projects/``, the newer APIs' with their version.
        parameters: By name.
        request: Name of the body's schema, or None.
        response: Name of the answer's schema, or None.
    """

    name: str
    verb: str
    path: str
    parameters: dict[str, Parameter]
    request: str | None
    response: str | None

    @cached_property
    def names(self) -> list[str]:
        """Names of the variables of its path, in their order."""
        return [found[1] for part in self.path.split("/") if (found := _VARIABLE.fullmatch(part))]


@dataclass
class _Node:
    literal: dict[str, _Node] = field(default_factory=dict)
    variables: dict[str, _Node] = field(default_factory=dict)
    methods: dict[str, Method] = field(default_factory=dict)


class Document:
    """One discovery document.

    Args:
        raw: The document as Google publishes it.
    """

    def __init__(self, raw: dict[str, Any]) -> None:
        self.name = f"{raw['name']}.{raw['version']}"
        self.revision = str(raw.get("revision", ""))
        self.schemas = {name: _schema(schema) for name, schema in raw["schemas"].items()}
        self.methods: dict[str, Method] = {}
        self._root = _Node()
        self.common = {name: _parameter(name, value) for name, value in raw.get("parameters", {}).items()}
        self._collect(raw.get("resources", {}), "")

    def _collect(self, tree: dict[str, Any], prefix: str) -> None:
        for resource, value in tree.items():
            for name, method in value.get("methods", {}).items():
                self._add(f"{prefix}{resource}.{name}", method)
            self._collect(value.get("resources", {}), f"{prefix}{resource}.")

    def _add(self, name: str, raw: dict[str, Any]) -> None:
        parameters = {key: _parameter(key, value) for key, value in raw.get("parameters", {}).items()}
        method = Method(
            name,
            raw["httpMethod"],
            raw.get("flatPath") or raw["path"],
            parameters,
            (raw.get("request") or {}).get("$ref"),
            (raw.get("response") or {}).get("$ref"),
        )
        self.methods[name] = method
        node = self._root
        for part in method.path.split("/"):
            if variable := _VARIABLE.fullmatch(part):
                node = node.variables.setdefault(variable[2] or "", _Node())
            else:
                node = node.literal.setdefault(part, _Node())
        node.methods[method.verb] = method

    def match(self, verb: str, path: str) -> tuple[Method, dict[str, str]] | set[str]:
        """The method of a request and its path parameters, or the verbs that the path has (empty: no such path)."""
        parts = path.split("/")
        found = self._find(self._root, parts, 0, [])
        if found is None:
            return set()
        node, values = found
        method = node.methods.get(verb)
        if method is None:
            return set(node.methods)
        return method, dict(zip(method.names, values, strict=True))

    def _find(self, node: _Node, parts: list[str], index: int, values: list[str]) -> tuple[_Node, list[str]] | None:
        if index == len(parts):
            return (node, values) if node.methods else None
        part = parts[index]
        if part in node.literal:
            found = self._find(node.literal[part], parts, index + 1, values)
            if found is not None:
                return found
        name, colon, action = part.rpartition(":")
        for value, suffix in ((name, colon + action), (part, "")):
            if value and suffix in node.variables:
                found = self._find(node.variables[suffix], parts, index + 1, [*values, value])
                if found is not None:
                    return found
        return None

    def parameter(self, method: Method, name: str) -> Parameter | None:
        """A parameter of a method, or one that all methods take."""
        return method.parameters.get(name) or self.common.get(name)


def _parameter(name: str, raw: dict[str, Any]) -> Parameter:
    return Parameter(
        name,
        raw.get("location", "query"),
        raw.get("type", "string"),
        bool(raw.get("required")),
        bool(raw.get("repeated")),
        tuple(raw["enum"]) if "enum" in raw else None,
    )


def _schema(raw: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {name: raw[name] for name in _KEPT if name in raw}
    if "enum" in kept:
        kept["enum"] = frozenset(kept["enum"])
    required = (raw.get("annotations") or {}).get("required")
    if required:
        kept["required"] = frozenset(name.partition(".")[2] for name in required)
    if "properties" in raw:
        kept["properties"] = {name: _schema(value) for name, value in raw["properties"].items()}
    for name in ("items", "additionalProperties"):
        if name in raw:
            kept[name] = _schema(raw[name])
    return kept


@cache
def document(name: str) -> Document:
    """A discovery document by name, such as ``compute.v1``; read at its first use."""
    folder = resources.files("googleapiclient") / "discovery_cache" / "documents"
    return Document(json.loads((folder / f"{name}.json").read_text()))

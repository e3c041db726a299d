"""Checks request bodies by the schemas of Google's discovery documents.

As Google does it (measured with the real pulumi-gcp plugin): wrong types and enum values are refused, unknown fields
are ignored and noted, null and the empty text mean "not set". In strict mode unknown fields are refused too.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from ..cloud.errors import ApiError, required
from .documents import Document

_RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}
_DEEPEST = 64
_SENT_BY_PLUGIN = {("NetworkRoutingConfig", "deleteBgpAlwaysCompareMed"), ("RouterNat", "initialNatIps")}
"""(schema, field) that the pulumi-gcp plugin sends (measured with 9.35.0) and no discovery document has.

They belong to the plugin's right requests, so strict mode passes over them too.
"""


class BodyChecker:
    """Checks one body.

    Args:
        documents: The document of the request's version first; a field that it does not know is looked up in the
            others, so that a v1 path may carry beta fields: the pulumi-gcp plugin, pointed at v1, sends them.
        method: For required fields.
        strict: Refuse fields that the first document does not know.
        patch: Keep null, "" and [] (they clear a field).
        note: Told of each ignored field.
    """

    def __init__(
        self,
        documents: tuple[Document, ...],
        method: str,
        *,
        strict: bool,
        patch: bool,
        note: Callable[[str], None],
    ) -> None:
        self._documents, self._method, self._strict, self._patch, self._note = documents, method, strict, patch, note

    def check(self, schema: str, body: Any) -> dict[str, Any]:
        """The body with only what counts.

        Raises:
            ApiError: 400.
        """
        if not isinstance(body, dict):
            raise _wrong("", body, "an object")
        return self._object(schema, body, "", 0)

    def _object(self, schema: str, body: dict[str, Any], path: str, depth: int) -> dict[str, Any]:
        properties = self._documents[0].schemas.get(schema, {}).get("properties", {})
        return self._members(schema, properties, body, path, depth)

    def _members(
        self, schema: str, properties: dict[str, Any], body: dict[str, Any], path: str, depth: int
    ) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for name, value in body.items():
            here = f"{path}.{name}" if path else name
            definition = properties.get(name)
            if definition is None:
                definition = self._elsewhere(schema, name, here)
            if definition is None or definition.get("readOnly"):
                continue
            if value is None or value == "" or (self._patch and value == []):
                if self._patch:
                    result[name] = value
                continue
            result[name] = self._value(definition, value, here, depth + 1)
        for name, definition in properties.items():
            # A patch leaves out what it does not change, whatever the document says of firewalls.patch.
            if not self._patch and self._method in definition.get("required", ()) and result.get(name) is None:
                raise required(f"{path}.{name}" if path else name)
        return result

    def _elsewhere(self, schema: str, name: str, here: str) -> dict[str, Any] | None:
        if self._strict and (schema, name) not in _SENT_BY_PLUGIN:
            raise ApiError(
                400, "badRequest", f'Invalid JSON payload received. Unknown name "{here}": Cannot find field.'
            )
        for other in self._documents[1:]:
            found: dict[str, Any] | None = other.schemas.get(schema, {}).get("properties", {}).get(name)
            if found is not None:
                self._note(f"{self._method}: field '{here}' is known to {other.name} only; kept")
                return found
        self._note(f"{self._method}: unknown field '{here}' ignored")
        return None

    def _value(self, definition: dict[str, Any], value: Any, path: str, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ApiError(400, "badRequest", "Invalid JSON payload received. The nesting is too deep.")
        if "$ref" in definition:
            if not isinstance(value, dict):
                raise _wrong(path, value, "an object")
            return self._object(definition["$ref"], value, path, depth)
        match definition.get("type"):
            case "array":
                return self._array(definition, value, path, depth)
            case "object":
                return self._map(definition, value, path, depth)
            case "boolean":
                if not isinstance(value, bool):
                    raise _wrong(path, value, "TYPE_BOOL")
                return value
            case "integer":
                return _integer(value, definition.get("format", "int32"), path)
            case "number":
                return _number(value, path)
            case "string":
                return self._text(definition, value, path)
        return value

    def _array(self, definition: dict[str, Any], value: Any, path: str, depth: int) -> list[Any]:
        if not isinstance(value, list):
            raise _wrong(path, value, "a list")
        items = definition.get("items", {})
        return [self._value(items, v, f"{path}[{i}]", depth + 1) for i, v in enumerate(value) if v is not None]

    def _map(self, definition: dict[str, Any], value: Any, path: str, depth: int) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _wrong(path, value, "an object")
        if "properties" in definition:
            # Defined in place, as the entries of a firewall's `allowed` are.
            return self._members("", definition["properties"], value, path, depth)
        items = definition.get("additionalProperties", {})
        return {
            key: self._value(items, v, f"{path}.{key}", depth + 1) if v != "" else v
            for key, v in value.items()
            if v is not None
        }

    def _text(self, definition: dict[str, Any], value: Any, path: str) -> str:
        kind = definition.get("format")
        if kind in ("int64", "uint64"):
            return str(_integer(value, kind, path))
        if not isinstance(value, str):
            raise _wrong(path, value, "TYPE_STRING")
        if "\0" in value or not _is_text(value):
            raise ApiError(400, "badRequest", f"Invalid value at 'resource.{path}': not a valid UTF-8 text.")
        allowed = definition.get("enum")
        if allowed is not None and value not in allowed:
            raise ApiError(
                400,
                "invalid",
                f"Invalid value for field 'resource.{path}': '{value[:200]}'. '{value[:200]}' is not a possible value: "
                f"must be one of [{', '.join(sorted(allowed))}].",
            )
        if kind == "byte":
            _check_base64(value, path)
        pattern = definition.get("pattern")
        if pattern is not None and not _compiled(pattern).fullmatch(value):
            raise ApiError(
                400,
                "invalid",
                f"Invalid value for field 'resource.{path}': '{value[:200]}'. Must be a match of regex '{pattern}'",
            )
        return value


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _integer(value: Any, kind: str, path: str) -> int:
    number: int | None = None
    if isinstance(value, bool):
        number = None
    elif isinstance(value, int):
        number = value
    elif (isinstance(value, float) and math.isfinite(value) and value.is_integer()) or (
        isinstance(value, str) and re.fullmatch(r"-?\d{1,20}", value, re.ASCII)
    ):
        number = int(value)
    low, high = _RANGES.get(kind, _RANGES["int32"])
    if number is None or not low <= number <= high:
        raise _wrong(path, value, f"TYPE_{kind.upper()}")
    return number


def _number(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise _wrong(path, value, "TYPE_DOUBLE")
    return value


def _check_base64(value: str, path: str) -> None:
    try:
        base64.b64decode(value.replace("-", "+").replace("_", "/") + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise _wrong(path, value, "TYPE_BYTES") from None


def _wrong(path: str, value: Any, wanted: str) -> ApiError:
    field = f"resource.{path}" if path else "resource"
    shown = repr(value)
    return ApiError(400, "invalid", f"Invalid value at '{field}' ({wanted}), {shown[:200]}")

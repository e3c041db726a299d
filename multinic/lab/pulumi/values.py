"""Property values as Pulumi passes them: unknowns, whole numbers that arrived as floats, paths into documents."""

from __future__ import annotations

from typing import Any

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""How a value that a preview cannot know yet travels in a property map.

Source: https://github.com/pulumi/pulumi/blob/master/sdk/go/common/resource/plugin/rpc.go (UnknownStringValue)."""

DEFAULTS = "__defaults"
"""Inputs that Check filled in by itself; the engine hides the key, and auto-names are recognised by it.

Source: https://github.com/pulumi/pulumi-terraform-bridge/blob/main/pkg/tfbridge/schema.go."""


def has_unknown(value: Any) -> bool:
    """Tell whether an unknown is anywhere in a value."""
    if isinstance(value, dict):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(has_unknown(item) for item in value)
    return bool(value == UNKNOWN)


def whole_numbers(value: Any) -> Any:
    """Turn floats without a fraction into ints: a protobuf ``Struct`` knows only doubles."""
    if isinstance(value, dict):
        return {key: whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole_numbers(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def is_empty(value: Any) -> bool:
    """Tell whether a value means the same as no value in Google's JSON: none, false, zero, or nothing in it."""
    if isinstance(value, dict):
        return all(is_empty(item) for item in value.values())
    if isinstance(value, list):
        return not value
    return value is None or value is False or value == "" or value == 0


def dig(document: dict[str, Any], path: str) -> Any:
    """Return what is at a dotted path of a document, None where nothing is."""
    found: Any = document
    for key in path.split("."):
        if not isinstance(found, dict):
            return None
        found = found.get(key)
    return found


def put(document: dict[str, Any], path: str, value: Any) -> None:
    """Set what is at a dotted path of a document, making the objects on the way."""
    *parents, last = path.split(".")
    for key in parents:
        document = document.setdefault(key, {})
    document[last] = value

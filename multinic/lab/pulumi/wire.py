"""Property maps between Pulumi's protobuf and plain dicts."""

from __future__ import annotations

from typing import Any

from google.protobuf import json_format, struct_pb2

from multinic.lab.pulumi.values import UNKNOWN, whole_numbers

# Source: https://github.com/pulumi/pulumi/blob/master/sdk/python/lib/pulumi/runtime/rpc.py
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 the tag of a secret, no secret
_RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e"
_OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"


def unpack(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Return a property map as a plain dict: secrets opened, references to resources as their ids."""
    opened = _open(whole_numbers(json_format.MessageToDict(struct)))
    return opened if isinstance(opened, dict) else {}


def pack(properties: dict[str, Any]) -> struct_pb2.Struct:
    """Return a plain dict as a property map."""
    struct = struct_pb2.Struct()
    json_format.ParseDict(properties, struct)
    return struct


def _open(value: Any) -> Any:
    if isinstance(value, list):
        return [_open(item) for item in value]
    if not isinstance(value, dict):
        return value
    tag = value.get(_SIGNATURE)
    if tag == _SECRET:
        return _open(value.get("value"))
    if tag == _OUTPUT:
        return _open(value["value"]) if "value" in value else UNKNOWN
    if tag == _RESOURCE:
        return value.get("id") or value.get("urn")
    return {key: _open(item) for key, item in value.items()}

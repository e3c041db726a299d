"""The package schema that the CLI asks for when it writes code, as ``pulumi import`` does.

Made from the table, so it has what the lab serves and no more. Blocks are objects of any shape: their inputs are the
SDK's matter.
"""

from __future__ import annotations

import json
from typing import Any

from multinic.lab.pulumi import kinds
from multinic.lab.pulumi.types import TABLE

_ANY = {"$ref": "pulumi.json#/Any"}
_SIMPLE: tuple[tuple[type[kinds.Kind], dict[str, Any]], ...] = (
    (kinds.Text, {"type": "string"}),
    (kinds.Link, {"type": "string"}),
    (kinds.Integer, {"type": "integer"}),
    (kinds.Number, {"type": "number"}),
    (kinds.Flag, {"type": "boolean"}),
    (kinds.Strings, {"type": "object", "additionalProperties": {"type": "string"}}),
)


def gcp(version: str) -> str:
    """Return the schema of the part of pulumi-gcp that the lab serves, as JSON.

    Args:
        version: Version of the plugin.
    """
    resources = {
        token: {
            "inputProperties": {field.name: _type(field.kind) for field in kind.fields.fields},
            "requiredInputs": [field.name for field in kind.fields.fields if field.required],
            "properties": {field.name: _type(field.kind) for field in kind.fields.fields}
            | dict.fromkeys(kind.computed, _ANY),
            "required": [],
        }
        for token, kind in TABLE.items()
    }
    # Modules keep their part before the slash: `gcp:compute/network:Network` is `gcp.compute.Network` in a program.
    meta = {"moduleFormat": "(.*)(?:/[^/]*)"}
    return json.dumps({"name": "gcp", "version": version, "meta": meta, "resources": resources})


def _type(kind: kinds.Kind) -> dict[str, Any]:
    if isinstance(kind, kinds.One):
        return _type(kind.kind)
    if isinstance(kind, kinds.Items):
        return {"type": "array", "items": _type(kind.kind)}
    return next((shape for simple, shape in _SIMPLE if isinstance(kind, simple)), _ANY)

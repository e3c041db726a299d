"""Requests in a form that two runs have in common: without numbers, base URLs, name suffixes and order."""

from __future__ import annotations

import json
import re
from typing import Any

_PRINTS = ("etag", "fingerprint", "labelFingerprint")
_REPLACED = (
    (re.compile(r"/compute/(beta|v1)/"), "/compute/v1/"),
    (re.compile(r"http://127\.0\.0\.1:\d+"), "LAB"),
    (re.compile(r"(?<=[a-z0-9])-[0-9a-f]{7}(?=$|[/?])"), ""),
    (re.compile(r"instanceTemplates/\d+"), "instanceTemplates/NUMBER"),
)


def normal(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: "PRINT" if key in _PRINTS and item else normal(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((normal(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, str):
        for pattern, replacement in _REPLACED:
            value = pattern.sub(replacement, value)
    return value


def changes(requests: list[dict[str, Any]]) -> list[str]:
    """Return what changes something, one line each; reading the policy is a POST that changes nothing."""
    return sorted(
        {
            f"{request['method']} {normal(request['path'])} {json.dumps(normal(request['body']), sort_keys=True)}"
            for request in requests
            if request["method"] != "GET" and not request["path"].endswith(":getIamPolicy")
        }
    )

"""What a client may ask of an answer: filter, order, pages, and only some fields.

https://cloud.google.com/compute/docs/reference/rest/v1/instances/list (parameters) and
https://developers.google.com/workspace/drive/api/guides/fields-parameter (``fields``).
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from ..cloud.errors import ApiError, invalid
from .filters import parse

_DEFAULT_PAGE = 500


def page(answer: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """Filters, orders and cuts a list's ``items`` (or ``managedInstances``); other answers pass."""
    slot = "managedInstances" if "managedInstances" in answer else "items"
    items = answer.get(slot)
    if isinstance(items, dict):
        return _aggregated(answer, items, params)
    if not isinstance(items, list):
        return answer
    test = parse(str(params.get("filter") or ""))
    items = _ordered([item for item in items if test(item)], str(params.get("orderBy") or ""))
    size = _size(params.get("maxResults"))
    if slot == "managedInstances" and not params.get("maxResults"):
        # Groups with listManagedInstancesResults PAGELESS answer with everything.
        size = len(items) or 1
    start = _start(params.get("pageToken"))
    answer = {**answer, slot: items[start : start + size]}
    if start + size < len(items):
        answer["nextPageToken"] = base64.urlsafe_b64encode(f"from:{start + size}".encode()).decode()
    return answer


def _aggregated(answer: dict[str, Any], scopes: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    test = parse(str(params.get("filter") or ""))
    kept = {}
    for scope, content in scopes.items():
        kept[scope] = {
            name: [item for item in value if test(item)] if isinstance(value, list) else value
            for name, value in content.items()
        }
    return {**answer, "items": kept}


def _ordered(items: list[Any], order: str) -> list[Any]:
    match order.split():
        case []:
            return items
        case ["name"] | ["name", "asc"]:
            return sorted(items, key=lambda item: str(item.get("name", "")))
        case ["creationTimestamp", "desc"]:
            return sorted(items, key=lambda item: str(item.get("creationTimestamp", "")), reverse=True)
    raise invalid("orderBy", order, "Only 'name' and 'creationTimestamp desc' are supported.")


def _size(value: Any) -> int:
    if value is None:
        return _DEFAULT_PAGE
    if not 0 <= int(value) <= _DEFAULT_PAGE:
        raise invalid("maxResults", value, "Must be between 0 and 500")
    return int(value) or _DEFAULT_PAGE


def _start(token: Any) -> int:
    if not token:
        return 0
    try:
        text = base64.urlsafe_b64decode(str(token).encode()).decode()
        word, _, number = text.partition(":")
        start = int(number)
    except (binascii.Error, ValueError):
        word, start = "", -1
    if word != "from" or not 0 <= start <= 10**9:
        raise invalid("pageToken", token, "The page token is invalid.")
    return start


def only_fields(answer: Any, text: str) -> Any:
    """The parts of an answer that ``fields`` names, such as ``items(name,id),nextPageToken`` or ``items/name``."""
    position = 0

    def selection(depth: int) -> dict[str, Any]:
        nonlocal position
        chosen: dict[str, Any] = {}
        if depth > 20:
            raise _bad_fields(text)
        while True:
            begin = position
            while position < len(text) and text[position] not in ",()/":
                position += 1
            name = text[begin:position].strip()
            if not name:
                raise _bad_fields(text)
            inner: dict[str, Any] = {}
            if position < len(text) and text[position] == "/":
                position += 1
                rest = selection_one(depth + 1)
                inner = rest
            elif position < len(text) and text[position] == "(":
                position += 1
                inner = selection(depth + 1)
                if position >= len(text) or text[position] != ")":
                    raise _bad_fields(text)
                position += 1
            chosen[name] = inner
            if position < len(text) and text[position] == ",":
                position += 1
                continue
            return chosen

    def selection_one(depth: int) -> dict[str, Any]:
        nonlocal position
        if depth > 20:
            raise _bad_fields(text)
        begin = position
        while position < len(text) and text[position] not in ",()/":
            position += 1
        name = text[begin:position].strip()
        if not name:
            raise _bad_fields(text)
        if position < len(text) and text[position] == "/":
            position += 1
            return {name: selection_one(depth + 1)}
        if position < len(text) and text[position] == "(":
            position += 1
            inner = selection(depth + 1)
            if position >= len(text) or text[position] != ")":
                raise _bad_fields(text)
            position += 1
            return {name: inner}
        return {name: {}}

    wanted = selection(0)
    if position != len(text):
        raise _bad_fields(text)
    return _cut(answer, wanted)


def _bad_fields(text: str) -> ApiError:
    return ApiError(400, "invalidParameter", f"Invalid field selection {text[:100]}")


def _cut(value: Any, wanted: dict[str, Any]) -> Any:
    if not wanted or "*" in wanted:
        return value
    if isinstance(value, list):
        return [_cut(one, wanted) for one in value]
    if isinstance(value, dict):
        return {name: _cut(value[name], inner) for name, inner in wanted.items() if name in value}
    return value


def without_empty(value: Any, *, keep: bool = False) -> Any:
    """An answer without null, "", [] and {}: Google leaves them out, and clients compare.

    Args:
        value: The answer.
        keep: True inside of labels, whose values may be empty.
    """
    if isinstance(value, dict):
        cleaned = {name: without_empty(content, keep=name == "labels") for name, content in value.items()}
        return {name: content for name, content in cleaned.items() if keep or content not in (None, "", [], {})}
    if isinstance(value, list):
        return [content for one in value if (content := without_empty(one)) not in (None, "", [], {})]
    return value

"""What a client may ask of a list: filter, order, pages.

https://cloud.google.com/compute/docs/reference/rest/v1/instances/list (parameters).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any

from ..cloud.errors import invalid
from .filters import parse

_DEFAULT_PAGE = 500
"""Items on a page: discovery document compute.v1, parameter ``maxResults`` (0 to 500, default 500)."""

Item = dict[str, Any]


def page(answer: Item, params: Mapping[str, Any]) -> Item:
    """Filters, orders and cuts a list's ``items`` (or ``managedInstances``); other answers pass."""
    slot = "managedInstances" if "managedInstances" in answer else "items"
    items = answer.get(slot)
    if isinstance(items, dict):
        return _aggregated(answer, items, params)
    if not isinstance(items, list):
        return answer
    test = parse(str(params.get("filter") or ""))
    kept = [item for item in items if test(item)]
    size = _size(params.get("maxResults"))
    if slot == "managedInstances" and not params.get("maxResults"):
        # Groups with listManagedInstancesResults PAGELESS answer with everything.
        size = len(kept) or 1
    shown, following = _cut(kept, size, params.get("pageToken"), str(params.get("orderBy") or ""))
    return {**answer, slot: shown, "nextPageToken": following}


def _aggregated(answer: Item, scopes: Item, params: Mapping[str, Any]) -> Item:
    """Every scope is in the answer, those of which this page has nothing with a warning that says so."""
    test = parse(str(params.get("filter") or ""))
    flat = [
        {"scope": scope, "slot": slot, "item": item, "name": f"{scope}/{item.get('name', '')}"}
        for scope, content in scopes.items()
        for slot, items in content.items()
        if isinstance(items, list)
        for item in items
        if test(item)
    ]
    shown, following = _cut(flat, _size(params.get("maxResults")), params.get("pageToken"), "")
    found: dict[str, Item] = {scope: {} for scope in scopes}
    for entry in shown:
        found[entry["scope"]].setdefault(entry["slot"], []).append(entry["item"])
    items = {scope: content or {"warning": _nothing_there(scope)} for scope, content in found.items()}
    return {**answer, "items": items, "nextPageToken": following}


def _nothing_there(scope: str) -> Item:
    return {
        "code": "NO_RESULTS_ON_PAGE",
        "message": f"There are no results for scope '{scope}' on this page.",
        "data": [{"key": "scope", "value": scope}],
    }


def cut(items: list[Item], size: Any, token: Any, *, biggest: int) -> tuple[list[Item], str]:
    """One page of the newer APIs (``pageSize``, ``pageToken``), and the token of the next page or "".

    Args:
        items: All items, in the order of the answer.
        size: Items on the page; None or 0: as many as may be.
        token: Of the page before, or None.
        biggest: More are never on a page; Google brings a greater size down to it.
    """
    if size is not None and int(size) < 0:
        raise invalid("pageSize", size, "Must not be negative.")
    return _cut(items, min(int(size or biggest), biggest), token, "keep")


def _cut(items: list[Item], size: int, token: Any, order: str) -> tuple[list[Item], str]:
    """Pages go on after the last item shown, so that what is made or deleted meanwhile shifts nothing."""
    key, descending = _order(order)
    if key is None:
        start = _position(token)
        left = items[start:]
        last: list[Any] = [start + size]
    else:
        ordered = sorted(items, key=key, reverse=descending)
        after = _after(token)
        left = [item for item in ordered if not after or (key(item) < after if descending else key(item) > after)]
        last = key(left[size - 1]) if len(left) > size else []
    following = base64.urlsafe_b64encode(json.dumps(last).encode()).decode() if len(left) > size else ""
    return left[:size], following


def _order(order: str) -> tuple[Callable[[Item], list[str]] | None, bool]:
    match order.split():
        case [] | ["name"] | ["name", "asc"]:
            return lambda item: [str(item.get("name") or item.get("instance") or _text(item))], False
        case ["creationTimestamp", "desc"]:
            return lambda item: [str(item.get("creationTimestamp", "")), str(item.get("name", ""))], True
        case ["keep"]:
            return None, False
    raise invalid("orderBy", order, "Only 'name' and 'creationTimestamp desc' are supported.")


def _text(item: Item) -> str:
    return json.dumps(item, sort_keys=True)


def _size(value: Any) -> int:
    if value is None:
        return _DEFAULT_PAGE
    if not 0 <= int(value) <= _DEFAULT_PAGE:
        raise invalid("maxResults", value, "Must be between 0 and 500")
    return int(value) or _DEFAULT_PAGE


def _decoded(token: Any) -> list[Any]:
    if not token:
        return []
    try:
        found = json.loads(base64.urlsafe_b64decode(str(token).encode()))
    except (binascii.Error, ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not found:
        raise invalid("pageToken", token, "The page token is invalid.")
    return found


def _after(token: Any) -> list[str]:
    return [str(part) for part in _decoded(token)]


def _position(token: Any) -> int:
    found = _decoded(token)
    if not found:
        return 0
    if not isinstance(found[0], int) or not 0 <= found[0] <= 10**9:
        raise invalid("pageToken", token, "The page token is invalid.")
    return found[0]


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

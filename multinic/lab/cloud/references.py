"""Fields that name other objects: which they are, and where they are in an object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Reference:
    """A field that names another object.

    Attributes:
        path: Dotted path; ``[]`` enters a list.
        collection: What it names.
        scope: Scope of a bare name: ``global``, or ``own`` for the object's own.
        holds: Whether the object named cannot be deleted while this one refers to it.
    """

    path: str
    collection: str
    scope: str = "own"
    holds: bool = True


def slots(value: Any, path: str, prefix: str = "") -> list[tuple[str, Any, Any]]:
    """(path for messages, container, index) of each value at a path."""
    head, _, rest = path.partition(".")
    name = head.removesuffix("[]")
    if not isinstance(value, dict) or value.get(name) is None:
        return []
    if not head.endswith("[]"):
        if not rest:
            return [(prefix + name, value, name)]
        return slots(value[name], rest, f"{prefix}{name}.")
    if not isinstance(value[name], list):
        return []
    found: list[tuple[str, Any, Any]] = []
    for index, item in enumerate(value[name]):
        here = f"{prefix}{name}[{index}]"
        found += [(here, value[name], index)] if not rest else slots(item, rest, here + ".")
    return found

"""Fields that name other objects: which they are, and where they are in an object."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .errors import invalid, not_found
from .links import link, name_of, resolve, split
from .store import Object

if TYPE_CHECKING:
    from .cloud import Cloud


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


def link_up(cloud: Cloud, references: Iterable[Reference], key: str, value: Object) -> set[str]:
    """Turns an object's references into full links; gives the keys that they hold."""
    held: set[str] = set()
    own = split(key).scope
    for reference in references:
        for path, owner, slot in slots(value, reference.path):
            text = owner[slot]
            if text in (None, ""):
                continue
            target = require(cloud, path, str(text), reference.collection, reference.scope, own)
            owner[slot] = link(target)
            if reference.holds:
                held.add(target)
    return held


def require(cloud: Cloud, path: str, text: str, collection: str, scope: str, own: str) -> str:
    """The key that a reference means.

    Args:
        cloud: Where the object is looked for.
        path: The field's path, for messages.
        text: What the field says: a link, a path or a name.
        collection: What it must name.
        scope: Scope of a bare name: ``global``, or ``own``.
        own: Scope of the object that has the field.

    Raises:
        ApiError: 400 ``invalid`` for a text that is no reference to such a thing or (in a nested field) to nothing,
            404 ``notFound`` for one to nothing.
    """
    try:
        target = resolve(text, cloud.project, collection, "global" if scope == "global" else own)
        parts = split(target)
    except ValueError:
        raise invalid(path, text, "The URL is malformed.") from None
    if parts.collection != collection:
        raise invalid(path, text, f"Unexpected resource collection '{parts.collection}'.")
    target = cloud.by_number(target)
    if cloud.store.get(target) is None:
        if "[" in path:
            raise invalid(path, text, f"The referenced {name_of(path.split('[')[0])} resource cannot be found.")
        raise not_found(target)
    return target

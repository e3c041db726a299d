"""What the API refuses, as tables: each rule names a field, says what it must be, and where that is written.

The rules of a resource stand beside it, for instance in `networks.RULES`. A rule sees the whole object (references
already resolved) and gives the sentence that follows "Invalid value for field …", or None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from .errors import invalid

Object = dict[str, Any]
DISCOVERY = "discovery document compute.v1, "
"""Begins the source of a rule that a field's description in Google's discovery document states."""


@dataclass(frozen=True)
class Rule:
    """One reason to refuse.

    Attributes:
        field: Path of the field in the request body, for the message.
        requirement: What must hold, in words.
        source: URL, or discovery document and field.
        broken: Object → None where the rule holds, else the sentence (empty: `requirement` itself).
    """

    field: str
    requirement: str
    source: str
    broken: Callable[[Object], str | None]

    def apply(self, value: Object) -> None:
        """Raises 400 ``invalid`` where the rule is broken."""
        sentence = self.broken(value)
        if sentence is not None:
            raise invalid(self.field, at(value, self.field), sentence or self.requirement)


def at(value: Object, path: str) -> Any:
    """The value at a dotted path, or None; lists are not entered."""
    current: Any = value
    for part in path.split("."):
        if not isinstance(current, dict):
            return None
        current = current.get(part)
    return current


def between(field: str, low: float, high: float, source: str) -> Rule:
    """The number lies in a closed range."""
    need = f"Must be between {low:g} and {high:g}"

    def broken(value: Object) -> str | None:
        number = at(value, field)
        return None if number is None or low <= float(number) <= high else ""

    return Rule(field, need, source, broken)


def at_most(field: str, most: int, source: str) -> Rule:
    """The list has no more than so many entries."""
    return holds(field, f"At most {most} may be given.", source, lambda value: len(at(value, field) or ()) <= most)


def one_of(field: str, values: Collection[str], source: str) -> Rule:
    """The text is one of a few."""
    need = f"Must be one of {', '.join(sorted(values))}"

    def broken(value: Object) -> str | None:
        text = at(value, field)
        return None if text is None or text in values else ""

    return Rule(field, need, source, broken)


def matches(field: str, pattern: str, source: str) -> Rule:
    """The text matches a pattern as a whole."""
    compiled = re.compile(pattern)
    need = f"Must be a match of regex '{pattern}'"

    def broken(value: Object) -> str | None:
        text = at(value, field)
        return None if text is None or compiled.fullmatch(str(text)) else ""

    return Rule(field, need, source, broken)


def holds(field: str, requirement: str, source: str, test: Callable[[Object], bool]) -> Rule:
    """A test of the whole object, in words of its own."""
    return Rule(field, requirement, source, lambda value: None if test(value) else "")


def network_of(text: Any) -> IPv4Network | None:
    """The IPv4 range that a text means, host bits refused; None where it is none."""
    try:
        return IPv4Network(str(text))
    except ValueError:
        return None


def address_of(text: Any) -> IPv4Address | None:
    """The IPv4 address that a text means, or None."""
    try:
        return IPv4Address(str(text))
    except ValueError:
        return None


def is_port_range(text: Any) -> bool:
    """Whether a text is a port or a range of ports, 0 to 65535."""
    found = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", str(text))
    if not found:
        return False
    first, last = int(found[1]), int(found[2] or found[1])
    return first <= last <= 65535

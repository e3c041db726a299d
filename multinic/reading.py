"""Reads plain Python values out of nested inputs: type, range, spelling, unknown keys.

A `Section` is one mapping of the inputs and knows its path. Reading never raises: what is wrong is noted in
`Problems`, and the default (or a harmless stand-in) is returned, so that one run finds everything.
"""

import difflib
import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

import pulumi

from multinic.problems import Problems

Choice = TypeVar("Choice", bound=StrEnum)
T = TypeVar("T")

_LONGEST_SHOWN = 120

UNREADABLE = ipaddress.IPv4Network("255.255.255.255/32")
"""Stands for a range that cannot be read, so that those after it keep their places; no VPC network routes it."""

_OUTPUT = (
    "is an Output, whose value is known only after deployment; this input decides which resources there are, "
    "so give a plain Python value"
)


def similar(word: str, known: Sequence[str]) -> str:
    """Returns ``; did you mean X?`` or ``; known are …`` for a misspelt word."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else f"; known: {', '.join(sorted(known))}"


class Section:
    """One mapping of the inputs.

    Args:
        value: What was given; anything but a mapping is a problem.
        path: Its path, empty for the top.
        problems: Where problems are noted.
    """

    def __init__(self, value: object, path: str, problems: Problems) -> None:
        self.path = path
        self.problems = problems
        self.is_broken = False
        """Whether it is no mapping: what is missing inside is not told as well."""
        self._known: list[str] = []
        self._values: Mapping[str, Any] = {}
        if isinstance(value, Mapping):
            self._values = value
        else:
            self.is_broken = True
            if self._is_plain(path or "args", value):
                problems.add(path or "args", f"must be a mapping of names to values, not {shown(value)}")

    def at(self, key: object) -> str:
        """Path of a key of this section."""
        return f"{self.path}.{one_line(key)}" if self.path else one_line(key)

    def given(self) -> tuple[str, ...]:
        """The keys that were given, where they are free to choose."""
        return tuple(self._values)

    def pick(self, *keys: str) -> dict[str, Any]:
        """Returns those of the keys that were given, as they were given: somebody else judges their values."""
        self._known += keys
        return {key: self._values[key] for key in keys if key in self._values}

    def has(self, key: str) -> bool:
        """Whether the key was given; None counts as not given."""
        return self._values.get(key) is not None

    def done(self) -> None:
        """Notes every key that no reader has asked for."""
        for key in self._values:
            if key not in self._known:
                self.problems.add(self.at(key), f"no such input{similar(str(key), self._known)}")

    def text(self, key: str, default: str | None = None, *, pattern: str = "", form: str = "") -> str:
        """Reads a string; without a default it is required.

        Args:
            key: Its name.
            default: Its value when not given.
            pattern: Regular expression for the whole string.
            form: What the pattern means, in words.
        """
        value = self._read(key, default, "a string", lambda v: isinstance(v, str), "")
        if not value and default is None and self.has(key) and not self.problems.touch(self.at(key)):
            self.problems.add(self.at(key), f"is empty; give {form or 'a string'}")
        if not value or not is_text(value, self.at(key), self.problems):
            return default or ""
        if pattern and not re.fullmatch(pattern, value):
            self.problems.add(self.at(key), f"{shown(value)} is not {form}")
            return default or ""
        return value

    def integer(self, key: str, default: int | None, low: int, high: int, unit: str = "") -> int:
        """Reads a whole number between two bounds, both allowed; without a default it is required."""
        value = self._read(key, default, "a whole number", _is_int, low)
        return int(self._bounded(key, int(value), default, low, high, unit))

    def number(self, key: str, default: float, low: float, high: float, unit: str = "") -> float:
        """Reads a number between two bounds, both allowed."""
        value = self._read(key, default, "a number", lambda v: isinstance(v, float) or _is_int(v), low)
        return float(self._bounded(key, value, default, low, high, unit))

    def optional_integer(self, key: str, low: int, high: int, unit: str = "") -> int | None:
        """Reads a whole number that has no default of ours; None as well if it cannot be read."""
        value = self.integer(key, low, low, high, unit)
        return value if self.has(key) and not self.problems.touch(self.at(key)) else None

    def optional_number(self, key: str, low: float, high: float) -> float | None:
        """Reads a number that has no default of ours; None as well if it cannot be read."""
        value = self.number(key, low, low, high)
        return value if self.has(key) and not self.problems.touch(self.at(key)) else None

    def flag(self, key: str, default: bool) -> bool:
        """Reads true or false."""
        return self._read(key, default, "true or false", lambda v: isinstance(v, bool), False)

    def choice(self, key: str, default: Choice) -> Choice:
        """Reads a member of an enumeration, given as such or by its value."""
        kind = type(default)
        value = self._read(key, default, "a string", lambda v: isinstance(v, str), default)
        if value in {member.value for member in kind}:
            return kind(value)
        names = [member.value for member in kind]
        self.problems.add(self.at(key), f"{shown(value)} is not one of {', '.join(names)}")
        return default

    def texts(self, key: str, default: Sequence[str] | None = (), form: str = "a string") -> tuple[str, ...]:
        """Reads a list of strings, none of them empty; with the default None it is required.

        What cannot be read is an empty string, so that those after it keep their places.
        """
        values = self._list(key, default)
        return tuple(self._text_of_list(f"{self.at(key)}[{index}]", value, form) for index, value in enumerate(values))

    def _text_of_list(self, path: str, value: object, form: str) -> str:
        if not self._is_plain(path, value):
            return ""
        if not isinstance(value, str):
            self.problems.add(path, f"must be a string, not {shown(value)}")
            return ""
        if not value:
            self.problems.add(path, f"is empty; give {form}, or leave it out")
        return value if is_text(value, path, self.problems) else ""

    def pairs(self, key: str) -> dict[str, str]:
        """Reads a mapping of strings to strings, empty when not given."""
        none: Mapping[str, object] = {}
        values = self._read(key, none, "a mapping of strings", lambda v: isinstance(v, Mapping), none)
        result = {}
        for name, value in values.items():
            path = f"{self.at(key)}.{one_line(name)}"
            if not isinstance(name, str):
                self.problems.add(path, f"a key must be a string (quote it), not {shown(name)}")
            elif is_text(name, path, self.problems) and self._is_plain(path, value):
                if not isinstance(value, str):
                    self.problems.add(path, f"must be a string (quote it), not {shown(value)}")
                elif is_text(value, path, self.problems):
                    result[name] = value
        return result

    def cidrs(self, key: str, default: Sequence[str] | None = ()) -> tuple[ipaddress.IPv4Network, ...]:
        """Reads a list of IPv4 ranges. In the place of one that cannot be read is what it may mean, or `UNREADABLE`."""
        values = self.texts(key, default, "an IPv4 range such as 10.1.0.0/16")
        return tuple(
            read_cidr(value, f"{self.at(key)}[{i}]", self.problems) if value else UNREADABLE
            for i, value in enumerate(values)
        )

    def link(self, key: str, *, required: bool = True) -> pulumi.Input[str]:
        """Reads a link, address or e-mail: a plain string or an Output, which stays one. Empty when not given."""
        self._known.append(key)
        value = self._values.get(key)
        if isinstance(value, pulumi.Output):
            return value
        if isinstance(value, str) and value:
            return value if is_text(value, self.at(key), self.problems) else ""
        if self.is_broken or (value is None and not required):
            return ""
        wrong = f"must be a string or an Output of one, not {shown(value)}"
        if value is None:
            wrong = "is required"
        elif value == "":
            wrong = "is empty; give a string" if required else "is empty; give a string, or leave it out"
        elif isinstance(value, pulumi.Resource):
            wrong = f"is a {type(value).__name__}; give an output of it, such as its self_link"
        self.problems.add(self.at(key), wrong)
        return ""

    def section(self, key: str) -> "Section":
        """Returns a nested mapping, empty when not given."""
        self._known.append(key)
        value = self._values.get(key)
        found = Section({} if value is None else value, self.at(key), self.problems)
        found.is_broken |= self.is_broken
        return found

    def sections(self, key: str, *, required: bool = True) -> tuple["Section", ...]:
        """Returns a list of nested mappings."""
        values = self._list(key, None if required else ())
        return tuple(Section(value, f"{self.at(key)}[{i}]", self.problems) for i, value in enumerate(values))

    def _list(self, key: str, default: Sequence[Any] | None) -> Sequence[Any]:
        def is_list(value: object) -> bool:
            return isinstance(value, Sequence) and not isinstance(value, str | bytes)

        values: Sequence[Any] = self._read(key, default, "a list", is_list, ())
        return values

    def _read(self, key: str, default: T | None, kind: str, accept: Callable[[Any], bool], stand_in: T) -> T:
        """Returns the value if it is acceptable; otherwise notes why not."""
        self._known.append(key)
        value = self._values.get(key)
        if value is None:
            if default is None:
                if not self.is_broken:
                    self.problems.add(self.at(key), f"is required: give {kind}")
                return stand_in
            return default
        fallback = stand_in if default is None else default
        if not self._is_plain(self.at(key), value):
            return fallback
        if not accept(value):
            self.problems.add(self.at(key), f"must be {kind}, not {shown(value)}")
            return fallback
        result: T = value
        return result

    def _bounded(self, key: str, value: float, default: float | None, low: float, high: float, unit: str) -> float:
        if low <= value <= high:
            return value
        # A whole number may be too great for a float, which `:g` would make of it.
        said = f"{value:g}" if isinstance(value, float) or abs(value) < 1e6 else shown(value)
        self.problems.add(self.at(key), f"{said} is outside {low:g} to {high:g}{' ' + unit if unit else ''}")
        return low if default is None else default

    def _is_plain(self, path: str, value: object) -> bool:
        if isinstance(value, pulumi.Output):
            self.problems.add(path, _OUTPUT, is_output=True)
            return False
        return True


def read_cidr(text: str, path: str, problems: Problems) -> ipaddress.IPv4Network:
    """Reads one IPv4 range, address and prefix length; says what is wrong with any other text.

    Returns:
        The range, or what is probably meant, or `UNREADABLE`.
    """
    if ":" in text:
        problems.add(path, f"{shown(text)} is IPv6; multinic routes IPv4 only", rule="ipv4-only")
        return UNREADABLE
    try:
        meant = ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        problems.add(path, f"{shown(text)} is not an IPv4 range such as 10.1.0.0/16", rule="cidr-form")
        return UNREADABLE
    if text == str(meant):
        return meant
    if text.partition("/")[2] == str(meant.prefixlen):
        problems.add(path, f"{text} has host bits set; did you mean {meant}?", rule="cidr-host-bits")
    else:
        # Python also reads netmasks, and a bare address; Google Cloud does not, or takes it for something else.
        problems.add(
            path, f"{shown(text)} is not an address and a prefix length; did you mean {meant}?", rule="cidr-form"
        )
    return meant


def is_text(value: str, path: str, problems: Problems) -> bool:
    """Whether every character can be sent; notes it if not. Half a surrogate pair is none, NUL ends a text early."""
    bad = next((char for char in value if char == "\0" or "\ud800" <= char <= "\udfff"), None)
    if bad is not None:
        problems.add(path, f"holds U+{ord(bad):04X}, which cannot be sent as text")
    return bad is None


def shown(value: object) -> str:
    """Returns a value as one short line."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write out whole numbers of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def one_line(key: object) -> str:
    """Returns a key that may have line breaks in it as part of a path."""
    text = str(key)
    return text if text.isprintable() else ascii(text)[1:-1]


def _is_int(value: object) -> bool:
    # JSON and the plugin protocol know one kind of number: 4.0 is 4 there. True is an int in Python, not here.
    return not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))

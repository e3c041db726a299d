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
        self._known: list[str] = []
        self._values: Mapping[str, Any] = {}
        if isinstance(value, Mapping):
            self._values = value
        elif self._is_plain(path or "args", value):
            problems.add(path or "args", f"must be a mapping of names to values, not {value!r}")

    def at(self, key: str) -> str:
        """Path of a key of this section."""
        return f"{self.path}.{key}" if self.path else key

    def given(self) -> tuple[str, ...]:
        """The keys that were given, where they are free to choose."""
        return tuple(self._values)

    def has(self, key: str) -> bool:
        """Whether the key was given; None counts as not given."""
        return self._values.get(key) is not None

    def done(self) -> None:
        """Notes every key that no reader has asked for."""
        for key in self._values:
            if key not in self._known:
                self.problems.add(self.at(str(key)), f"no such input{similar(str(key), self._known)}")

    def text(self, key: str, default: str | None = None, *, pattern: str = "", form: str = "") -> str:
        """Reads a string; without a default it is required.

        Args:
            key: Its name.
            default: Its value when not given.
            pattern: Regular expression for the whole string.
            form: What the pattern means, in words.
        """
        value = self._read(key, default, "a string", lambda v: isinstance(v, str), "")
        if pattern and value and not re.fullmatch(pattern, value):
            self.problems.add(self.at(key), f"{value!r} is not {form}")
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
        self.problems.add(self.at(key), f"{value!r} is not one of {', '.join(names)}")
        return default

    def texts(self, key: str, default: Sequence[str] | None = ()) -> tuple[str, ...]:
        """Reads a list of strings; with the default None it is required."""
        values = self._list(key, default)
        result = []
        for index, value in enumerate(values):
            if self._is_plain(f"{self.at(key)}[{index}]", value):
                if isinstance(value, str):
                    result.append(value)
                else:
                    self.problems.add(f"{self.at(key)}[{index}]", f"must be a string, not {value!r}")
        return tuple(result)

    def pairs(self, key: str) -> dict[str, str]:
        """Reads a mapping of strings to strings, empty when not given."""
        none: Mapping[str, object] = {}
        values = self._read(key, none, "a mapping of strings", lambda v: isinstance(v, Mapping), none)
        result = {}
        for name, value in values.items():
            path = f"{self.at(key)}.{name}"
            if self._is_plain(path, value):
                if isinstance(value, str):
                    result[str(name)] = value
                else:
                    self.problems.add(path, f"must be a string (quote it), not {value!r}")
        return result

    def cidrs(self, key: str, default: Sequence[str] | None = ()) -> tuple[ipaddress.IPv4Network, ...]:
        """Reads a list of IPv4 ranges."""
        values = self.texts(key, default)
        ranges = [read_cidr(value, f"{self.at(key)}[{i}]", self.problems) for i, value in enumerate(values)]
        return tuple(network for network in ranges if network is not None)

    def link(self, key: str, *, required: bool = True) -> pulumi.Input[str]:
        """Reads a link, address or e-mail: a plain string or an Output, which stays one. Empty when not given."""
        self._known.append(key)
        value = self._values.get(key)
        if isinstance(value, pulumi.Output):
            return value
        if isinstance(value, str) and value:
            return value
        if value is None and not required:
            return ""
        wrong = "is required" if value is None else f"must be a string or an Output of one, not {value!r}"
        self.problems.add(self.at(key), wrong)
        return ""

    def section(self, key: str) -> "Section":
        """Returns a nested mapping, empty when not given."""
        self._known.append(key)
        value = self._values.get(key)
        return Section({} if value is None else value, self.at(key), self.problems)

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
                self.problems.add(self.at(key), f"is required: give {kind}")
                return stand_in
            return default
        fallback = stand_in if default is None else default
        if not self._is_plain(self.at(key), value):
            return fallback
        if not accept(value):
            self.problems.add(self.at(key), f"must be {kind}, not {value!r}")
            return fallback
        result: T = value
        return result

    def _bounded(self, key: str, value: float, default: float | None, low: float, high: float, unit: str) -> float:
        if low <= value <= high:
            return value
        self.problems.add(self.at(key), f"{value:g} is outside {low:g} to {high:g}{' ' + unit if unit else ''}")
        return low if default is None else default

    def _is_plain(self, path: str, value: object) -> bool:
        if isinstance(value, pulumi.Output):
            self.problems.add(path, _OUTPUT, is_output=True)
            return False
        return True


def read_cidr(text: str, path: str, problems: Problems) -> ipaddress.IPv4Network | None:
    """Reads one IPv4 range; says what is wrong with any other text."""
    if ":" in text:
        problems.add(path, f"{text} is IPv6; multinic routes IPv4 only", rule="ipv4-only")
        return None
    try:
        return ipaddress.IPv4Network(text)
    except ValueError:
        pass
    try:
        meant = ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        problems.add(path, f"{text!r} is not an IPv4 range such as 10.1.0.0/16", rule="cidr-form")
        return None
    problems.add(path, f"{text} has host bits set; did you mean {meant}?", rule="cidr-host-bits")
    return None


def _is_int(value: object) -> bool:
    # JSON and the plugin protocol know one kind of number: 4.0 is 4 there. True is an int in Python, not here.
    return not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))

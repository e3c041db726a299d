"""Kinds of inputs: how each is checked, sent, read back and compared."""

# ruff: noqa: D102 what a method of a kind does is said once, in `kinds.Kind`
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from multinic.lab.pulumi import links
from multinic.lab.pulumi.rest import Rest
from multinic.lab.pulumi.values import UNKNOWN


@dataclass(frozen=True)
class Problem:
    """An input that the plugin refuses before anything is created.

    Attributes:
        path: Where it is, such as ``disks[0].diskType``.
        reason: What is wrong with it.
    """

    path: str
    reason: str


@dataclass(frozen=True)
class Scope:
    """Where a resource lives and who is asked about it.

    Attributes:
        project: Project id.
        region: Region, empty where neither the resource nor the provider names one.
        zone: Zone, likewise.
        rest: The API.
    """

    project: str
    region: str
    zone: str
    rest: Rest


class Kind:
    """Any value: nothing checked, sent as it is. The other kinds refine it."""

    def check(self, value: Any, path: str, problems: list[Problem]) -> Any:
        """Return the value in its normal form, adding to the problems what the plugin would refuse."""
        return value

    def encode(self, value: Any, scope: Scope) -> Any:
        """Return what is sent for a value."""
        return value

    def decode(self, value: Any) -> Any:
        """Return the value for what the API answered."""
        return value

    def same(self, wanted: Any, live: Any) -> bool:
        """Tell whether two values mean the same."""
        return bool(wanted == live)

    def settle(self, wanted: Any, live: Any) -> Any:
        """Return the value as the program wrote it where the API's means the same, else the API's."""
        return wanted if self.same(wanted, live) else live


@dataclass(frozen=True)
class Text(Kind):
    """A string.

    Attributes:
        pattern: Regular expression that the plugin holds it to.
        choices: Values that the plugin takes, all where empty.
        test: Returns a complaint about a value, None where it is fine.
        sent: Given value → sent value, where the plugin sends another.
    """

    pattern: str = ""
    choices: tuple[str, ...] = ()
    test: Callable[[str], str | None] | None = None
    sent: tuple[tuple[str, str], ...] = ()

    def check(self, value: Any, path: str, problems: list[Problem]) -> Any:
        if isinstance(value, bool):
            value = str(value).lower()
        elif isinstance(value, int | float):
            value = str(value)
        if not isinstance(value, str):
            problems.append(Problem(path, f"expected a string, got {_described(value)}"))
        elif value != UNKNOWN:
            self._check_text(value, path, problems)
        return value

    def _check_text(self, value: str, path: str, problems: list[Problem]) -> None:
        if self.pattern and not re.search(self.pattern, value):
            problems.append(Problem(path, f'"{value}" doesn\'t match regexp "{self.pattern}"'))
        if self.choices and value not in self.choices:
            problems.append(Problem(path, f'expected to be one of {list(self.choices)}, got "{value}"'))
        complaint = self.test(value) if self.test else None
        if complaint:
            problems.append(Problem(path, complaint))

    def encode(self, value: Any, scope: Scope) -> Any:
        return dict(self.sent).get(value, value)

    def decode(self, value: Any) -> Any:
        return {there: here for here, there in self.sent}.get(value, value)


@dataclass(frozen=True)
class Integer(Kind):
    """A whole number.

    Attributes:
        low: Smallest that the plugin takes.
        high: Largest that the plugin takes.
        as_text: Sent as a string, as Google's JSON does with 64-bit numbers.
    """

    low: int | None = None
    high: int | None = None
    as_text: bool = False

    def check(self, value: Any, path: str, problems: list[Problem]) -> Any:
        if isinstance(value, str) and re.fullmatch(r"-?\d+", value):
            value = int(value)
        if value == UNKNOWN:
            return value
        if isinstance(value, bool) or not isinstance(value, int):
            problems.append(Problem(path, f"expected a whole number, got {_described(value)}"))
            return value
        low, high = self.low, self.high
        if (low is not None and value < low) or (high is not None and value > high):
            bounds = f"in the range ({low} - {high})" if high is not None else f"at least ({low})"
            problems.append(Problem(path, f"expected to be {bounds}, got {value}"))
        return value

    def encode(self, value: Any, scope: Scope) -> Any:
        return str(value) if self.as_text else value

    def decode(self, value: Any) -> Any:
        return int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else value


class Number(Kind):
    """A number, whole or not."""

    def check(self, value: Any, path: str, problems: list[Problem]) -> Any:
        if value != UNKNOWN and (isinstance(value, bool) or not isinstance(value, int | float)):
            problems.append(Problem(path, f"expected a number, got {_described(value)}"))
        return value


class Flag(Kind):
    """True or false."""

    def check(self, value: Any, path: str, problems: list[Problem]) -> Any:
        if isinstance(value, str) and value in ("true", "false"):
            return value == "true"
        if value != UNKNOWN and not isinstance(value, bool):
            problems.append(Problem(path, f"expected true or false, got {_described(value)}"))
        return value


@dataclass(frozen=True)
class Link(Kind):
    """A link to another resource.

    Attributes:
        collection: Collection of a bare name, such as ``networks``; empty: a bare name is sent as it is.
        within: ``global``, ``region`` or ``zone``: where the collection of a bare name is.
        form: ``path`` sends the part from ``projects/`` on, ``url`` the full v1 URL, ``given`` what was given.
    """

    collection: str = ""
    within: str = "global"
    form: str = "path"

    def check(self, value: Any, path: str, problems: list[Problem]) -> Any:
        return Text().check(value, path, problems)

    def encode(self, value: Any, scope: Scope) -> Any:
        if self.form == "given" or not value:
            return value
        if "/" not in value and self.collection:
            places = {"global": "global", "region": f"regions/{scope.region}", "zone": f"zones/{scope.zone}"}
            value = f"projects/{scope.project}/{places[self.within]}/{self.collection}/{value}"
        return links.full(value) if self.form == "url" else links.path_of(value)

    def decode(self, value: Any) -> Any:
        return links.as_v1(value) if isinstance(value, str) else value

    def same(self, wanted: Any, live: Any) -> bool:
        if not isinstance(wanted, str) or not isinstance(live, str) or UNKNOWN in (wanted, live):
            return bool(wanted == live)
        return links.same_resource(wanted, live)


@dataclass(frozen=True)
class Items(Kind):
    """A list, or a set where order means nothing.

    Attributes:
        kind: Kind of each item.
        is_set: Sent sorted and compared without order.
        most: Largest number of items that the plugin takes.
    """

    kind: Kind
    is_set: bool = False
    most: int | None = None

    def check(self, value: Any, path: str, problems: list[Problem]) -> Any:
        if value == UNKNOWN:
            return value
        if not isinstance(value, list):
            problems.append(Problem(path, f"expected a list, got {_described(value)}"))
            return value
        if self.most is not None and len(value) > self.most:
            problems.append(Problem(path, f"Too many list items: at most {self.most} allowed, got {len(value)}"))
        return [self.kind.check(item, f"{path}[{index}]", problems) for index, item in enumerate(value)]

    def encode(self, value: Any, scope: Scope) -> Any:
        return [self.kind.encode(item, scope) for item in self._ordered(value)]

    def decode(self, value: Any) -> Any:
        return [self.kind.decode(item) for item in value or []]

    def _ordered(self, value: Any) -> list[Any]:
        return sorted(value, key=_sort_key) if self.is_set else list(value)

    def same(self, wanted: Any, live: Any) -> bool:
        if UNKNOWN in (wanted, live):
            return bool(wanted == live)
        wanted, live = self._ordered(wanted or []), self._ordered(live or [])
        return len(wanted) == len(live) and all(map(self.kind.same, wanted, live))

    def settle(self, wanted: Any, live: Any) -> Any:
        if UNKNOWN in (wanted, live) or len(wanted or []) != len(live or []):
            return live
        mine = self._ordered(wanted or [])
        settled = [self.kind.settle(*pair) for pair in zip(mine, self._ordered(live or []), strict=True)]
        return wanted if settled == mine else settled


@dataclass(frozen=True)
class One(Kind):
    """A single value that the API keeps in a list."""

    kind: Kind

    def check(self, value: Any, path: str, problems: list[Problem]) -> Any:
        return self.kind.check(value, path, problems)

    def encode(self, value: Any, scope: Scope) -> Any:
        return [self.kind.encode(value, scope)]

    def decode(self, value: Any) -> Any:
        return self.kind.decode(value[0]) if value else None

    def same(self, wanted: Any, live: Any) -> bool:
        return self.kind.same(wanted, live)

    def settle(self, wanted: Any, live: Any) -> Any:
        return self.kind.settle(wanted, live)


class Strings(Kind):
    """A map from strings to strings, such as labels."""

    def check(self, value: Any, path: str, problems: list[Problem]) -> Any:
        if value == UNKNOWN:
            return value
        if not isinstance(value, dict):
            problems.append(Problem(path, f"expected a map, got {_described(value)}"))
            return value
        return {key: Text().check(item, f'{path}["{key}"]', problems) for key, item in value.items()}


def _described(value: Any) -> str:
    names = {dict: "a map", list: "a list", str: f'the string "{value}"', bool: str(value).lower()}
    return names.get(type(value), repr(value))


def _sort_key(item: Any) -> str:
    # Backends of a service are a set of groups; their group is what tells them apart in every form of the link.
    if isinstance(item, dict):
        return links.path_of(str(item.get("group", item.get("name", sorted(item.items(), key=str)))))
    return str(item)

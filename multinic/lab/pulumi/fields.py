"""Declared inputs of a resource type, and the translation between them and the API's documents."""

# ruff: noqa: D102 what a method of a kind does is said once, in `kinds.Kind`
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from multinic.lab.pulumi.kinds import Items, Kind, Problem, Scope, Text
from multinic.lab.pulumi.values import UNKNOWN, dig, is_empty, put


@dataclass(frozen=True)
class Field:
    """One input.

    Attributes:
        name: Name on Pulumi's wire, camelCase.
        kind: What it is.
        to: Dotted path in the API's document; empty where it is the name.
        sent: False for what only the plugin itself looks at.
        required: Refused when it is not given.
        replaces: A change makes a new resource.
        computed: The API chooses where the program does not, so a value that nobody asked for is no drift.
        default: What the plugin sends when nothing is given.
    """

    name: str
    kind: Kind = Text()  # noqa: RUF009 frozen and without state
    to: str = ""
    sent: bool = True
    required: bool = False
    replaces: bool = False
    computed: bool = False
    default: Any = None

    @property
    def path(self) -> str:
        """Where the API's document has it."""
        return self.to or self.name


@dataclass(frozen=True)
class Fields:
    """The inputs of a resource type, or of a block within one."""

    fields: tuple[Field, ...]

    def check(self, value: dict[str, Any], path: str, problems: list[Problem]) -> tuple[dict[str, Any], list[str]]:
        """Check inputs and add the plugin's defaults.

        Returns:
            The inputs in their normal form, and the names that were added.
        """
        known = {field.name: field for field in self.fields}
        prefix = f"{path}." if path else ""
        checked: dict[str, Any] = {}
        for name, item in value.items():
            if name in known and item is not None:
                checked[name] = known[name].kind.check(item, prefix + name, problems)
            elif name not in known and not name.startswith("__"):
                problems.append(Problem(prefix + name, f'the lab does not know the input "{prefix}{name}"'))
        added = []
        for field in self.fields:
            if field.name in checked:
                continue
            if field.required:
                problems.append(Problem(prefix + field.name, f"Missing required argument '{prefix}{field.name}'"))
            elif field.default is not None:
                checked[field.name] = field.default
                added.append(field.name)
        return checked, added

    def encode(self, value: dict[str, Any], scope: Scope) -> dict[str, Any]:
        """Return the API's document for inputs."""
        document: dict[str, Any] = {}
        for field in self.fields:
            if field.sent and field.name in value:
                put(document, field.path, field.kind.encode(value[field.name], scope))
        return document

    def decode(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return the inputs that the API's document shows."""
        found: dict[str, Any] = {}
        for field in self.fields:
            item = dig(document, field.path) if field.sent else None
            if item is not None:
                found[field.name] = field.kind.decode(item)
        return found

    def changed(self, old: dict[str, Any], new: dict[str, Any]) -> list[Field]:
        """Return the inputs in which two sets of them differ."""
        return [field for field in self.fields if not _alike(field, old.get(field.name), new.get(field.name))]

    def settle(self, wanted: dict[str, Any], live: dict[str, Any]) -> dict[str, Any]:
        """Return inputs as they would have to be written to describe what is live now.

        What the program wrote stays as it is where it means the same; what the API chose by itself stays out.
        """
        settled: dict[str, Any] = {}
        for field in self.fields:
            mine, theirs = wanted.get(field.name), live.get(field.name)
            if not field.sent:
                theirs = mine
            if mine is None:
                meaningless = theirs is None or (is_empty(theirs) and field.default is None)
                unasked = meaningless or field.computed or theirs == field.default
                value = None if unasked else theirs
            elif theirs is None:
                # Google leaves false, zero and empty values out of its answers.
                value = mine if is_empty(mine) or mine == field.default else None
            else:
                value = field.kind.settle(mine, theirs)
            if value is not None:
                settled[field.name] = value
        return settled


def _alike(field: Field, old: Any, new: Any) -> bool:
    if new is None:
        # What the program leaves to the API stays as the API has it.
        return old is None or field.computed or is_empty(old) or bool(old == field.default)
    if old is None:
        return (is_empty(new) and not field.computed) or bool(new == field.default)
    return field.kind.same(old, new)


@dataclass(frozen=True)
class Block(Kind):
    """A nested object with declared inputs of its own."""

    inner: Fields

    def check(self, value: Any, path: str, problems: list[Problem]) -> Any:
        if value == UNKNOWN:
            return value
        if not isinstance(value, dict):
            problems.append(Problem(path, "expected an object"))
            return value
        return self.inner.check(value, path, problems)[0]

    def encode(self, value: Any, scope: Scope) -> Any:
        return self.inner.encode(value, scope)

    def decode(self, value: Any) -> Any:
        return self.inner.decode(value) if isinstance(value, dict) else value

    def same(self, wanted: Any, live: Any) -> bool:
        if not isinstance(wanted, dict) or not isinstance(live, dict):
            return bool(wanted == live)
        return not self.inner.changed(wanted, live)

    def settle(self, wanted: Any, live: Any) -> Any:
        if not isinstance(wanted, dict) or not isinstance(live, dict):
            return live
        return self.inner.settle(wanted, live)


def block(*fields: Field) -> Block:
    """Return a nested object with these inputs."""
    return Block(Fields(fields))


def blocks(*fields: Field, is_set: bool = False) -> Items:
    """Return a list of nested objects with these inputs."""
    return Items(block(*fields), is_set)


def names(fields: Iterable[Field]) -> list[str]:
    """Return the names of inputs."""
    return [field.name for field in fields]

"""A resource type as a table entry, with hooks for what no table can say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from multinic.lab.pulumi.fields import Fields
from multinic.lab.pulumi.kinds import Problem, Scope
from multinic.lab.pulumi.rest import Document

Inputs = dict[str, Any]
Outputs = dict[str, Any]

PROVISIONED = {"goog-pulumi-provisioned": "true"}
"""Label that the plugin adds to what it makes."""


@dataclass(frozen=True)
class Change:
    """An update under way, as a hook sees it.

    Attributes:
        path: Path of the resource.
        scope: Where it lives.
        old: Inputs before.
        new: Inputs wanted now.
        changed: Names of the inputs that differ.
        live: The API's document before the change.
        state: Outputs before the change, as the engine kept them.
        deadline: Point of `time.monotonic` at which waiting ends.
    """

    path: str
    scope: Scope
    old: Inputs
    new: Inputs
    changed: frozenset[str]
    live: Document
    state: Outputs
    deadline: float

    def touches(self, *names: str) -> bool:
        """Tell whether one of these inputs differs."""
        return not self.changed.isdisjoint(names)

    @property
    def print_of_state(self) -> Document:
        """The fingerprint of the last read, which the plugin sends: whoever changed the resource since is noticed."""
        return {"fingerprint": self.state.get("fingerprint") or self.live.get("fingerprint")}

    def run(self, method: str, path: str, body: Document | None, **query: str) -> None:
        """Send a request and wait for its operation."""
        self.scope.rest.run(method, path, body, self.deadline, **query)


@dataclass(frozen=True)
class Own:
    """How a resource is kept that is no member of a collection of the compute API.

    Attributes:
        create: Makes it and returns its id; arguments: inputs, scope, deadline.
        read: Returns the API's document for an id, None where there is nothing.
        delete: Deletes it; arguments: id, scope, deadline.
    """

    create: Callable[[Inputs, Scope, float], str]
    read: Callable[[str, Scope], Document | None]
    delete: Callable[[str, Scope, float], None]


def _no_problems(_inputs: Inputs) -> list[Problem]:
    return []


def _unchanged(body: Document, _inputs: Inputs, _scope: Scope) -> Document:
    return body


def _as_it_is(live: Document, _inputs: Inputs) -> Document:
    return live


def _no_more(live: Document, _scope: Scope) -> Document:
    return live


def _no_outputs(_body: Document, _scope: Scope) -> Outputs:
    return {}


def _nothing(_path: str, _inputs: Inputs, _body: Document, _scope: Scope, _deadline: float) -> None:
    return None


@dataclass(frozen=True)
class ResourceType:
    """How a Pulumi resource type is kept by Google's API.

    Attributes:
        pulumi_type: Pulumi's type token.
        collection: Path of the collection, with ``{project}``, ``{region}`` and ``{zone}``.
        fields: Its inputs.
        computed: Outputs that are no inputs, so that a preview knows which values are still unknown.
        longest_name: Largest number of characters of its name.
        labelled: It has labels, and `effectiveLabels` and `pulumiLabels` beside them.
        check: Returns what the plugin refuses beyond single inputs.
        shape: Completes the request body made from the inputs.
        read_more: Adds to a document what another request tells, such as an instance's boot disk.
        unshape: Undoes what `shape` did, before a document is read.
        more: Outputs beyond inputs, `selfLink`, labels and time of creation.
        address: Path that a new resource is read by, from the inputs and the operation; None: by name.
        view: Query with which it is read.
        after_create: What the plugin does after the insert: labels, waiting.
        update: Sends a change; None: nothing of it can change.
        after_update: What the plugin waits for after an update, also one that changed nothing.
        own: Its own way of being made, read and deleted, where it is no member of a collection.
    """

    pulumi_type: str
    collection: str
    fields: Fields
    computed: tuple[str, ...] = ()
    longest_name: int = 63
    labelled: bool = False
    check: Callable[[Inputs], list[Problem]] = _no_problems
    shape: Callable[[Document, Inputs, Scope], Document] = _unchanged
    read_more: Callable[[Document, Scope], Document] = _no_more
    unshape: Callable[[Document, Inputs], Document] = _as_it_is
    more: Callable[[Document, Scope], Outputs] = _no_outputs
    address: Callable[[str, Document], str] | None = None
    view: dict[str, str] = field(default_factory=dict)
    after_create: Callable[[str, Inputs, Document, Scope, float], None] = _nothing
    update: Callable[[Change], None] | None = None
    after_update: Callable[[str, Inputs, Document, Scope, float], None] = _nothing
    own: Own | None = None

    @property
    def noun(self) -> str:
        """Name of the type for messages."""
        return self.pulumi_type.rsplit(":", 1)[-1]

    def place(self, scope: Scope) -> str:
        """Return the path of the collection."""
        return self.collection.format(project=scope.project, region=scope.region, zone=scope.zone)


def all_of(*checks: Callable[[Inputs], list[Problem]]) -> Callable[[Inputs], list[Problem]]:
    """Return one check made of several."""
    return lambda inputs: [problem for check in checks for problem in check(inputs)]


def exactly_one(*names: str) -> Callable[[Inputs], list[Problem]]:
    """Return a check that exactly one of some inputs is given."""

    def check(inputs: Inputs) -> list[Problem]:
        given = [name for name in names if inputs.get(name) not in (None, [], {})]
        if len(given) == 1:
            return []
        got = ", ".join(given) if given else "none of them"
        return [Problem(given[0] if given else names[0], f"exactly one of {', '.join(names)} must be given, got {got}")]

    return check


def at_most_one(*names: str) -> Callable[[Inputs], list[Problem]]:
    """Return a check that no two of some inputs are given together."""

    def check(inputs: Inputs) -> list[Problem]:
        given = [name for name in names if inputs.get(name) not in (None, [], {})]
        if len(given) < 2:
            return []
        return [Problem(given[1], f'"{given[1]}": conflicts with {given[0]}')]

    return check


def regional(body: Document, _inputs: Inputs, scope: Scope) -> Document:
    """Add the region to a body in the form that the plugin sends."""
    return body | {"region": f"projects/{scope.project}/global/regions/{scope.region}"}

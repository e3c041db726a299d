"""What happens to a resource of any type of the table: check, diff, create, read, update, delete."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from multinic.lab.pulumi import links
from multinic.lab.pulumi import names as naming
from multinic.lab.pulumi.fields import names
from multinic.lab.pulumi.kinds import Problem, Scope
from multinic.lab.pulumi.resource_type import PROVISIONED, Change, Inputs, Outputs, ResourceType
from multinic.lab.pulumi.rest import ApiError, Document
from multinic.lab.pulumi.values import DEFAULTS, UNKNOWN, has_unknown

PLACES = ("project", "region", "zone")
"""Inputs that come from the provider where a resource does not give them."""


class NotReadyError(Exception):
    """The resource was made, but is not what was waited for: it belongs into the state, and the run has failed.

    Attributes:
        id: Id of the resource.
        outputs: Its outputs.
    """

    def __init__(self, identity: str, outputs: Outputs, reason: str) -> None:
        super().__init__(reason)
        self.id = identity
        self.outputs = outputs


@dataclass(frozen=True)
class Difference:
    """What an update would do.

    Attributes:
        changed: Inputs that differ.
        replaces: Those of them that make a new resource.
        delete_first: The old one has to go first, because the new one has the same name.
    """

    changed: list[str]
    replaces: list[str]
    delete_first: bool


def check(
    kind: ResourceType, logical: str, old: Inputs | None, inputs: Inputs, seed: bytes
) -> tuple[Inputs, list[Problem]]:
    """Return a resource's inputs with the plugin's defaults and name, and what the plugin refuses."""
    problems: list[Problem] = []
    given = dict(inputs)
    chosen = []
    named = any(field.name == "name" for field in kind.fields.fields)
    if named and given.get("name") is None and not given.get("namePrefix"):
        before = old or {}
        if before.get("name") and "name" in before.get(DEFAULTS, []):
            given["name"] = before["name"]
            chosen.append("name")
        else:
            try:
                given["name"] = naming.automatic(logical, seed, kind.longest_name)
                chosen.append("name")
            except ValueError as error:
                problems.append(Problem("name", str(error)))
    checked, added = kind.fields.check(given, "", problems)
    problems += kind.check(checked)
    checked[DEFAULTS] = sorted(chosen + added)
    return checked, problems


def diff(kind: ResourceType, old: Inputs, state: Outputs, new: Inputs, scope: Scope) -> Difference:
    """Return what would change, and whether that makes a new resource."""
    changed = kind.fields.changed(old, new)
    replaces = [field.name for field in changed if field.replaces or (kind.update is None and field.sent)]
    differing = names(changed)
    for place in PLACES:
        # A resource that leaves its place to the provider moves when the provider's place does.
        there, wanted = state.get(place), getattr(scope, place)
        if "{" + place + "}" in kind.collection and there and there not in (wanted, UNKNOWN) and place not in differing:
            differing.append(place)
            replaces.append(place)
    automatic = "name" in new.get(DEFAULTS, []) or bool(new.get("namePrefix"))
    return Difference(differing, replaces, bool(replaces) and not automatic and "name" not in differing)


def preview(kind: ResourceType, inputs: Inputs, scope: Scope, state: Outputs | None = None) -> Outputs:
    """Return the outputs that a preview can know; what only the API will say is unknown."""
    outputs = dict(state or dict.fromkeys(("id", *kind.computed), UNKNOWN))
    for field in kind.fields.fields:
        if field.computed and not state and field.name not in inputs:
            outputs[field.name] = UNKNOWN
    outputs |= _placed(kind, scope) | {key: value for key, value in inputs.items() if key != DEFAULTS}
    if kind.labelled:
        outputs["pulumiLabels"] = outputs["effectiveLabels"] = _effective_labels(inputs)
    return outputs


def create(kind: ResourceType, inputs: Inputs, scope: Scope, timeout: float) -> tuple[str, Outputs]:
    """Make a resource and return its id and outputs.

    Raises:
        ApiError: If the API refuses.
        NotReadyError: If it was made, but what it should become did not come true.
    """
    deadline = time.monotonic() + timeout
    inputs = dict(inputs)
    if inputs.get("namePrefix") and not inputs.get("name"):
        inputs["name"] = naming.prefixed(inputs["namePrefix"])
    if kind.own:
        identity = kind.own.create(inputs, scope, deadline)
        return identity, outputs(kind, inputs, kind.own.read(identity, scope) or {}, scope)
    place = kind.place(scope)
    body = kind.shape(kind.fields.encode(inputs, scope), inputs, scope)
    operation = scope.rest.run("POST", place, body, deadline)
    path = f"{place}/{inputs['name']}"
    read_by = kind.address(place, operation) if kind.address else path
    live = scope.rest.get(read_by, **kind.view)
    try:
        kind.after_create(path, inputs, live, scope, deadline)
    except Exception as error:
        raise NotReadyError(path, outputs(kind, inputs, live, scope), str(error)) from error
    live = kind.read_more(scope.rest.get(read_by, **kind.view), scope)
    return path, outputs(kind, inputs, live, scope)


def read(kind: ResourceType, identity: str, inputs: Inputs, scope: Scope) -> tuple[Inputs, Outputs] | None:
    """Return what is there now as inputs and outputs, or None where nothing is.

    The inputs stay as the program wrote them wherever the API's answer means the same, so only drift shows.
    """
    live = _live(kind, identity, scope)
    if live is None:
        return None
    decoded = _decoded(kind, live, inputs)
    settled = kind.fields.settle(inputs, decoded)
    # What is imported has no inputs yet: its places are those of its id, wherever the provider's own are.
    given = inputs or _placed(kind, scope)
    known = names(kind.fields.fields)
    places = {place: given[place] for place in PLACES if place in given and place in known}
    hidden = {DEFAULTS: inputs[DEFAULTS]} if DEFAULTS in inputs else {}
    return settled | places | hidden, outputs(kind, settled | places, live, scope)


def update(
    kind: ResourceType, identity: str, old: Inputs, state: Outputs, new: Inputs, scope: Scope, timeout: float
) -> Outputs:
    """Change a resource in place and return its outputs.

    Raises:
        ApiError: If the API refuses.
        NotReadyError: If it was changed, but what it should become did not come true.
    """
    deadline = time.monotonic() + timeout
    # Where the inputs say that it is, as the plugin has it: for nearly every type that is where it was.
    path = identity if kind.own else f"{kind.place(scope)}/{new.get('name') or links.name_of(identity)}"
    live = _live(kind, path, scope)
    if live is None:
        raise ApiError(404, "notFound", f"The resource '{path}' was not found")
    changed = frozenset(names(kind.fields.changed(old, new)))
    if changed and kind.update:
        kind.update(Change(path, scope, old, new, changed, live, state, deadline))
    try:
        kind.after_update(path, new, live, scope, deadline)
    except Exception as error:
        raise NotReadyError(
            identity, outputs(kind, new, _live(kind, path, scope) or live, scope), str(error)
        ) from error
    return outputs(kind, new, _live(kind, path, scope) or live, scope)


def delete(kind: ResourceType, identity: str, scope: Scope, timeout: float) -> None:
    """Delete a resource; one that is gone already is fine."""
    deadline = time.monotonic() + timeout
    try:
        if kind.own:
            kind.own.delete(identity, scope, deadline)
        else:
            scope.rest.run("DELETE", links.path_of(identity), None, deadline)
    except ApiError as error:
        if not error.is_missing:
            raise


def outputs(kind: ResourceType, inputs: Inputs, live: Document, scope: Scope) -> Outputs:
    """Return the outputs for inputs and the API's document."""
    known = _decoded(kind, live, inputs)
    settled = kind.fields.settle(inputs, known)
    found: Outputs = known | {key: value for key, value in inputs.items() if key != DEFAULTS} | settled
    found |= _placed(kind, scope)
    for name in ("selfLink", "creationTimestamp", "fingerprint", "labelFingerprint"):
        if name in kind.computed and live.get(name):
            found[name] = links.as_v1(live[name]) if name == "selfLink" else live[name]
    if kind.labelled:
        found["pulumiLabels"] = found["effectiveLabels"] = dict(live.get("labels") or {})
    return found | kind.more(live, scope)


def _live(kind: ResourceType, identity: str, scope: Scope) -> Document | None:
    if kind.own:
        return kind.own.read(identity, scope)
    try:
        return kind.read_more(scope.rest.get(links.path_of(identity), **kind.view), scope)
    except ApiError as error:
        if error.is_missing:
            return None
        raise


def _decoded(kind: ResourceType, live: Document, inputs: Inputs) -> Inputs:
    decoded = kind.fields.decode(kind.unshape(live, inputs))
    if kind.labelled and isinstance(decoded.get("labels"), dict):
        decoded["labels"] = {key: value for key, value in decoded["labels"].items() if key not in PROVISIONED}
    return decoded


def _placed(kind: ResourceType, scope: Scope) -> dict[str, str]:
    """Return the places that are part of a resource's path, as outputs."""
    return {place: getattr(scope, place) for place in PLACES if "{" + place + "}" in kind.collection}


def _effective_labels(inputs: Inputs) -> Any:
    labels = inputs.get("labels") or {}
    return labels if has_unknown(labels) else labels | PROVISIONED

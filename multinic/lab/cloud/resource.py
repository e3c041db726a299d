"""What all kinds of resources have in common: insert, get, list, patch, update, delete, labels, references, rules.

A kind is a subclass with tables (references, defaults, immutable fields, rules) and, where it does more, hooks.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from . import fingerprints, references
from .call import Answer, Call, Handler
from .clock import timestamp
from .errors import ApiError, already_exists, in_use, invalid, required
from .labels import check_labels
from .links import link, split
from .merge import merged
from .references import Reference
from .rules import Rule
from .store import Object

if TYPE_CHECKING:
    from .cloud import Cloud


class Resource:
    """A kind of resource. Class attributes are its tables.

    Attributes:
        collection: Path segment, such as ``networks``.
        noun: How Google's messages call one.
        kind: Its ``kind`` without ``compute#``.
        served: Scope kind (``global``, ``regions``, ``zones``) → name of the resource in the discovery document.
        verbs: Which of the common methods it has.
        references: Fields that name other objects.
        defaults: What is filled in where the request says nothing.
        immutable: Fields that patch and update cannot change.
        rules: What else is refused.
        fingerprinted: Whether the object has a fingerprint.
        fingerprint_needed: Whether patch and update must carry it.
    """

    collection: ClassVar[str] = ""
    noun: ClassVar[str] = ""
    kind: ClassVar[str] = ""
    served: ClassVar[Mapping[str, str]] = {}
    verbs: ClassVar[tuple[str, ...]] = ("insert", "get", "list", "delete")
    references: ClassVar[tuple[Reference, ...]] = ()
    defaults: ClassVar[Object] = {}
    immutable: ClassVar[tuple[str, ...]] = ()
    rules: ClassVar[tuple[Rule, ...]] = ()
    fingerprinted: ClassVar[bool] = False
    fingerprint_needed: ClassVar[bool] = False

    def __init__(self, cloud: Cloud) -> None:
        self.cloud, self.store, self.project = cloud, cloud.store, cloud.project

    # What a kind changes

    def complete(self, key: str, value: Object) -> None:
        """Fills in what the cloud decides; references are full links by now. May refuse."""

    def check(self, key: str, value: Object, old: Object | None) -> None:
        """Refuses what no single-object rule can say. `old` is None for a new object."""

    def changed(self, key: str, value: Object, old: Object | None) -> None:
        """Acts on a written object. `old` is None for a new one."""

    def removed(self, key: str, value: Object) -> None:
        """Acts on an object that is gone."""

    def view(self, key: str, value: Object) -> Answer:
        """The object as it is answered."""
        return {name: content for name, content in value.items() if not name.startswith("_")}

    def handlers(self) -> dict[str, Handler]:
        """More methods: name → function."""
        return {}

    # The common methods

    def methods(self) -> dict[str, Handler]:
        """All methods of this kind, by their name in the discovery document."""
        common: dict[str, Handler] = {
            "insert": self.insert,
            "get": self.get,
            "list": self.list_all,
            "aggregatedList": self.aggregated_list,
            "patch": self.patch,
            "update": self.update,
            "delete": self.delete,
            "setLabels": self.set_labels,
            "testIamPermissions": self.test_permissions,
        }
        own = {name: common[name] for name in self.verbs} | self.handlers()
        first = next(iter(self.served.values()))
        # A kind of several scopes has one aggregated list.
        return {
            f"{resource}.{name}": handler
            for resource in self.served.values()
            for name, handler in own.items()
            if name != "aggregatedList" or resource == first
        }

    def key(self, scope: str, name: str) -> str:
        """The key of an object of this kind."""
        return f"projects/{self.project}/{scope}/{self.collection}/{name}"

    def target(self, call: Call) -> str:
        """The key of the object that a request names; it need not exist."""
        self.cloud.require_place(call.scope)
        name = next((call.params[name] for name in self.parameter_names() if name in call.params), "")
        return self.key(call.scope, str(name))

    def parameter_names(self) -> tuple[str, ...]:
        """Names of the path parameter that names the object."""
        singular = self.kind[0].lower() + self.kind[1:]
        return (singular, "resource", "resourceId")

    def insert(self, call: Call) -> Answer:
        """Makes an object."""
        self.cloud.require_place(call.scope)
        value = copy.deepcopy(call.body)
        if not value.get("name"):
            raise required("name")
        key = self.key(call.scope, value["name"])
        if self.store.get(key) is not None:
            raise already_exists(key)
        self.create(key, value)
        return self.cloud.operations.done("insert", call.scope, key)

    def create(self, key: str, value: Object) -> Object:
        """Completes, checks and writes a new object."""
        scope = split(key).scope
        value.update(
            kind=f"compute#{self.kind}", id=self.store.new_id(), creationTimestamp=timestamp(), selfLink=link(key)
        )
        self.place(scope, value)
        self.prepare(key, value, None)
        try:
            self.changed(key, value, None)
        except ApiError:
            # A full disk in the middle: the client is told that nothing was made, so nothing stays.
            self.destroy(key)
            raise
        return value

    def place(self, scope: str, value: Object) -> None:
        """Writes ``region`` or ``zone`` into an object."""
        kind, _, name = scope.partition("/")
        for field_name in ("region", "zone"):
            value.pop(field_name, None)
        if name:
            value[kind[:-1]] = link(f"projects/{self.project}/{kind}/{name}")

    def prepare(self, key: str, value: Object, old: Object | None) -> None:
        """Defaults, references, rules, fingerprints, disk."""
        for name, content in self.defaults.items():
            if value.get(name) in (None, "", [], {}):
                value[name] = copy.deepcopy(content)
        if value.get("labels"):
            check_labels(value["labels"])
        held = references.link_up(self.cloud, self.references, key, value)
        self.complete(key, value)
        for rule in self.rules:
            rule.apply(value)
        self.frozen_check(value, old)
        self.check(key, value, old)
        self.stamp(value)
        held |= self.more_references(key, value)
        self.store.put(key, value, held)

    def more_references(self, key: str, value: Object) -> set[str]:
        """Keys held beside those of the table; an owned object holds its owner."""
        return {value["_owner"]} if "_owner" in value else set()

    def stamp(self, value: Object) -> None:
        """Renews the fingerprints."""
        if self.fingerprinted:
            skipped = ("fingerprint", "labelFingerprint", "status")
            content = {n: c for n, c in value.items() if n not in skipped and not n.startswith("_")}
            value["fingerprint"] = fingerprints.fingerprint(content)
        if "setLabels" in self.verbs:
            value["labelFingerprint"] = fingerprints.fingerprint(value.get("labels", {}))

    def get(self, call: Call) -> Answer:
        """Reads an object."""
        key = self.target(call)
        return self.view(key, self.store.require(key))

    def list_all(self, call: Call) -> Answer:
        """All objects of a scope; the API layer filters and pages."""
        self.cloud.require_place(call.scope)
        parent = f"projects/{self.project}/{call.scope}/{self.collection}"
        items = [self.view(key, value) for key, value in self.store.children(parent)]
        return self.listing(parent, items)

    def listing(self, parent: str, items: list[Answer]) -> Answer:
        """A list in Google's form."""
        return {"kind": f"compute#{self.kind}List", "id": parent, "items": items, "selfLink": link(parent)}

    def aggregated_list(self, call: Call) -> Answer:
        """All objects of all scopes, by scope; the API layer puts a warning where there are none."""
        scopes: dict[str, Any] = {}
        for scope in self.cloud.places(self.served):
            parent = f"projects/{self.project}/{scope}/{self.collection}"
            scopes[scope] = {self.collection: [self.view(key, value) for key, value in self.store.children(parent)]}
        parent = f"projects/{self.project}/aggregated/{self.collection}"
        return {"kind": f"compute#{self.kind}AggregatedList", "id": parent, "items": scopes, "selfLink": link(parent)}

    def patch(self, call: Call) -> Answer:
        """Changes some fields."""
        key = self.target(call)
        old = self.store.require(key)
        self.check_name(call.body, old)
        self.check_fingerprint(call.body, old)
        self.replace(key, merged(old, call.body), old)
        return self.cloud.operations.done("patch", call.scope, key)

    def update(self, call: Call) -> Answer:
        """Replaces all fields that a client sets."""
        key = self.target(call)
        old = self.store.require(key)
        self.check_name(call.body, old)
        self.check_fingerprint(call.body, old)
        fixed = ("kind", "id", "creationTimestamp", "selfLink", "name", "region", "zone", "labels", "labelFingerprint")
        kept = {name: old[name] for name in old if name in fixed or name.startswith("_")}
        self.replace(key, {**copy.deepcopy(call.body), **kept}, old)
        return self.cloud.operations.done("update", call.scope, key)

    def replace(self, key: str, value: Object, old: Object) -> None:
        """Checks and writes a changed object."""
        before = copy.deepcopy(old)
        self.prepare(key, value, before)
        self.changed(key, value, before)

    def check_fingerprint(self, body: Object, old: Object) -> None:
        """Takes the fingerprint out of a request and refuses a stale one."""
        given = body.pop("fingerprint", None)
        if self.fingerprinted:
            fingerprints.check(given, old["fingerprint"], f"{self.noun.capitalize()}", needed=self.fingerprint_needed)

    def check_name(self, body: Object, old: Object) -> None:
        """Refuses a change that would rename; nulls and the name that is there are no change."""
        given = body.pop("name", None)
        if given and given != old["name"]:
            raise invalid("name", given, f"The name must be the one in the URL, '{old['name']}'.")

    def frozen_check(self, value: Object, old: Object | None) -> None:
        """Refuses a change of a field that never changes."""
        for name in self.immutable:
            if old is not None and value.get(name) != old.get(name):
                raise invalid(name, value.get(name), f"The field cannot be changed once the {self.noun} exists.")

    def delete(self, call: Call) -> Answer:
        """Deletes an object that nobody uses."""
        key = self.target(call)
        value = self.store.require(key)
        self.refuse_if_used(key)
        self.destroy(key)
        return self.cloud.operations.done("delete", call.scope, key, value["id"])

    def owned(self, key: str) -> list[str]:
        """Keys of what lives and dies with an object (default routes with their network)."""
        direct = [user for user in self.store.users(key) if (self.store.get(user) or {}).get("_owner") == key]
        return [one for user in direct for one in (*self.owned(user), user)]

    def refuse_if_used(self, key: str) -> None:
        """Raises ``resourceInUseByAnotherResource`` where someone refers to the object or to what it owns."""
        owned = self.owned(key)
        for one, noun in [(key, self.noun), *((one, self.cloud.noun_of(one)) for one in owned)]:
            for user in self.store.users(one):
                if user not in owned and user != key:
                    raise in_use(noun, one, user)

    def destroy(self, key: str) -> None:
        """Removes an object and what it owns."""
        value = self.store.require(key)
        for one in self.owned(key):
            self.store.remove(one)
        self.store.remove(key)
        self.removed(key, value)

    def set_labels(self, call: Call) -> Answer:
        """Replaces the labels."""
        key = self.target(call)
        old = self.store.require(key)
        fingerprints.check(call.body.get("labelFingerprint"), old["labelFingerprint"], "Labels")
        labels = call.body.get("labels") or {}
        check_labels(labels)
        value = {**old, "labels": labels}
        self.stamp(value)
        self.store.put(key, value)
        return self.cloud.operations.done("setLabels", call.scope, key)

    def test_permissions(self, call: Call) -> Answer:
        """Those of the permissions asked for that the caller has: all, as the lab's token may do everything."""
        self.store.require(self.target(call))
        return {"permissions": list(call.body.get("permissions", []))}

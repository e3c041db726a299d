"""What a program declared, as `testing.run` hands it back."""

import json
from dataclasses import dataclass, field
from typing import Any

from pulumi.runtime import rpc

Inputs = dict[str, Any]


@dataclass(frozen=True)
class Resource:
    """A declared resource.

    Attributes:
        urn: Its URN; the names of parents' types are part of it.
        type: Its type token, such as gcp:compute/route:Route.
        name: Its logical name.
        inputs: Its inputs as the provider gets them, in camelCase, secrets in plain; in a preview, with Pulumi's
            `Unknown` in the place of what is not known yet.
        parent: URN of its parent.
        depends_on: URNs that it waits for.
        delete_before_replace: Whether a replacement begins with deletion.
        retain_on_delete: Whether deletion leaves it in the cloud.
        custom: False for components.
    """

    urn: str
    type: str
    name: str
    inputs: Inputs
    parent: str = ""
    depends_on: tuple[str, ...] = ()
    delete_before_replace: bool = False
    retain_on_delete: bool = False
    custom: bool = True

    def __getitem__(self, key: str) -> Any:
        """Returns an input."""
        return self.inputs[key]

    def is_a(self, kind: str) -> bool:
        """Whether it has this type: a whole token or its end, such as ``compute.Route`` or ``Route``."""
        module, _, last = self.type.rpartition(":")
        return kind in (self.type, last, f"{module.split(':')[-1].split('/')[0]}.{last}")


@dataclass
class Declared:
    """What a program declared.

    Attributes:
        resources: All resources by URN: the order in which the SDK registers them is not the same in every run.
        outputs: What the stack exports, secrets in plain.
        secret_outputs: Names of those that are secrets or contain one.
        component_outputs: URN of a component → its registered outputs.
        messages: What the program logged, with the severity in front.
        calls: Token and arguments of each function that it called, sorted for the same reason.
    """

    resources: list[Resource] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)
    secret_outputs: list[str] = field(default_factory=list)
    component_outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def all(self, kind: str, part: str = "") -> list[Resource]:
        """Returns the resources of a type whose names contain a text."""
        return [one for one in self.resources if one.is_a(kind) and part in one.name]

    def one(self, kind: str, part: str = "") -> Resource:
        """Returns the only such resource.

        Raises:
            LookupError: There is none, or more than one.
        """
        found = self.all(kind, part)
        if len(found) != 1:
            names = ", ".join(f"{one.type} {one.name}" for one in (found or self.resources))
            raise LookupError(f"{len(found)} resources are a {kind} with {part!r} in the name; there are: {names}")
        return found[0]

    def sort(self) -> None:
        """Puts what the SDK did side by side into an order that every run has."""
        self.resources.sort(key=lambda one: one.urn)
        self.calls.sort(key=lambda one: (one[0], json.dumps(one[1], sort_keys=True, default=str)))

    @property
    def urns(self) -> list[str]:
        """All URNs."""
        return [one.urn for one in self.resources]


def plain(value: Any) -> Any:
    """Returns a value as the program gave it: for the engine numbers become floats and secrets are wrapped."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if rpc.is_rpc_secret(value):
        return plain(rpc.unwrap_rpc_secret(value))
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value


def has_secret(value: Any) -> bool:
    """Whether a value on its way to the engine is a secret or contains one."""
    if isinstance(value, dict):
        return rpc.is_rpc_secret(value) or any(has_secret(one) for one in value.values())
    return isinstance(value, list) and any(has_secret(one) for one in value)

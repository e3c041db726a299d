"""What stands in for a provider plugin, whoever drives it: the in-process driver or the engine's gRPC.

`Provider` is the interface, `Gcp` the stand-in for pulumi-gcp. Property maps go in and out as plain dicts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from multinic.lab.pulumi import functions, lifecycle, links
from multinic.lab.pulumi.kinds import Problem, Scope
from multinic.lab.pulumi.lifecycle import Difference
from multinic.lab.pulumi.resource_type import Inputs, Outputs, ResourceType
from multinic.lab.pulumi.rest import Rest
from multinic.lab.pulumi.types import TABLE
from multinic.lab.pulumi.values import UNKNOWN

DEFAULT_TIMEOUT_S = 900.0
"""How long the plugin waits for an operation or a group when a program sets no timeout of its own."""

ENDPOINT_VARIABLE = "MULTINIC_LAB_ENDPOINT"
TOKEN_VARIABLE = "MULTINIC_LAB_TOKEN"  # noqa: S105 the name of a variable
_LAB_PROJECT = "lab"
_PROJECT_VARIABLES = ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT")
_REGION_VARIABLES = ("GOOGLE_REGION", "GCLOUD_REGION", "CLOUDSDK_COMPUTE_REGION")
_ZONE_VARIABLES = ("GOOGLE_ZONE", "GCLOUD_ZONE", "CLOUDSDK_COMPUTE_ZONE")


class NotServedError(Exception):
    """A resource type or function that the lab does not have."""


class Provider(Protocol):
    """One configured provider."""

    def check(
        self, token: str, name: str, old: Inputs | None, inputs: Inputs, seed: bytes
    ) -> tuple[Inputs, list[Problem]]:
        """Return complete inputs and what is refused about them."""

    def diff(self, token: str, old: Inputs, state: Outputs, inputs: Inputs) -> Difference:
        """Return what would change."""

    def preview(self, token: str, inputs: Inputs, state: Outputs | None) -> Outputs:
        """Return the outputs that can be known before anything is done."""

    def create(self, token: str, inputs: Inputs, timeout: float) -> tuple[str, Outputs]:
        """Make a resource."""

    def read(self, token: str, identity: str, inputs: Inputs, state: Outputs) -> tuple[Inputs, Outputs] | None:
        """Return a resource as it is now."""

    def update(self, token: str, identity: str, old: Inputs, state: Outputs, inputs: Inputs, timeout: float) -> Outputs:
        """Change a resource in place."""

    def delete(self, token: str, identity: str, state: Outputs, timeout: float) -> None:
        """Delete a resource."""

    def invoke(self, token: str, args: Inputs) -> Outputs:
        """Call a function."""


@dataclass(frozen=True)
class Gcp:
    """The stand-in for pulumi-gcp.

    Attributes:
        rest: The lab's front door.
        project: Project of resources that name none.
        region: Region of resources that name none.
        zone: Zone of resources that name none.
    """

    rest: Rest
    project: str = _LAB_PROJECT
    region: str = ""
    zone: str = ""
    table: Mapping[str, ResourceType] = field(default_factory=lambda: TABLE)

    @staticmethod
    def configured(config: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Gcp:
        """Return a stand-in for a provider's configuration.

        Args:
            config: Provider configuration: project, region, zone.
            environment: Where the lab's endpoint and token are, and Google's own variables.

        Raises:
            NotServedError: If no lab is named.
        """
        endpoint = environment.get(ENDPOINT_VARIABLE)
        if not endpoint:
            raise NotServedError(
                f'no lab: {ENDPOINT_VARIABLE} is not set; start one and run eval "$(multinic lab env)"'
            )
        rest = Rest(endpoint, environment.get(TOKEN_VARIABLE, ""))

        def setting(name: str, variables: tuple[str, ...]) -> str:
            given = config.get(name)
            if isinstance(given, str) and given != UNKNOWN:
                return given
            return next((environment[variable] for variable in variables if environment.get(variable)), "")

        return Gcp(
            rest,
            setting("project", _PROJECT_VARIABLES) or _LAB_PROJECT,
            setting("region", _REGION_VARIABLES),
            setting("zone", _ZONE_VARIABLES),
        )

    def kind(self, token: str) -> ResourceType:
        """Return the table's entry of a resource type.

        Raises:
            NotServedError: If there is none.
        """
        if token not in self.table:
            raise NotServedError(f"the lab does not serve the resource type {token}")
        return self.table[token]

    def scope(self, inputs: Mapping[str, Any]) -> Scope:
        """Return where a resource with these inputs or outputs lives."""

        def place(name: str, default: str) -> str:
            value = inputs.get(name)
            return links.name_of(value) if isinstance(value, str) and value and value != UNKNOWN else default

        zone = place("zone", self.zone)
        region = place("region", self.region) or zone.rpartition("-")[0]
        return Scope(place("project", self.project), region, zone, self.rest)

    def check(
        self, token: str, name: str, old: Inputs | None, inputs: Inputs, seed: bytes
    ) -> tuple[Inputs, list[Problem]]:
        """Return complete inputs and what the plugin refuses about them."""
        kind = self.kind(token)
        checked, problems = lifecycle.check(kind, name, old, inputs, seed)
        scope = self.scope(checked)
        for place in ("region", "zone"):
            if "{" + place + "}" in kind.collection and not getattr(scope, place):
                reason = f"Cannot determine {place}: set in this resource, or set provider-level {place}"
                problems.append(Problem(place, reason))
        return checked, problems

    def diff(self, token: str, old: Inputs, state: Outputs, inputs: Inputs) -> Difference:
        """Return what would change."""
        return lifecycle.diff(self.kind(token), old, state, inputs, self.scope(inputs))

    def preview(self, token: str, inputs: Inputs, state: Outputs | None) -> Outputs:
        """Return the outputs that can be known before anything is done."""
        return lifecycle.preview(self.kind(token), inputs, self.scope(inputs), state)

    def create(self, token: str, inputs: Inputs, timeout: float) -> tuple[str, Outputs]:
        """Make a resource."""
        return lifecycle.create(self.kind(token), inputs, self.scope(inputs), timeout or DEFAULT_TIMEOUT_S)

    def read(self, token: str, identity: str, inputs: Inputs, state: Outputs) -> tuple[Inputs, Outputs] | None:
        """Return a resource as it is now."""
        return lifecycle.read(self.kind(token), identity, inputs, self.scope(_places_in(identity) | state | inputs))

    def update(self, token: str, identity: str, old: Inputs, state: Outputs, inputs: Inputs, timeout: float) -> Outputs:
        """Change a resource in place."""
        scope = self.scope(state | inputs)
        limit = timeout or DEFAULT_TIMEOUT_S
        return lifecycle.update(self.kind(token), identity, old, state, inputs, scope, limit)

    def delete(self, token: str, identity: str, state: Outputs, timeout: float) -> None:
        """Delete a resource."""
        lifecycle.delete(self.kind(token), identity, self.scope(state), timeout or DEFAULT_TIMEOUT_S)

    def invoke(self, token: str, args: Inputs) -> Outputs:
        """Call a function.

        Raises:
            NotServedError: If the lab does not have it.
        """
        if token not in functions.TABLE:
            raise NotServedError(f"the lab does not serve the function {token}")
        return functions.TABLE[token](args, self.scope(args))


def _places_in(identity: str) -> dict[str, str]:
    """Return project, region and zone of a link, for a resource that is imported and has no state yet."""
    parts = links.path_of(identity).split("/")
    found = dict(zip(parts[::2], parts[1::2], strict=False))
    # `global` has no value of its own, so the pairs after it are shifted; nothing there is a place.
    names = {"projects": "project", "regions": "region", "zones": "zone"}
    return {names[key]: value for key, value in found.items() if key in names}

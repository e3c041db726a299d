"""Static routes."""

from __future__ import annotations

import re

from multinic.lab.pulumi import links
from multinic.lab.pulumi.fields import Field, Fields
from multinic.lab.pulumi.kinds import Integer, Items, Link, Scope, Text
from multinic.lab.pulumi.resource_type import Inputs, ResourceType, exactly_one
from multinic.lab.pulumi.rest import Document
from multinic.lab.pulumi.types.common import DELETION_POLICY, NAME, PROJECT, fixed

_ADDRESS = re.compile(r"^[0-9.]+$")


class _Gateway(Link):
    """A gateway; ``default-internet-gateway`` is short for the only one there is."""

    def encode(self, value: str, scope: Scope) -> str:
        if value == "default-internet-gateway":
            return f"projects/{scope.project}/global/gateways/default-internet-gateway"
        return links.path_of(value)


class _LoadBalancer(Link):
    """A forwarding rule by link or name, or the load balancer's address."""

    def encode(self, value: str, scope: Scope) -> str:
        if _ADDRESS.match(value):
            return value
        if "/" not in value:
            value = f"projects/{scope.project}/regions/{scope.region}/forwardingRules/{value}"
        return links.full(links.path_of(value))


def _shape(body: Document, inputs: Inputs, scope: Scope) -> Document:
    instance = inputs.get("nextHopInstance")
    if instance and "/" not in instance:
        zone = inputs.get("nextHopInstanceZone") or scope.zone
        body["nextHopInstance"] = f"projects/{scope.project}/zones/{zone}/instances/{instance}"
    return body


ROUTE = ResourceType(
    pulumi_type="gcp:compute/route:Route",
    collection="projects/{project}/global/routes",
    fields=Fields(
        (
            NAME,
            PROJECT,
            DELETION_POLICY,
            fixed("description"),
            fixed("destRange", required=True),
            fixed("network", Link("networks"), required=True),
            Field("priority", Integer(), replaces=True, default=1000),
            fixed("tags", Items(Text(), is_set=True)),
            fixed("nextHopGateway", _Gateway()),
            fixed("nextHopIlb", _LoadBalancer()),
            fixed("nextHopInstance", Link()),
            Field("nextHopInstanceZone", sent=False, replaces=True),
            Field("nextHopIp", replaces=True, computed=True),
            fixed("nextHopVpnTunnel", Link()),
        )
    ),
    computed=("selfLink", "creationTimestamp", "nextHopNetwork"),
    check=exactly_one("nextHopGateway", "nextHopIlb", "nextHopInstance", "nextHopIp", "nextHopVpnTunnel"),
    shape=_shape,
    more=lambda live, _scope: {"nextHopNetwork": live.get("nextHopNetwork", "")},
)

TYPES = (ROUTE,)

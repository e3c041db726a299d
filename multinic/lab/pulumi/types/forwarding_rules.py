"""Regional forwarding rules: the address that a load balancer answers to, and what routes point at."""

from __future__ import annotations

from multinic.lab.pulumi import links
from multinic.lab.pulumi.fields import Field, Fields
from multinic.lab.pulumi.kinds import Items, Link, Scope, Text
from multinic.lab.pulumi.resource_type import Change, Inputs, ResourceType, regional
from multinic.lab.pulumi.rest import Document
from multinic.lab.pulumi.types.common import (
    DELETION_POLICY,
    FLAG,
    LABELS,
    NAME,
    PROJECT,
    REGION,
    fixed,
)

_SCHEMES = ("EXTERNAL", "EXTERNAL_MANAGED", "INTERNAL", "INTERNAL_MANAGED")
_PROTOCOLS = ("TCP", "UDP", "ESP", "AH", "SCTP", "ICMP", "L3_DEFAULT")
_MOST_PORTS = 5


def _label_again(path: str, inputs: Inputs, live: Document, scope: Scope, deadline: float) -> None:
    if inputs.get("labels"):
        body = {"labelFingerprint": live.get("labelFingerprint", ""), "labels": inputs["labels"]}
        scope.rest.run("POST", f"{path}/setLabels", body, deadline)


def _update(change: Change) -> None:
    if change.touches("labels"):
        body: Document = {"labels": change.new.get("labels") or {}}
        if change.live.get("labelFingerprint"):
            body["labelFingerprint"] = change.live["labelFingerprint"]
        change.run("POST", f"{change.path}/setLabels", body)
    if change.touches("allowGlobalAccess"):
        wanted = bool(change.new.get("allowGlobalAccess"))
        change.run("PATCH", change.path, {"allowGlobalAccess": wanted})


class _Address(Text):
    """An address, or a link to a reserved one."""

    def same(self, wanted: str, live: str) -> bool:
        # A link to an address is read back as the address itself.
        return wanted == live or "addresses/" in wanted

    def encode(self, value: str, scope: Scope) -> str:
        return links.full(links.path_of(value))


FORWARDING_RULE = ResourceType(
    pulumi_type="gcp:compute/forwardingRule:ForwardingRule",
    collection="projects/{project}/regions/{region}/forwardingRules",
    fields=Fields(
        (
            NAME,
            PROJECT,
            REGION,
            DELETION_POLICY,
            LABELS,
            fixed("description"),
            Field("loadBalancingScheme", Text(choices=_SCHEMES), replaces=True, default="EXTERNAL"),
            Field("backendService", Link("backendServices", "region", "url"), replaces=True),
            Field("ipAddress", _Address(), "IPAddress", replaces=True, computed=True),
            Field("ipProtocol", Text(choices=_PROTOCOLS), "IPProtocol", replaces=True, computed=True),
            Field("ipVersion", Text(choices=("IPV4", "IPV6")), replaces=True, computed=True),
            Field("allPorts", FLAG, replaces=True),
            fixed("ports", Items(Text(), is_set=True, most=_MOST_PORTS)),
            Field("portRange", replaces=True, computed=True),
            Field("allowGlobalAccess", FLAG),
            Field("network", Link("networks"), replaces=True, computed=True),
            Field("subnetwork", Link("subnetworks", "region"), replaces=True, computed=True),
            Field("networkTier", replaces=True, computed=True),
            Field("isMirroringCollector", FLAG, replaces=True),
            fixed("serviceLabel"),
        )
    ),
    computed=(
        "selfLink",
        "creationTimestamp",
        "labelFingerprint",
        "forwardingRuleId",
        "serviceName",
        "baseForwardingRule",
    ),
    labelled=True,
    shape=regional,
    more=lambda live, _scope: {"forwardingRuleId": int(live.get("id", 0)), "serviceName": live.get("serviceName", "")},
    after_create=_label_again,
    update=_update,
)

TYPES = (FORWARDING_RULE,)

"""Reserved regional addresses."""

from __future__ import annotations

from multinic.lab.pulumi.fields import Field, Fields
from multinic.lab.pulumi.kinds import Integer, Kind, Link, Scope, Text
from multinic.lab.pulumi.resource_type import Change, Inputs, ResourceType, regional
from multinic.lab.pulumi.rest import Document
from multinic.lab.pulumi.types.common import (
    DELETION_POLICY,
    LABELS,
    NAME,
    PROJECT,
    REGION,
    fixed,
    with_provisioned,
)


def _chosen(name: str, kind: Kind | None = None) -> Field:
    """Return an input that the API fills in, and that cannot change."""
    return Field(name, kind or Text(), replaces=True, computed=True)


def _shape(body: Document, inputs: Inputs, scope: Scope) -> Document:
    return regional(body, inputs, scope) | {"labels": with_provisioned(inputs)}


def _label_again(path: str, inputs: Inputs, live: Document, scope: Scope, deadline: float) -> None:
    body = {"labelFingerprint": live.get("labelFingerprint", ""), "labels": with_provisioned(inputs)}
    scope.rest.run("POST", f"{path}/setLabels", body, deadline)


def _update(change: Change) -> None:
    if change.touches("labels"):
        body: Document = {"labels": with_provisioned(change.new)}
        if change.live.get("labelFingerprint"):
            body["labelFingerprint"] = change.live["labelFingerprint"]
        change.run("POST", f"{change.path}/setLabels", body)


ADDRESS = ResourceType(
    pulumi_type="gcp:compute/address:Address",
    collection="projects/{project}/regions/{region}/addresses",
    fields=Fields(
        (
            NAME,
            PROJECT,
            REGION,
            DELETION_POLICY,
            LABELS,
            fixed("description"),
            _chosen("address"),
            Field("addressType", Text(choices=("EXTERNAL", "INTERNAL")), replaces=True, default="EXTERNAL"),
            _chosen("purpose"),
            _chosen("network", Link("networks")),
            _chosen("subnetwork", Link("subnetworks", "region")),
            _chosen("networkTier", Text(choices=("PREMIUM", "STANDARD"))),
            _chosen("ipVersion", Text(choices=("IPV4", "IPV6"))),
            _chosen("prefixLength", Integer()),
        )
    ),
    computed=("selfLink", "creationTimestamp", "labelFingerprint", "addressId", "users"),
    labelled=True,
    shape=_shape,
    more=lambda live, _scope: {"addressId": int(live.get("id", 0)), "users": live.get("users", [])},
    after_create=_label_again,
    update=_update,
)

TYPES = (ADDRESS,)

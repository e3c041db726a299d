"""Resource policies: how instances are placed."""

from __future__ import annotations

from multinic.lab.pulumi.fields import Field, Fields, block
from multinic.lab.pulumi.kinds import Integer, Scope, Text
from multinic.lab.pulumi.names import COMPUTE_NAME
from multinic.lab.pulumi.resource_type import Change, Inputs, ResourceType, regional
from multinic.lab.pulumi.rest import Document
from multinic.lab.pulumi.types.common import DELETION_POLICY, DESCRIPTION, PROJECT, REGION, optional


def _shape(body: Document, inputs: Inputs, scope: Scope) -> Document:
    return {"diskConsistencyGroupPolicy": None} | regional(body, inputs, scope)


def _update(change: Change) -> None:
    body = _shape(RESOURCE_POLICY.fields.encode(change.new, change.scope), change.new, change.scope)
    change.run("PATCH", change.path, body)


RESOURCE_POLICY = ResourceType(
    pulumi_type="gcp:compute/resourcePolicy:ResourcePolicy",
    collection="projects/{project}/regions/{region}/resourcePolicies",
    fields=Fields(
        (
            # Unlike other names, a change of this one replaces nothing: the plugin looks for the new name, in vain.
            Field("name", Text(pattern=COMPUTE_NAME)),
            PROJECT,
            REGION,
            DELETION_POLICY,
            DESCRIPTION,
            Field(
                "groupPlacementPolicy",
                block(
                    Field("availabilityDomainCount", Integer()),
                    Field("vmCount", Integer()),
                    Field("collocation", Text(choices=("COLLOCATED",))),
                    optional("maxDistance", Integer()),
                ),
            ),
        )
    ),
    computed=("selfLink",),
    shape=_shape,
    update=_update,
)

TYPES = (RESOURCE_POLICY,)

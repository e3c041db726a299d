"""Shared VPC: host projects and the service projects that are attached to them."""

from __future__ import annotations

from multinic.lab.pulumi.fields import Fields
from multinic.lab.pulumi.kinds import Scope
from multinic.lab.pulumi.resource_type import Inputs, Own, ResourceType
from multinic.lab.pulumi.rest import Document
from multinic.lab.pulumi.types.common import DELETION_POLICY, fixed


def _enable_host(inputs: Inputs, scope: Scope, deadline: float) -> str:
    project = str(inputs["project"])
    scope.rest.run("POST", f"projects/{project}/enableXpnHost", None, deadline)
    return project


def _read_host(project: str, scope: Scope) -> Document | None:
    found = scope.rest.get(f"projects/{project}")
    return {"project": project} if found.get("xpnProjectStatus") == "HOST" else None


def _disable_host(project: str, scope: Scope, deadline: float) -> None:
    scope.rest.run("POST", f"projects/{project}/disableXpnHost", None, deadline)


HOST = ResourceType(
    pulumi_type="gcp:compute/sharedVPCHostProject:SharedVPCHostProject",
    collection="projects",
    fields=Fields((fixed("project", required=True), DELETION_POLICY)),
    own=Own(_enable_host, _read_host, _disable_host),
)


def _resource(project: str) -> Document:
    return {"xpnResource": {"id": project, "type": "PROJECT"}}


def _attach(inputs: Inputs, scope: Scope, deadline: float) -> str:
    host, project = str(inputs["hostProject"]), str(inputs["serviceProject"])
    scope.rest.run("POST", f"projects/{host}/enableXpnResource", _resource(project), deadline)
    return f"{host}/{project}"


def _read_attached(identity: str, scope: Scope) -> Document | None:
    host, _, project = identity.partition("/")
    found = scope.rest.get(f"projects/{project}/getXpnHost")
    return {"hostProject": host, "serviceProject": project} if found.get("name") == host else None


def _detach(identity: str, scope: Scope, deadline: float) -> None:
    host, _, project = identity.partition("/")
    scope.rest.run("POST", f"projects/{host}/disableXpnResource", _resource(project), deadline)


SERVICE = ResourceType(
    pulumi_type="gcp:compute/sharedVPCServiceProject:SharedVPCServiceProject",
    collection="projects",
    fields=Fields((fixed("hostProject", required=True), fixed("serviceProject", required=True), DELETION_POLICY)),
    own=Own(_attach, _read_attached, _detach),
)

TYPES = (HOST, SERVICE)

"""A project's IAM members and enabled services."""

from __future__ import annotations

import time
from collections.abc import Callable

from multinic.lab.pulumi import links
from multinic.lab.pulumi.fields import Field, Fields, block
from multinic.lab.pulumi.kinds import Problem, Scope, Text
from multinic.lab.pulumi.resource_type import Inputs, Own, ResourceType
from multinic.lab.pulumi.rest import ApiError, Document
from multinic.lab.pulumi.types.common import DELETION_POLICY, FLAG, PROJECT, fixed
from multinic.lab.pulumi.values import UNKNOWN

_POLICY_VERSION = 3
_SHORTEST_PAUSE_S = 0.05


def _check_member(inputs: Inputs) -> list[Problem]:
    member = inputs.get("member")
    if (
        not isinstance(member, str)
        or member == UNKNOWN
        or ":" in member
        or member in ("allUsers", "allAuthenticatedUsers")
    ):
        return []
    reason = f'invalid value for member: "{member}" has no type, such as "user:" or "serviceAccount:"'
    return [Problem("member", reason)]


def _policy(project: str, scope: Scope) -> Document:
    options: Document = {"options": {"requestedPolicyVersion": _POLICY_VERSION}}
    return scope.rest.request("POST", f"projects/{project}:getIamPolicy", options, service="crm")


def _change_policy(
    project: str, scope: Scope, deadline: float, change: Callable[[list[Document]], list[Document]]
) -> None:
    """Read the policy, change its bindings and write it back; again while somebody else was faster."""
    while True:
        policy = _policy(project, scope)
        bindings = change([dict(binding) for binding in policy.get("bindings", [])])
        kept = {"bindings": bindings} if bindings else {}
        body: Document = {
            "policy": kept | {"etag": policy.get("etag"), "version": _POLICY_VERSION},
            "updateMask": "bindings,etag,auditConfigs",
        }
        try:
            scope.rest.request("POST", f"projects/{project}:setIamPolicy", body, service="crm")
        except ApiError as error:
            if error.status != 409 or time.monotonic() > deadline:
                raise
            time.sleep(_SHORTEST_PAUSE_S)
        else:
            return


def _with_member(bindings: list[Document], role: str, member: str, condition: Document | None) -> list[Document]:
    for binding in bindings:
        if binding["role"] == role and binding.get("condition") == condition:
            binding["members"] = sorted({*binding.get("members", []), member})
            return bindings
    new: Document = {"members": [member], "role": role}
    return [*bindings, new | ({"condition": condition} if condition else {})]


def _without_member(bindings: list[Document], role: str, member: str) -> list[Document]:
    for binding in bindings:
        if binding["role"] == role:
            binding["members"] = [other for other in binding.get("members", []) if other != member]
    return [binding for binding in bindings if binding.get("members")]


def _create_member(inputs: Inputs, scope: Scope, deadline: float) -> str:
    role, member = inputs["role"], inputs["member"]
    condition = inputs.get("condition")
    _change_policy(inputs["project"], scope, deadline, lambda found: _with_member(found, role, member, condition))
    return f"{inputs['project']}/{role}/{member}"


def _split(identity: str) -> tuple[str, str, str]:
    """Return project, role and member of an id such as ``p/roles/logging.logWriter/serviceAccount:…``."""
    project, _, rest = identity.partition("/")
    role, _, member = rest.rpartition("/")
    return project, role, member


def _read_member(identity: str, scope: Scope) -> Document | None:
    project, role, member = _split(identity)
    policy = _policy(project, scope)
    for binding in policy.get("bindings", []):
        if binding["role"] == role and member in binding.get("members", []):
            found: Document = {"project": project, "role": role, "member": member, "etag": policy.get("etag", "")}
            return found | ({"condition": binding["condition"]} if "condition" in binding else {})
    return None


def _delete_member(identity: str, scope: Scope, deadline: float) -> None:
    project, role, member = _split(identity)
    _change_policy(project, scope, deadline, lambda found: _without_member(found, role, member))


IAM_MEMBER = ResourceType(
    pulumi_type="gcp:projects/iAMMember:IAMMember",
    collection="projects",
    fields=Fields(
        (
            fixed("project", required=True),
            fixed("role", required=True),
            fixed("member", required=True),
            fixed(
                "condition",
                block(fixed("title", required=True), fixed("expression", required=True), fixed("description")),
            ),
        )
    ),
    computed=("etag",),
    check=_check_member,
    more=lambda live, _scope: {"etag": live.get("etag", "")},
    own=Own(_create_member, _read_member, _delete_member),
)


def _enabled(project: str, scope: Scope) -> set[str]:
    """Return the names of the services that are enabled, by the one list that the plugin reads for all of them."""
    wanted = {"filter": "state:ENABLED", "fields": "services/name,nextPageToken", "pageSize": "200"}
    found = scope.rest.pages(f"projects/{project}/services", key="services", service="serviceusage", **wanted)
    return {links.name_of(service["name"]) for service in found}


def _enable(inputs: Inputs, scope: Scope, _deadline: float) -> str:
    service = str(inputs["service"])
    if service not in _enabled(scope.project, scope):
        place = f"projects/{scope.project}/services/{service}"
        scope.rest.request("POST", f"{place}:enable", {}, service="serviceusage")
    return f"{scope.project}/{service}"


def _read_service(identity: str, scope: Scope) -> Document | None:
    project, _, service = identity.partition("/")
    return {"service": service} if service in _enabled(project, scope) else None


def _keep_enabled(_identity: str, _scope: Scope, _deadline: float) -> None:
    # Other programs of the project may need the service: like the plugin with `disableOnDestroy` unset, leave it on.
    return None


SERVICE = ResourceType(
    pulumi_type="gcp:projects/service:Service",
    collection="projects/{project}/services",
    fields=Fields(
        (
            PROJECT,
            DELETION_POLICY,
            fixed("service", Text(), required=True),
            Field("disableOnDestroy", FLAG, sent=False),
            Field("disableDependentServices", FLAG, sent=False),
            Field("checkIfServiceHasUsageOnDestroy", FLAG, sent=False),
        )
    ),
    own=Own(_enable, _read_service, _keep_enabled),
)


TYPES = (IAM_MEMBER, SERVICE)

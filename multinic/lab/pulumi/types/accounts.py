"""Service accounts."""

from __future__ import annotations

from multinic.lab.pulumi.fields import Field, Fields
from multinic.lab.pulumi.kinds import Problem, Scope, Text
from multinic.lab.pulumi.resource_type import Change, Inputs, Outputs, Own, ResourceType
from multinic.lab.pulumi.rest import ApiError, Document
from multinic.lab.pulumi.types.common import DELETION_POLICY, FLAG, PROJECT

_ID = r"^[a-z](?:[-a-z0-9]{4,28}[a-z0-9])$"


def _check(inputs: Inputs) -> list[Problem]:
    # The program has to choose it: nothing makes up an account's id.
    return [] if inputs.get("accountId") else [Problem("accountId", "Missing required argument 'accountId'")]


def _create(inputs: Inputs, scope: Scope, _deadline: float) -> str:
    shown = {key: inputs[key] for key in ("displayName", "description") if inputs.get(key)}
    body: Document = {"accountId": inputs["accountId"], "serviceAccount": shown}
    account = scope.rest.request("POST", f"projects/{scope.project}/serviceAccounts", body, service="iam")
    return str(account["name"])


def _read(identity: str, scope: Scope) -> Document | None:
    try:
        return scope.rest.get(identity, service="iam")
    except ApiError as error:
        if error.is_missing:
            return None
        raise


def _delete(identity: str, scope: Scope, _deadline: float) -> None:
    scope.rest.request("DELETE", identity, service="iam")


def _update(change: Change) -> None:
    shown = {key: change.new.get(key, "") for key in ("displayName", "description")}
    mask = ",".join(key for key in shown if change.touches(key))
    if mask:
        body: Document = {"serviceAccount": shown, "updateMask": mask}
        change.scope.rest.request("PATCH", change.path, body, service="iam")


def _extra(live: Document, _scope: Scope) -> Outputs:
    email = live.get("email", "")
    return {
        "email": email,
        "member": f"serviceAccount:{email}",
        "name": live.get("name", ""),
        "uniqueId": live.get("uniqueId", ""),
        "accountId": email.split("@")[0],
    }


ACCOUNT = ResourceType(
    pulumi_type="gcp:serviceaccount/account:Account",
    collection="projects/{project}/serviceAccounts",
    fields=Fields(
        (
            Field("accountId", Text(pattern=_ID), sent=False, replaces=True),
            PROJECT,
            DELETION_POLICY,
            Field("displayName"),
            Field("description"),
            Field("disabled", FLAG),
            Field("createIgnoreAlreadyExists", FLAG, sent=False),
        )
    ),
    computed=("email", "member", "name", "uniqueId"),
    check=_check,
    more=_extra,
    update=_update,
    own=Own(_create, _read, _delete),
)

TYPES = (ACCOUNT,)

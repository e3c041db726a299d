"""What a project must have before any fleet: APIs and permissions."""

from __future__ import annotations

from dataclasses import dataclass

from multinic.operate.api import Api
from multinic.operate.door import Door
from multinic.operate.errors import OperateError

GOOD, WARNING, BAD, UNKNOWN = "ok", "warning", "missing", "unknown"

APIS = ("compute", "iam", "cloudresourcemanager", "logging")
PERMISSIONS = {
    "compute.instanceGroupManagers.list": "status and everything else",
    "compute.instances.list": "status and everything else",
    "compute.routes.list": "status and everything else",
    "compute.forwardingRules.list": "status and everything else",
    "compute.autoscalers.list": "status and everything else",
    "compute.regionBackendServices.list": "status and everything else",
    "compute.regionBackendServices.get": "health: status and everything else",
    "compute.instances.get": "drain",
    "compute.instances.setMetadata": "drain, undrain",
    "iam.serviceAccounts.actAs": "drain, undrain (metadata of a VM that has a service account)",
    "compute.instanceGroupManagers.update": "heal, rolling-update",
    "compute.routes.create": "withdraw, restore, upgrade",
    "compute.routes.delete": "withdraw, restore, upgrade, routes",
    "compute.networks.updatePolicy": "withdraw, restore, upgrade, routes",
    "compute.instanceTemplates.list": "templates",
    "compute.instanceTemplates.delete": "templates",
    "compute.networks.list": "trace, doctor",
    "compute.subnetworks.list": "trace, doctor",
    "compute.firewalls.list": "trace, doctor",
    "compute.networks.getEffectiveFirewalls": "trace, doctor (firewall policies)",
    "logging.logEntries.list": "logs",
}
"""Permission → commands that need it. https://cloud.google.com/compute/docs/reference/rest/v1, of each method."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        what: The thing.
        state: ``ok``, ``warning`` (works, but), ``missing`` (does not work) or ``unknown`` (could not be looked at).
        detail: What was seen.
        cure: What to do about it.
    """

    what: str
    state: str
    detail: str = ""
    cure: str = ""


def project(api: Api) -> list[Finding]:
    """APIs and permissions of the project, whether it has a fleet or not."""
    door, name = api.door, api.project
    found = [api_state(door, name, one) for one in APIS]
    found.extend(permissions(door, name))
    return found


def api_state(door: Door, name: str, api: str) -> Finding:
    """Whether an API is enabled."""
    what = f"API {api}.googleapis.com"
    try:
        answer = door.request("serviceusage", "GET", f"v1/projects/{name}/services/{api}.googleapis.com")
    except OperateError as error:
        cure = f"gcloud services enable serviceusage.googleapis.com --project {name}"
        missing = cure if "not enabled" in str(error) else "grant roles/serviceusage.serviceUsageViewer"
        return Finding(what, UNKNOWN, str(error), missing)
    if answer.get("state") == "ENABLED":
        return Finding(what, GOOD)
    return Finding(what, BAD, "disabled", f"gcloud services enable {api}.googleapis.com --project {name}")


def permissions(door: Door, name: str) -> list[Finding]:
    """Which permissions of the operator commands the caller does not have."""
    try:
        body = {"permissions": list(PERMISSIONS)}
        answer = door.request("crm", "POST", f"v1/projects/{name}:testIamPermissions", body)
    except OperateError as error:
        cure = f"gcloud services enable cloudresourcemanager.googleapis.com --project {name}, or see that it exists"
        return [Finding("permissions", UNKNOWN, str(error), cure)]
    missing = [one for one in PERMISSIONS if one not in answer.get("permissions", [])]
    if not missing:
        return [Finding("permissions", GOOD, f"all {len(PERMISSIONS)} that the commands use")]
    cure = "grant a role that has it, such as roles/compute.admin"
    return [Finding(f"permission {one}", BAD, f"needed by {PERMISSIONS[one]}", cure) for one in missing]

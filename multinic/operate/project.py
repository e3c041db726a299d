"""What a project must have before any fleet: APIs, permissions, and quotas with room to grow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from multinic.operate import links
from multinic.operate.api import Api
from multinic.operate.door import Door
from multinic.operate.errors import OperateError
from multinic.operate.fleet import Fleet

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
    "logging.logEntries.list": "logs",
}
"""Permission → commands that need it. https://cloud.google.com/compute/docs/reference/rest/v1, of each method."""

NEARLY_FULL = 0.9
_FEW_QUOTAS = ("ROUTES", "FIREWALLS", "FORWARDING_RULES", "INSTANCE_TEMPLATES", "BACKEND_SERVICES", "HEALTH_CHECKS")


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
    """APIs, permissions and quotas of the project, whether it has a fleet or not."""
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
        return Finding(what, UNKNOWN, str(error), "grant serviceusage.services.get")
    if answer.get("state") == "ENABLED":
        return Finding(what, GOOD)
    return Finding(what, BAD, "disabled", f"gcloud services enable {api}.googleapis.com --project {name}")


def permissions(door: Door, name: str) -> list[Finding]:
    """Which permissions of the operator commands the caller does not have."""
    try:
        body = {"permissions": list(PERMISSIONS)}
        answer = door.request("crm", "POST", f"v1/projects/{name}:testIamPermissions", body)
    except OperateError as error:
        return [Finding("permissions", UNKNOWN, str(error), "enable cloudresourcemanager.googleapis.com")]
    missing = [one for one in PERMISSIONS if one not in answer.get("permissions", [])]
    if not missing:
        return [Finding("permissions", GOOD, f"all {len(PERMISSIONS)} that the commands use")]
    cure = "grant a role that has it, such as roles/compute.admin"
    return [Finding(f"permission {one}", BAD, f"needed by {PERMISSIONS[one]}", cure) for one in missing]


def quotas(api: Api, region: str) -> list[Finding]:
    """Quotas of project and region that are nearly used up."""
    jobs: list[Any] = [partial(api.get, "Regions", region=region), partial(api.get, "Projects")]
    listed = [(one.metric, one.usage, one.limit) for answer in api.together(*jobs) for one in answer.quotas]
    if not listed:
        return [Finding("quotas", UNKNOWN, f"{api.door.title} tells none")]
    full = [
        Finding(
            f"quota {metric}", WARNING, f"{usage:.0f} of {limit:.0f} used", "ask for more in the console, IAM → Quotas"
        )
        for metric, usage, limit in listed
        if limit > 0
        and usage >= NEARLY_FULL * limit
        and (metric in _FEW_QUOTAS or "CPUS" in metric or "INSTANCES" in metric)
    ]
    return full or [Finding("quotas", GOOD, f"none of {len(listed)} nearly used up")]


def growth(api: Api, fleet: Fleet, template: Any) -> list[Finding]:
    """Whether the region's CPU quota lets the autoscalers grow to their most."""
    more = sum(max(0, group.autoscaler.most - group.size) for group in fleet.groups if group.autoscaler)
    if not more or template is None:
        return []
    name = links.name(template.properties.machine_type)
    machine = api.get("MachineTypes", zone=fleet.groups[0].zone, machine_type=name)
    wanted = more * machine.guest_cpus
    series = name.partition("-")[0].upper()
    found = {one.metric: (one.usage, one.limit) for one in api.get("Regions", region=fleet.region).quotas}
    # N1 and E2 count as CPUS, every other series has a quota of its own.
    metric = f"{series}_CPUS" if f"{series}_CPUS" in found else "CPUS"
    if metric not in found:
        return [
            Finding("room to grow", UNKNOWN, f"{more} more {name} need {wanted} vCPUs; {api.door.title} tells no quota")
        ]
    usage, limit = found[metric]
    if usage + wanted > limit:
        detail = f"{more} more {name} need {wanted} vCPUs, {limit - usage:.0f} of quota {metric} are left"
        return [Finding("room to grow", WARNING, detail, f"ask for {metric} ≥ {usage + wanted:.0f} in {fleet.region}")]
    return [Finding("room to grow", GOOD, f"{wanted} vCPUs of {limit - usage:.0f} left in {metric}")]

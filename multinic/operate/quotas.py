"""Quotas that are nearly used up, and whether they let a fleet grow to its most."""

from __future__ import annotations

from functools import partial
from typing import Any

from multinic.operate import links
from multinic.operate.api import Api
from multinic.operate.fleet import Fleet
from multinic.operate.project import BAD, GOOD, UNKNOWN, WARNING, Finding

NEARLY_FULL = 0.9
_FEW_QUOTAS = (
    "ROUTES",
    "FIREWALLS",
    "FORWARDING_RULES",
    "INSTANCE_TEMPLATES",
    "BACKEND_SERVICES",
    "HEALTH_CHECKS",
    "SSD_TOTAL_GB",
)


def used_up(api: Api, region: str) -> list[Finding]:
    """Quotas of project and region that are nearly used up."""
    jobs: list[Any] = [partial(api.get, "Regions", region=region), partial(api.get, "Projects")]
    listed = [(one.metric, one.usage, one.limit) for answer in api.together(*jobs) for one in answer.quotas]
    if not listed:
        return [Finding("quotas", UNKNOWN, f"{api.door.title} tells none")]
    full = [
        Finding(
            f"quota {metric}",
            BAD if usage >= limit else WARNING,
            f"{usage:.0f} of {limit:.0f} used",
            "ask for more in the console, IAM → Quotas",
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

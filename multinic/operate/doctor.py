"""What a fleet needs around it, what of it is missing, and the cure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Network
from typing import Any

from multinic.operate import firewall, links, records, routes, templates, topology
from multinic.operate.api import Api
from multinic.operate.door import Door
from multinic.operate.errors import OperateError
from multinic.operate.firewall import Party, Service
from multinic.operate.fleet import Fleet, Router
from multinic.operate.topology import Topology

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

PROBE_RANGES = ("35.191.0.0/16", "130.211.0.0/22")
"""https://docs.cloud.google.com/load-balancing/docs/health-check-concepts"""

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


def fleet(api: Api, found: Fleet) -> list[Finding]:
    """Everything about a fleet and what lies around it."""
    around, _ = topology.read(api, found)
    checks = {check: _check(api, check) for check in sorted({c for c in _check_links(found) if c})}
    template = _template(api, found)
    return [
        *mtus(found, around),
        *probes(found, around, checks),
        *routed(found, around),
        *image(api, template),
        *health(found),
        *sizes(found),
        *errors(api, found),
        *route_findings(found),
        *old_templates(api, found),
        *quotas(api, found.region),
        *growth(api, found, template),
    ]


def _check_links(found: Fleet) -> list[str]:
    return [*(hop.check for hop in found.hops), *(group.check for group in found.groups)]


def _check(api: Api, link: str) -> Any:
    name, where = links.name(link), {"project": links.project(link)}
    if links.place(link):
        return api.get("RegionHealthChecks", **where, region=links.place(link), health_check=name)
    return api.get("HealthChecks", **where, health_check=name)


def _template(api: Api, found: Fleet) -> Any:
    name = found.groups[0].template if found.groups else ""
    return api.get("InstanceTemplates", instance_template=name) if name else None


def mtus(found: Fleet, around: Topology) -> list[Finding]:
    """Whether the networks have one MTU."""
    sizes = {network.name: network.mtu for hop in found.hops if (network := around.network(hop.network_link))}
    told = ", ".join(f"{name} {mtu}" for name, mtu in sizes.items())
    if len(set(sizes.values())) < 2:
        return [Finding("MTU of the networks", GOOD, told)]
    return [Finding("MTU of the networks", WARNING, told, "give all the same one, or set machine.clamp_mss for TCP")]


def probes(found: Fleet, around: Topology, checks: dict[str, Any]) -> list[Finding]:
    """Whether the firewall lets the health checks' probes reach the routers."""
    if not found.routers:
        return [Finding("firewall for probes", UNKNOWN, "the fleet has no VM to judge it by")]
    router, findings = found.routers[0], []
    # Traffic probes arrive at the load balancer's address in each network, heal probes at nic0.
    wanted = [(hop.network_link, hop.check, "traffic") for hop in found.hops]
    first = router.nics[0].network if router.nics else ""
    wanted += [(first, check, "heal") for check in sorted({group.check for group in found.groups if group.check})]
    for network, check, role in wanted:
        port = checks[check].http_health_check.port or 80 if check in checks else 80
        denied = []
        for source in PROBE_RANGES:
            decision = firewall.decide(
                around.rules,
                network,
                _party(router, network),
                Party(IPv4Network(source)),
                Service("tcp", port),
                ingress=True,
            )
            if not decision.allowed:
                denied.append(f"{source} ({decision.title})")
        what = f"firewall of {links.name(network)} for {role} probes, tcp:{port}"
        cure = f"allow it from {', '.join(PROBE_RANGES)} to {router.account or 'the routers'}, as `pulumi up` does"
        findings.append(Finding(what, BAD, ", ".join(denied), cure) if denied else Finding(what, GOOD))
    return findings


def routed(found: Fleet, around: Topology) -> list[Finding]:
    """Whether the firewall lets routed packets of all protocols into the routers, in both directions."""
    if not found.routers:
        return []
    router, findings = found.routers[0], []
    ranges = sorted({route.destination for route in found.own_routes}, key=lambda text: IPv4Network(text))
    for hop in found.hops:
        mine = _party(router, hop.network_link)
        denied = [
            source
            for source in ranges
            if not firewall.decide(
                around.rules, hop.network_link, mine, Party(IPv4Network(source)), Service("all"), ingress=True
            ).allowed
        ]
        what = f"firewall of {hop.network} for routed packets"
        cure = "allow all protocols from these ranges to the routers; `pulumi up` makes the rule"
        findings.append(
            Finding(what, BAD, f"not let in: {', '.join(denied)}", cure)
            if denied
            else Finding(what, GOOD, ", ".join(ranges))
        )
    return findings


def _party(router: Router, network: str) -> Party:
    address = next((nic.address for nic in router.nics if nic.network == network), "0.0.0.0")
    return Party.at(address, router.tags, router.account)


def image(api: Api, template: Any) -> list[Finding]:
    """Whether the image of the template is there: scale-out and healing need it."""
    if template is None:
        return []
    disks = list(template.properties.disks)
    link = disks[0].initialize_params.source_image if disks else ""
    if not link or "/family/" in link:
        return [Finding("image", WARNING, f"by family: {links.name(link)}", "pin an exact image name")]
    try:
        made = api.get("Images", project=links.project(link) or api.project, image=links.name(link))
    except OperateError as error:
        return [
            Finding(f"image {links.name(link)}", BAD, str(error), "name one that exists in machine.image; `pulumi up`")
        ]
    state = made.deprecated.state or ""
    if state in ("OBSOLETE", "DELETED"):
        return [
            Finding(f"image {made.name}", BAD, state.lower(), "no VM can be made of it: name another in machine.image")
        ]
    if state:
        return [Finding(f"image {made.name}", WARNING, state.lower(), "plan an upgrade to a newer one")]
    return [Finding(f"image {made.name}", GOOD)]


def health(found: Fleet) -> list[Finding]:
    """Whether each network has routers that serve."""
    findings = []
    for network in found.networks:
        serving, sick = found.healthy(network), [r for r in found.routers if not r.serves(network)]
        told = f"{len(serving)} of {len(found.routers)} routers"
        if not serving:
            findings.append(Finding(f"health in {network}", BAD, told, "`multinic logs --severity WARNING`, then heal"))
        elif sick:
            names = ", ".join(f"{one.name} ({'drained' if one.drained else one.status.lower()})" for one in sick)
            findings.append(Finding(f"health in {network}", WARNING, f"{told}; not: {names}", "undrain or heal"))
        else:
            findings.append(Finding(f"health in {network}", GOOD, told))
    wrong = [router.name for router in found.routers if not router.forwards]
    if wrong:
        findings.append(Finding("forwarding", BAD, f"canIpForward is off: {', '.join(wrong)}", "heal them"))
    return findings


def sizes(found: Fleet) -> list[Finding]:
    """Groups without VMs, autoscalers that are off, rollouts that do not get on."""
    findings = []
    for group in found.groups:
        what, scaler = f"group of {group.zone}", group.autoscaler
        doing = ", ".join(f"{count} {action}" for action, count in group.actions.items())
        if not group.size:
            findings.append(Finding(what, WARNING, "size 0", "the zone has no router: `replicas.min`"))
        elif scaler and scaler.mode != "ON":
            findings.append(
                Finding(what, WARNING, f"autoscaler {scaler.mode}", "it does not follow the load: `autoscaler.mode`")
            )
        elif scaler and group.size >= scaler.most:
            findings.append(
                Finding(what, WARNING, f"size {group.size} is the autoscaler's most", "raise `replicas.max`")
            )
        elif doing or not group.reached:
            findings.append(Finding(what, WARNING, f"at work: {doing or 'a new version'}", "`multinic status --watch`"))
        else:
            bounds = f", autoscaler {scaler.least} to {scaler.most}" if scaler else ", fixed"
            findings.append(Finding(what, GOOD, f"size {group.size}{bounds}"))
    if len(found.groups) < 2:
        findings.append(
            Finding("zones", WARNING, "one only", "a second zone keeps traffic up when the first one fails")
        )
    return findings


def errors(api: Api, found: Fleet) -> list[Finding]:
    """What went wrong when the groups last acted."""
    jobs = [
        partial(api.items, "InstanceGroupManagers", "list_errors", zone=group.zone, instance_group_manager=group.name)
        for group in found.groups
    ]
    findings = []
    for group, answer in zip(found.groups, api.together(*jobs), strict=True):
        if answer and (group.actions or not group.reached):
            newest = answer[0]
            detail = f"{newest.error.code}: {newest.error.message} ({newest.timestamp})"
            findings.append(
                Finding(f"errors of the group of {group.zone}", BAD, detail, "correct the input, `pulumi up`")
            )
    return findings


def route_findings(found: Fleet) -> list[Finding]:
    """Routes that are missing, withdrawn, dead or doubtful."""
    rows: Sequence[routes.Row] = routes.rows(found)
    findings = []
    for row in rows:
        what = f"route {row.route.name}"
        if row.state == "dead":
            findings.append(Finding(what, BAD, "; ".join(row.warnings), "`multinic routes --delete-warnings`"))
        elif row.state == "withdrawn":
            findings.append(
                Finding(
                    what, WARNING, f"withdrawn ({row.route.destination})", f"`multinic restore {row.route.network}`"
                )
            )
        elif row.warnings:
            findings.append(Finding(what, WARNING, "; ".join(row.warnings), "see docs/operating.md"))
    for hop in found.hops:
        mine = [route for route in found.own_routes if route.network == hop.network]
        gone = any(route.network == hop.network for _, route in records.withdrawn(found))
        if not mine and not gone:
            findings.append(
                Finding(f"routes in {hop.network}", BAD, "none leads to the fleet", "`pulumi up --refresh`")
            )
    return findings or [Finding("routes", GOOD, f"{len(found.own_routes)} lead to the fleet")]


def old_templates(api: Api, found: Fleet) -> list[Finding]:
    """Templates that nobody uses any more."""
    unused = [one for one in templates.read(api, found) if not one.users]
    if not unused:
        return [Finding("old templates", GOOD, "none")]
    return [Finding("old templates", WARNING, f"{len(unused)} unused", "`multinic templates --delete`")]

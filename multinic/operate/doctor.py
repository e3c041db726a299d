"""What a fleet needs around it, what of it is missing, and the cure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from multinic.operate import firewall_findings, links, quotas, records, routes, templates, topology
from multinic.operate.api import Api
from multinic.operate.errors import OperateError
from multinic.operate.fleet import Fleet
from multinic.operate.project import BAD, GOOD, UNKNOWN, WARNING, Finding
from multinic.operate.topology import Topology


def fleet(api: Api, found: Fleet) -> list[Finding]:
    """Everything about a fleet and what lies around it; what may not be read keeps nobody from the rest."""
    parts: dict[str, Callable[[], list[Finding]]] = {
        "networks and firewall": lambda: _around(api, found),
        "image": lambda: image(api, _template(api, found)),
        "health": lambda: health(found),
        "groups": lambda: sizes(found),
        "errors of the groups": lambda: errors(api, found),
        "routes": lambda: route_findings(found),
        "old templates": lambda: old_templates(api, found),
        "quotas": lambda: quotas.used_up(api, found.region),
        "room to grow": lambda: quotas.growth(api, found, _template(api, found)),
    }
    findings: list[Finding] = []
    for what, look in parts.items():
        try:
            findings += look()
        except OperateError as error:
            gone = "not found" in str(error)
            cure = (
                "`pulumi up --refresh` makes it again" if gone else "grant what is said to be missing, and look again"
            )
            findings.append(Finding(what, BAD if gone else UNKNOWN, str(error), cure))
    return findings


def _around(api: Api, found: Fleet) -> list[Finding]:
    around, _ = topology.read(api, found)
    checks = {check: _check(api, check) for check in sorted({c for c in _check_links(found) if c})}
    return [
        *mtus(found, around),
        *firewall_findings.probes(found, around, checks),
        *firewall_findings.routed(found, around),
        *firewall_findings.policies(around),
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

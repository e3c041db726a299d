"""Reads a fleet: a constant number of requests, plus for each zone two and one for each network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Any

from multinic.operate import links
from multinic.operate.api import Api
from multinic.operate.errors import OperateError, WordError
from multinic.operate.fleet import DRAIN_KEY, Autoscaler, Fleet, Group, Hop, Nic, Route, Router
from multinic.operate.stack import Where


class Reader:
    """Reads the fleet that is meant."""

    def __init__(self, api: Api, where: Where) -> None:
        self.api, self.where = api, where

    def fleets(self) -> list[Fleet]:
        """All fleets of the region, without their VMs and routes: load balancers that share zonal groups."""
        region, project = self.where.region, self.where.project
        here = {"project": project, "region": region}
        services, rules, managers, autoscalers = self.api.together(
            partial(self.api.items, "RegionBackendServices", **here),
            partial(self.api.items, "ForwardingRules", **here),
            partial(self.api.items, "InstanceGroupManagers", "aggregated_list", project=project),
            partial(self.api.items, "Autoscalers", "aggregated_list", project=project),
        )
        scaled = {links.path(one.target): _autoscaler(one) for one in autoscalers}
        known = {links.path(one.instance_group): _group(one, scaled) for one in managers if one.zone}
        by_service = {links.path(rule.backend_service): rule for rule in rules if rule.backend_service}
        paths = frozenset(links.path(rule.self_link) for rule in rules)
        found: dict[frozenset[str], list[Hop]] = {}
        for service in services:
            members = frozenset(links.path(backend.group) for backend in service.backends)
            rule = by_service.get(links.path(service.self_link))
            if service.load_balancing_scheme == "INTERNAL" and rule is not None and members & known.keys():
                found.setdefault(members, []).append(_hop(service, rule))
        fleets = []
        for members, hops in found.items():
            groups = tuple(sorted((known[one] for one in members & known.keys()), key=lambda group: group.zone))
            fleets.append(Fleet(_name(groups), project, region, tuple(_in_order(hops)), groups, rules=paths))
        return sorted(fleets, key=lambda fleet: fleet.name)

    def read(self) -> Fleet:
        """The fleet that is meant, whole.

        Raises:
            OperateError: There is none, or it is not clear which.
        """
        fleets = self.fleets()
        fleet = self._choose(fleets)
        others = tuple(other.name for other in fleets if other.name != fleet.name)
        return self.whole(replace(fleet, others=others))

    def whole(self, fleet: Fleet) -> Fleet:
        """A fleet with its VMs and the static routes of its networks."""
        projects = sorted({links.project(hop.network_link) for hop in fleet.hops})
        # The requests of both parts wait for each other at most once.
        jobs: list[Any] = [partial(self.api.items, "Routes", project=project) for project in projects]
        jobs += [partial(self._instances, fleet, group) for group in fleet.groups]
        answers = self.api.together(*jobs)
        networks = {hop.network_link for hop in fleet.hops}
        routes = [_route(one) for answer in answers[: len(projects)] for one in answer if not one.next_hop_network]
        machines = {one.name: one for answer in answers[len(projects) :] for one in answer}
        read = replace(
            fleet,
            routes=tuple(sorted((r for r in routes if r.network_link in networks), key=lambda r: (r.network, r.name))),
        )
        return self.members(read, machines)

    def members(self, fleet: Fleet, machines: Mapping[str, Any] | None = None) -> Fleet:
        """The same fleet with its groups and VMs as they are now; `machines` is what the VMs' own description says.

        Without it, what does not change as long as a VM lives is taken from the fleet as it was.
        """
        here = {"project": fleet.project}
        jobs: list[Any] = [
            partial(
                self.api.items,
                "InstanceGroupManagers",
                "list_managed_instances",
                **here,
                zone=group.zone,
                instance_group_manager=group.name,
            )
            for group in fleet.groups
        ]
        pairs = [(hop, group) for hop in fleet.hops for group in fleet.groups]
        jobs += [partial(self._health, fleet, hop, group) for hop, group in pairs]
        answers = self.api.together(*jobs)
        health: dict[str, dict[str, str]] = {}
        for (hop, _), statuses in zip(pairs, answers[len(fleet.groups) :], strict=True):
            for status in statuses:
                if not status.forwarding_rule or links.same(status.forwarding_rule, hop.rule):
                    health.setdefault(links.path(status.instance), {})[hop.network] = status.health_state
        routers = []
        for group, members in zip(fleet.groups, answers, strict=False):
            for member in members:
                made = _router(member, group, health.get(links.path(member.instance), {}))
                before = fleet.router(made.name)
                if machines is not None and made.name in machines:
                    made = _described(made, machines[made.name])
                elif before is not None and before.id == made.id:
                    more = ("drained", "nics", "tags", "account", "forwards")
                    made = replace(made, **{name: getattr(before, name) for name in more})
                routers.append(made)
        return replace(fleet, routers=tuple(sorted(routers, key=lambda one: (one.zone, one.name))))

    def _instances(self, fleet: Fleet, group: Group) -> list[Any]:
        # Only the fleet's own: each carries the guest's files in its metadata, some 100 KB.
        only = f"name eq '{group.base}-.*'"
        return self.api.items("Instances", project=fleet.project, zone=group.zone, filter=only)

    def _health(self, fleet: Fleet, hop: Hop, group: Group) -> list[Any]:
        answer = self.api.get(
            "RegionBackendServices",
            "get_health",
            project=fleet.project,
            region=fleet.region,
            backend_service=links.name(hop.service),
            resource_group_reference_resource={"group": group.members},
        )
        return list(answer.health_status)

    def _choose(self, fleets: list[Fleet]) -> Fleet:
        where = self.where
        place = f"region {where.region} of project {where.project}"
        names = ", ".join(fleet.name for fleet in fleets)
        if where.fleet:
            for fleet in fleets:
                if fleet.name == where.fleet:
                    return fleet
            raise WordError(f"{place} has no fleet {where.fleet}; it has {names or 'none at all'}")
        if where.services:
            for fleet in fleets:
                if any(hop.service in where.services for hop in fleet.hops):
                    return fleet
            raise OperateError(
                f"the fleet of the stack ({where.stack}) is not in {place}: it was deleted by hand, or the stack's "
                "outputs are old; run `pulumi up --refresh`"
            )
        if not fleets:
            raise OperateError(f"{place} has no fleet: no internal load balancers that share managed instance groups")
        # One load balancer alone is somebody's ordinary service, as long as there is a fleet beside it.
        real = [fleet for fleet in fleets if len(fleet.hops) > 1] or fleets
        if len(real) > 1:
            raise WordError(f"{place} has several fleets: {names}; say which with --fleet")
        return real[0]


def _name(groups: tuple[Group, ...]) -> str:
    """What the VMs' names have in common, without the zone's letter."""
    stems = [group.base.removesuffix("-" + group.zone.rpartition("-")[2]) for group in groups]
    common = takewhile(lambda letters: len(set(letters)) == 1, zip(*stems, strict=False))
    return "".join(letters[0] for letters in common).rstrip("-") or groups[0].name


def _in_order(hops: list[Hop]) -> list[Hop]:
    """In the order of the NICs, as far as the names tell."""
    return sorted(hops, key=lambda hop: links.name(hop.rule))


def _group(one: Any, scaled: dict[str, Autoscaler]) -> Group:
    actions = type(one.current_actions).to_dict(one.current_actions)
    policies = list(one.auto_healing_policies)
    template = next((version.instance_template for version in one.versions), "") or one.instance_template
    return Group(
        name=one.name,
        zone=links.name(one.zone),
        link=links.path(one.self_link),
        members=links.path(one.instance_group),
        base=one.base_instance_name,
        size=one.target_size,
        template=links.name(template),
        stable=one.status.is_stable,
        reached=one.status.version_target.is_reached,
        actions={name: count for name, count in actions.items() if count and name != "none"},
        autoscaler=scaled.get(links.path(one.self_link)),
        check=links.path(policies[0].health_check) if policies else "",
    )


def _autoscaler(one: Any) -> Autoscaler:
    policy = one.autoscaling_policy
    return Autoscaler(one.name, policy.min_num_replicas, policy.max_num_replicas, policy.mode or "ON")


def _hop(service: Any, rule: Any) -> Hop:
    network = links.path(service.network or rule.network)
    return Hop(
        network=links.name(network),
        network_link=network,
        service=links.path(service.self_link),
        rule=links.path(rule.self_link),
        address=rule.I_p_address,
        protocol=rule.I_p_protocol,
        everywhere=rule.allow_global_access,
        check=links.path(next(iter(service.health_checks), "")),
        affinity=service.session_affinity,
    )


def _route(one: Any) -> Route:
    return Route(
        name=one.name,
        project=links.project(one.self_link or one.network),
        network=links.name(one.network),
        network_link=links.path(one.network),
        destination=one.dest_range,
        priority=one.priority,
        tags=tuple(one.tags),
        next_hop=_next_hop(one),
        description=one.description,
        warnings=tuple(f"{warning.code}: {warning.message}" for warning in one.warnings),
    )


def _next_hop(one: Any) -> str:
    names = ("next_hop_ilb", "next_hop_gateway", "next_hop_instance", "next_hop_ip", "next_hop_vpn_tunnel")
    given = next((getattr(one, name) for name in names if getattr(one, name)), "")
    return links.path(given) or one.next_hop_peering or one.next_hop_hub


def _router(member: Any, group: Group, health: dict[str, str]) -> Router:
    checks = list(member.instance_health)
    return Router(
        name=member.name or links.name(member.instance),
        zone=group.zone,
        group=group.name,
        id=str(member.id or ""),
        status=member.instance_status or "",
        action=member.current_action or "NONE",
        template=links.name(member.version.instance_template),
        heal=checks[0].detailed_health_state if checks else "",
        health=health,
    )


def _described(router: Router, machine: Any) -> Router:
    asked = {item.key: item.value for item in machine.metadata.items}.get(DRAIN_KEY, "")
    accounts = list(machine.service_accounts)
    return replace(
        router,
        drained=drain_asked(asked),
        nics=tuple(
            Nic(links.path(n.network), links.path(n.subnetwork), n.network_i_p) for n in machine.network_interfaces
        ),
        tags=frozenset(machine.tags.items),
        account=accounts[0].email if accounts else "",
        forwards=machine.can_ip_forward,
    )


def drain_asked(value: str) -> bool:
    """Whether a value of the drain key asks for it, as the guest reads it."""
    return value.strip().lower() in ("1", "true", "yes")

"""The objects as the packets see them: one `NetworkPlan` for each VPC network. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from ..substrate import Balancer, FirewallRule, NetworkPlan, Route
from .balancing import Candidate, Policy, backends
from .links import key_of, name_of, region_of, split
from .rules import address_of, at
from .store import Object, Store


@dataclass(frozen=True)
class Situation:
    """What a plan needs to know beside the objects.

    Attributes:
        instances_of: Key of an instance group → keys of its instances.
        healthy: (key of a forwarding rule, key of an instance) → whether its traffic check says so.
        draining: Instances in their draining time.
        left: Instances that have left their load balancers and are about to go.
    """

    instances_of: Callable[[str], Collection[str]]
    healthy: Callable[[str, str], bool]
    draining: Collection[str] = ()
    left: Collection[str] = ()


def network_plan(store: Store, key: str, situation: Situation) -> NetworkPlan:
    """The whole wanted state of a network."""
    value = store.require(key)
    machines = machines_in(store, key)
    return NetworkPlan(
        key=key,
        mtu=value["mtu"],
        subnetworks={name: IPv4Network(subnet["ipCidrRange"]) for name, subnet in store.in_network("subnetworks", key)},
        balancers=tuple(
            _balancer(store, name, rule, machines, situation) for name, rule in store.in_network("forwardingRules", key)
        ),
        routes=tuple(_routes(store, key, machines)),
        firewall=tuple(_firewall(store, key, machines)),
    )


def machines_in(store: Store, network: str) -> dict[str, Object]:
    """Instances with a NIC in a network, by key."""
    return dict(store.in_network("instances", network))


def _balancer(store: Store, key: str, rule: Object, machines: dict[str, Object], situation: Situation) -> Balancer:
    service = store.require(key_of(rule["backendService"]))
    return Balancer(
        address=IPv4Address(rule["IPAddress"]),
        backends=backends(policy(service), candidates(store, key, rule, machines, situation)),
        affinity=service["sessionAffinity"],
        per_session=at(service, "connectionTrackingPolicy.trackingMode") == "PER_SESSION",
        clients=_clients(key, rule, machines),
        idle_timeout=at(service, "connectionTrackingPolicy.idleTimeoutSec") or 600,
    )


def _clients(key: str, rule: Object, machines: dict[str, Object]) -> frozenset[str] | None:
    """The machines that may use a rule: all of its region, or of every region with global access.

    https://cloud.google.com/load-balancing/docs/internal/ilb-next-hop-overview
    """
    region = name_of(split(key).scope)
    near = frozenset(name for name in machines if region_of(name_of(split(name).scope)) == region)
    return None if rule.get("allowGlobalAccess") or len(near) == len(machines) else near


def policy(service: Object) -> Policy:
    """What decides about a service's backends."""
    tracking = service.get("connectionTrackingPolicy") or {}
    failover = service.get("failoverPolicy") or {}
    return Policy(
        persistence=tracking.get("connectionPersistenceOnUnhealthyBackends") or "DEFAULT_FOR_PROTOCOL",
        tracking=tracking.get("trackingMode") or "PER_CONNECTION",
        affinity=service["sessionAffinity"],
        failover_ratio=float(failover.get("failoverRatio") or 0),
        drop_if_unhealthy=bool(failover.get("dropTrafficIfUnhealthy")),
    )


def candidates(
    store: Store, rule_key: str, rule: Object, machines: dict[str, Object], situation: Situation
) -> list[Candidate]:
    """The VMs behind a forwarding rule: running members of its groups with a NIC in its network."""
    service = store.require(key_of(rule["backendService"]))
    found = []
    for backend in service.get("backends", []):
        for instance in situation.instances_of(key_of(backend["group"])):
            value = machines.get(instance)
            if value is None or value["status"] not in ("RUNNING", "STOPPING") or instance in situation.left:
                continue
            found.append(
                Candidate(
                    machine=instance,
                    healthy=situation.healthy(rule_key, instance),
                    draining=instance in situation.draining,
                    failover=bool(backend.get("failover")),
                )
            )
    return found


def forwarded_addresses(store: Store, situation: Situation) -> dict[str, dict[str, list[str]]]:
    """Instance key → network key → addresses of the forwarding rules whose load balancer has the instance as backend.

    An instance in its draining time is still one: https://cloud.google.com/load-balancing/docs/enabling-connection-draining
    """
    found: dict[str, dict[str, list[str]]] = {}
    for _, rule in store.everywhere("forwardingRules"):
        service = store.require(key_of(rule["backendService"]))
        network = key_of(rule["network"])
        for backend in service.get("backends", []):
            for instance in situation.instances_of(key_of(backend["group"])):
                nics = (store.get(instance) or {}).get("networkInterfaces", [])
                if any(key_of(nic["network"]) == network for nic in nics):
                    found.setdefault(instance, {}).setdefault(network, []).append(rule["IPAddress"])
    return found


def _routes(store: Store, network: str, machines: dict[str, Object]) -> list[Route]:
    found: dict[tuple[IPv4Network, int, frozenset[str] | None], tuple[str, Route]] = {}
    for key, route in store.in_network("routes", network):
        if "nextHopNetwork" in route:
            continue
        sources = None
        if route.get("tags"):
            tags = set(route["tags"])
            sources = frozenset(name for name, value in machines.items() if tags & set(tags_of(value)))
        destination = IPv4Network(route["destRange"])
        made = Route(destination, next_hop(store, network, route), sources, route["priority"])
        # No equal-cost multipath between next-hop load balancers: one is picked, always the same; the lab takes the
        # older route. https://cloud.google.com/load-balancing/docs/internal/ilb-next-hop-overview#considerations
        slot = (destination, made.priority, sources)
        age = f"{route['creationTimestamp']} {key}"
        if slot not in found or age < found[slot][0]:
            found[slot] = (age, made)
    return [route for _, (_, route) in sorted(found.items(), key=lambda item: item[1][0])]


def next_hop(store: Store, network: str, route: Object) -> IPv4Address | None:
    """Address of the load balancer that a route leads to; None for the internet gateway, which the lab has not."""
    text = route.get("nextHopIlb")
    if text is None:
        return None
    for key, rule in store.in_network("forwardingRules", network):
        if key == key_of(text) or address_of(text) == IPv4Address(rule["IPAddress"]):
            # A rule with L3_DEFAULT cannot be a next hop: packets are dropped.
            # https://cloud.google.com/load-balancing/docs/internal/ilb-next-hop-overview
            return None if rule["IPProtocol"] == "L3_DEFAULT" else IPv4Address(rule["IPAddress"])
    return None


def _firewall(store: Store, network: str, machines: dict[str, Object]) -> list[FirewallRule]:
    found = []
    for key, rule in store.in_network("firewalls", network):
        if rule.get("disabled"):
            continue
        ingress = rule["direction"] == "INGRESS"
        entries = rule.get("allowed") or rule.get("denied") or []
        chosen = None
        if rule.get("targetTags") or rule.get("targetServiceAccounts"):
            chosen = _selected(machines, rule.get("targetTags"), rule.get("targetServiceAccounts"))
        found.append(
            FirewallRule(
                name=key.rpartition("/")[2],
                priority=rule["priority"],
                allow=bool(rule.get("allowed")),
                ingress=ingress,
                ranges=tuple(
                    IPv4Network(text) for text in rule.get("sourceRanges" if ingress else "destinationRanges", [])
                ),
                protocols=tuple((str(e["IPProtocol"]).lower(), tuple(map(str, e.get("ports", [])))) for e in entries),
                sources=_selected(machines, rule.get("sourceTags"), rule.get("sourceServiceAccounts")),
                targets=chosen,
            )
        )
    return found


def _selected(machines: dict[str, Object], tags: list[str] | None, accounts: list[str] | None) -> frozenset[str]:
    wanted_tags, wanted_accounts = set(tags or ()), set(accounts or ())
    return frozenset(
        key
        for key, value in machines.items()
        if wanted_tags & set(tags_of(value))
        or wanted_accounts & {account["email"] for account in value.get("serviceAccounts", [])}
    )


def tags_of(instance: Object) -> list[str]:
    """Network tags of an instance."""
    return list((instance.get("tags") or {}).get("items") or [])

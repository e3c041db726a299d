"""The way of a packet through the lab, computed from the objects alone; works without guests."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING, Any

from .balancing import backends
from .errors import ApiError
from .links import key_of
from .plans import candidates, machines_in, network_plan, policy
from .store import Object

if TYPE_CHECKING:
    from .cloud import Cloud

_HOPS = 8


def trace(cloud: Cloud, source: str, destination: str, protocol: str, port: str | None) -> dict[str, Any]:
    """The steps of a packet from a VM's address to another address.

    Returns:
        ``{"delivered": bool, "reason": …, "steps": […]}``; each step names the network, what decided (subnet route,
        static route, load balancer) and, for a load balancer, every VM that may get the packet, with its NICs.

    Raises:
        ApiError: 400 for a text that is no IPv4 address, 404 where no VM has the source address.
    """
    try:
        start, goal = IPv4Address(source), IPv4Address(destination)
    except ValueError as error:
        raise ApiError(400, "invalid", f"Invalid IPv4 address: {error}.") from None
    found = _holder(cloud, start)
    if found is None:
        raise ApiError(404, "notFound", f"No instance has the address {start}.")
    machine, network = found
    steps: list[dict[str, Any]] = []
    entry: tuple[str, str] | None = (machine, network)
    seen: set[tuple[str, str]] = set()
    reason = "more hops than a packet lives"
    delivered = False
    for _ in range(_HOPS):
        assert entry is not None
        if entry in seen:
            reason = "goes round in a circle"
            break
        seen.add(entry)
        step, outcome, entry = _step(cloud, entry, goal)
        steps.append(step)
        if entry is None:
            delivered, reason = outcome == "delivered", outcome
            break
    if delivered:
        refusal = _firewall(cloud, steps[-1]["network"], start, goal, protocol, port)
        if refusal:
            delivered, reason = False, refusal
    return {
        "source": str(start),
        "destination": str(goal),
        "delivered": delivered,
        "reason": reason,
        "steps": steps,
    }


def _holder(cloud: Cloud, address: IPv4Address) -> tuple[str, str] | None:
    for key, value in cloud.store.everywhere("instances"):
        for nic in value["networkInterfaces"]:
            if nic["networkIP"] == str(address):
                return key, key_of(nic["network"])
    return None


def _step(
    cloud: Cloud, entry: tuple[str, str], goal: IPv4Address
) -> tuple[dict[str, Any], str, tuple[str, str] | None]:
    """One network crossed: (what happened, outcome, (machine, network) that sends it on or None)."""
    machine, network = entry
    store, situation = cloud.store, cloud.fabric.situation()
    plan = network_plan(store, network, situation)
    step: dict[str, Any] = {"network": network, "from": machine}
    for key, subnet in plan.subnetworks.items():
        if goal in subnet:
            step.update(route="subnet", subnetwork=key, range=str(subnet))
            holder = _holder(cloud, goal)
            if holder is not None and holder[1] == network:
                step["to"] = holder[0]
                return step, "delivered", None
            return step, f"nothing has the address {goal}", None
    routes = [r for r in plan.routes if goal in r.destination and (r.sources is None or machine in r.sources)]
    if not routes:
        return step, f"no route to {goal}", None
    best = min(routes, key=lambda route: (-route.destination.prefixlen, route.priority))
    step.update(route=_name(cloud, network, best.destination, best.priority), range=str(best.destination))
    step["priority"] = best.priority
    if best.balancer is None:
        return step, "the route leads out of the lab or its next hop is gone", None
    balancer = next((b for b in plan.balancers if b.address == best.balancer), None)
    if balancer is not None and balancer.clients is not None and machine not in balancer.clients:
        return step, "the load balancer is in another region and has no global access", None
    return _balanced(cloud, step, network, best.balancer)


def _balanced(
    cloud: Cloud, step: dict[str, Any], network: str, address: IPv4Address
) -> tuple[dict[str, Any], str, tuple[str, str] | None]:
    store, situation = cloud.store, cloud.fabric.situation()
    rule_key = cloud.forwarding_rules.by_address(network, str(address))
    if rule_key is None:
        return step, "the next hop is gone", None
    rule = store.require(rule_key)
    service = store.require(key_of(rule["backendService"]))
    machines = machines_in(store, network)
    chosen = backends(policy(service), candidates(store, rule_key, rule, machines, situation))
    rows = []
    for backend in chosen:
        instance = store.require(backend.machine)
        rows.append(
            {
                "machine": backend.machine,
                "healthy": situation.healthy(rule_key, backend.machine),
                "takesNew": backend.takes_new,
                "nics": [_nic(nic) for nic in instance["networkInterfaces"]],
            }
        )
    step.update(nextHop=str(address), forwardingRule=rule_key, candidates=rows)
    takers = [backend.machine for backend in chosen if backend.takes_new]
    if not takers:
        return step, "no backend takes new connections", None
    router = store.require(takers[0])
    if not router.get("canIpForward"):
        return step, "the routers may not forward (canIpForward is off)", None
    onward = _other_side(router, network)
    if onward is None:
        return step, "the routers have no NIC in another network", None
    return step, "forwarded", (takers[0], onward)


def _other_side(router: Object, network: str) -> str | None:
    """The network that a virtual wire of two NICs sends it to."""
    others = [key_of(nic["network"]) for nic in router["networkInterfaces"] if key_of(nic["network"]) != network]
    return others[0] if others else None


def _nic(nic: Object) -> dict[str, str]:
    return {"name": nic["name"], "network": key_of(nic["network"]), "address": nic["networkIP"]}


def _name(cloud: Cloud, network: str, destination: IPv4Network, priority: int) -> str:
    for key, route in cloud.store.everywhere("routes"):
        same = (route["destRange"], route["priority"]) == (str(destination), priority)
        if same and key_of(route["network"]) == network:
            return key
    return ""


def _firewall(
    cloud: Cloud, network: str, source: IPv4Address, goal: IPv4Address, protocol: str, port: str | None
) -> str | None:
    """Why the destination's network does not let the packet in, or None."""
    plan = network_plan(cloud.store, network, cloud.fabric.situation())
    holder = _holder(cloud, goal)
    sender = _holder(cloud, source)
    rules = sorted((r for r in plan.firewall if r.ingress), key=lambda rule: (rule.priority, rule.allow))
    for rule in rules:
        if rule.targets is not None and (holder is None or holder[0] not in rule.targets):
            continue
        if not any(source in r for r in rule.ranges) and not (sender is not None and sender[0] in rule.sources):
            continue
        if any(_covers(name, ports, protocol, port) for name, ports in rule.protocols):
            return None if rule.allow else f"the firewall rule '{rule.name}' denies it"
    return "no firewall rule allows it (ingress is denied unless allowed)"


def _covers(name: str, ports: tuple[str, ...], protocol: str, port: str | None) -> bool:
    if name not in ("all", protocol.lower()):
        return False
    if not ports:
        return True
    if port is None or not re.fullmatch(r"\d{1,5}", port, re.ASCII):
        return False
    for text in ports:
        first, _, last = text.partition("-")
        if int(first) <= int(port) <= int(last or first):
            return True
    return False

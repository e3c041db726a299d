"""Which way a flow takes through a fleet, and why it does not arrive: from the API's data, without a packet."""

from __future__ import annotations

from ipaddress import IPv4Network

from multinic.operate import firewall, links, records
from multinic.operate.firewall import Party, Service
from multinic.operate.fleet import Fleet, Hop, Route, Router
from multinic.operate.flow import Flow, Problem, Step, Way
from multinic.operate.topology import End, Topology


def trace(fleet: Fleet, around: Topology, client: End, server: End, service: Service) -> Flow:
    """The way of a flow and of its answers."""
    forth = _Walk(fleet, around, client, server, service, answers=False).way()
    back = _Walk(fleet, around, server, client, service, answers=True).way()
    notes, mtu = _mtu(around, client, server)
    if not client.network and not server.network:
        here = ", ".join(fleet.networks)
        notes.append(Problem(f"neither end lies in a subnet of {here}", "name a VM or an address of these networks"))
    for policy in around.policies:
        notes.append(Problem(policy.title, "this trace does not judge its rules: look at them", fatal=False))
    for end in (client, server):
        if end.machine and not end.running:
            notes.append(Problem(f"{end.title} does not run", f"start {end.title}"))
    return Flow(forth, back, mtu, tuple(notes))


def _mtu(around: Topology, client: End, server: End) -> tuple[list[Problem], int]:
    networks = [found for end in (client, server) if (found := around.network(end.network)) is not None]
    mtus = {network.name: network.mtu for network in networks}
    if len(set(mtus.values())) < 2:
        return [], min(mtus.values(), default=0)
    sizes = ", ".join(f"{name} {mtu}" for name, mtu in mtus.items())
    what = f"the networks' MTUs differ ({sizes}): larger packets need path MTU discovery"
    cure = "give both networks the smaller one's MTU, or set machine.clamp_mss for TCP"
    return [Problem(what, cure, fatal=False)], min(mtus.values())


class _Walk:
    """Goes one direction, step by step, until nothing leads on."""

    def __init__(
        self, fleet: Fleet, around: Topology, start: End, goal: End, service: Service, *, answers: bool
    ) -> None:
        self._fleet, self._around, self._start, self._goal = fleet, around, start, goal
        self._service, self._answers = service, answers
        self._steps: list[Step] = []
        self._problems: list[Problem] = []
        self._routers: tuple[str, ...] = ()
        self._nics: tuple[str, ...] = ()

    def way(self) -> Way:
        """The whole way, as far as it leads."""
        self._go()
        title = f"{self._start.title} ({self._start.address}) → {self._goal.title} ({self._goal.address})"
        return Way(title, tuple(self._steps), tuple(self._problems), self._routers, self._nics)

    def _go(self) -> None:
        start, goal = self._start, self._goal
        if not start.network:
            ranges = ", ".join(self._fleet.networks)
            self._bad(
                f"{start.address} is in no subnet of {ranges}",
                "from outside, the way depends on VPN or peering",
                fatal=False,
            )
            return
        # The VPC firewall lets answers of a connection pass at the VM that began it and at the one that took it.
        if start.machine and not self._answers:
            self._decide("egress", start.network, _party(start), Party.at(goal.address), start.title)
        if start.network == goal.network:
            self._step("route", f"subnet route of {links.name(start.network)}: direct, no router is used")
            self._arrive(start.network)
            return
        route = self._route()
        hop = self._fleet.hop_of(route) if route is not None else None
        if route is None or hop is None:
            return
        self._hop(hop)
        routers = self._chosen(hop)
        if not routers:
            return
        self._cross(hop, routers)

    def _route(self) -> Route | None:
        """The route that wins; tells why if it does not lead to the fleet."""
        start, goal, name = self._start, self._goal, links.name(self._start.network)
        subnet = self._around.subnet_of(goal.address, [start.network])
        if subnet is not None:
            self._step("route", f"subnet route of {links.name(subnet.link)} in {name}")
            self._bad(
                f"{goal.address} is in a subnet of {name} itself", "a subnet's route always wins: the ranges overlap"
            )
            return None
        fitting = [
            route
            for route in self._fleet.routes
            if route.network_link == start.network
            and goal.address in IPv4Network(route.destination)
            and (not route.tags or not start.machine or set(route.tags) & start.tags)
            and records.original_of(route) is None
        ]
        if not fitting:
            tagged = [
                r
                for r in self._fleet.own_routes
                if r.network_link == start.network and goal.address in IPv4Network(r.destination)
            ]
            self._step("route", f"none in {name} for {goal.address}")
            self._bad(*self._no_route(tagged, name))
            return None
        best = min(fitting, key=lambda route: (-IPv4Network(route.destination).prefixlen, route.priority))
        equal = [
            r.name
            for r in fitting
            if r is not best and (r.destination, r.priority) == (best.destination, best.priority)
        ]
        self._step(
            "route",
            f"{best.name}: {best.destination}, priority {best.priority}"
            + (f", tags {', '.join(best.tags)}" if best.tags else ""),
        )
        if equal:
            self._bad(
                f"{', '.join(equal)} has the same destination and priority",
                "Google Cloud picks one; give them different priorities",
                fatal=False,
            )
        if not self._fleet.own(best):
            self._bad(*self._elsewhere(best, fitting))
            return None
        return best

    def _no_route(self, tagged: list[Route], name: str) -> tuple[str, str]:
        goal = self._goal.address
        if tagged:
            return (
                f"route {tagged[0].name} is for VMs with tags {', '.join(tagged[0].tags)} only",
                f"give {self._start.title} one of these tags",
            )
        for record, route in records.withdrawn(self._fleet):
            if record.network_link == self._start.network and goal in IPv4Network(route.destination):
                return f"the route was withdrawn ({route.title})", f"`multinic restore {route.network}`"
        return f"no route in {name} leads to {goal}", "name a range with it in `cidrs` of the other network"

    def _elsewhere(self, best: Route, fitting: list[Route]) -> tuple[str, str]:
        for record, route in records.withdrawn(self._fleet):
            if record.network_link == best.network_link and self._goal.address in IPv4Network(route.destination):
                return f"the fleet's route was withdrawn, so {best.name} has it", f"`multinic restore {route.network}`"
        lost = next((route for route in fitting if self._fleet.own(route)), None)
        hop = links.name(best.next_hop) or "somewhere else"
        if lost is not None:
            return (
                f"route {best.name} (to {hop}) wins over {lost.name}",
                "a longer prefix, then a smaller priority wins",
            )
        return f"route {best.name} leads to {hop}, not to the fleet", "name a range with the server in `cidrs`"

    def _hop(self, hop: Hop) -> None:
        self._step("next hop", f"{links.name(hop.rule)} ({hop.address}), backend service {links.name(hop.service)}")
        if hop.protocol == "L3_DEFAULT":
            self._bad(
                "a forwarding rule with protocol L3_DEFAULT drops what a route sends to it", "use TCP with all ports"
            )
        if not hop.everywhere and self._start.region not in ("", self._fleet.region):
            self._bad(
                f"{self._start.title} is in {self._start.region}, and the rule has no global access",
                "set next_hop.global_access: true",
            )

    def _chosen(self, hop: Hop) -> list[Router]:
        """The routers that may get the flow."""
        healthy = self._fleet.healthy(hop.network)
        if healthy:
            chosen = healthy
            self._step(
                "routers",
                f"one of {', '.join(r.name for r in chosen)}, by a hash of the flow ({hop.affinity or 'NONE'})",
            )
        elif self._fleet.routers:
            chosen = list(self._fleet.routers)
            drained = ", ".join(r.name for r in chosen if r.drained)
            self._step("routers", f"none is healthy in {hop.network}: one of all {len(chosen)}")
            cure = (
                f"`multinic undrain` ({drained})"
                if drained
                else "`multinic doctor`, `multinic logs --severity WARNING`"
            )
            self._bad(f"no router is healthy in {hop.network}", cure)
        else:
            self._bad("the fleet has no VM", "give it a size: `replicas.min`")
            return []
        self._routers = tuple(router.name for router in chosen)
        return chosen

    def _cross(self, hop: Hop, routers: list[Router]) -> None:
        """Into the routers by one NIC and out by another."""
        goal, ways = self._goal, set()
        for router in routers:
            if not router.forwards:
                self._bad(
                    f"{router.name} may not forward (canIpForward is off)", "it was not made by this fleet's template"
                )
            into = next((i for i, nic in enumerate(router.nics) if nic.network == hop.network_link), None)
            others = [i for i, nic in enumerate(router.nics) if i != into]
            out = next((i for i in others if router.nics[i].network == goal.network), None)
            if out is None and not goal.network and len(others) == 1:
                out = others[0]
            ways.add((into, out))
        into, out = next(iter(ways))
        if into is None or out is None or len(ways) > 1:
            self._bad(
                f"the routers have no NIC in {links.name(goal.network) or f'a network with {goal.address}'}",
                f"their networks are {', '.join(self._fleet.networks)}",
            )
            return
        one = routers[0]
        self._nics = (f"nic{into}", f"nic{out}")
        party = Party.at(one.nics[into].address, one.tags, one.account)
        self._decide("ingress", hop.network_link, party, _party(self._start), "the routers")
        self._step(
            "router",
            f"in by nic{into} ({links.name(hop.network_link)}), out by nic{out} ({links.name(one.nics[out].network)})",
        )
        leaving = Party.at(one.nics[out].address, one.tags, one.account)
        self._decide("egress", one.nics[out].network, leaving, Party.at(goal.address), "the routers")
        self._arrive(one.nics[out].network)

    def _arrive(self, network: str) -> None:
        goal = self._goal
        if not goal.network:
            self._bad(
                f"{goal.address} is in no subnet of {links.name(network)}",
                "from there on its own routes decide",
                fatal=False,
            )
            return
        if goal.machine and not self._answers:
            self._decide("ingress", network, _party(goal), _party(self._start), goal.title)
        self._step("arrives", f"{goal.title} in {links.name(network)}")

    def _decide(self, direction: str, network: str, mine: Party, other: Party, title: str) -> None:
        ingress = direction == "ingress"
        # Answers come back to the port that the client chose, which no rule knows; "all" is what routers need.
        service = Service(self._service.protocol) if self._answers else self._service
        decision = firewall.decide(self._around.rules, network, mine, other, service, ingress=ingress)
        self._step(f"firewall, {direction} of {title}", decision.title)
        if not decision.allowed:
            into = "into" if ingress else "out of"
            self._bad(
                f"{service.title} from {self._start.address} to {self._goal.address} is not let {into} {title}",
                f"allow it in {links.name(network)}" + (f": rule {decision.rule} denies it" if decision.rule else ""),
            )

    def _step(self, what: str, result: str) -> None:
        self._steps.append(Step(what, result))

    def _bad(self, what: str, cure: str, *, fatal: bool = True) -> None:
        self._problems.append(Problem(what, cure, fatal))


def _party(end: End) -> Party:
    return Party.at(end.address, end.tags, end.account)

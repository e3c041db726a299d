"""A fleet as Google Cloud describes it at one moment. Plain data: what is planned is planned on it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

DRAIN_KEY = "multinic-drain"
"""Metadata key by which a router closes its traffic check; see docs/guest.md."""

STAYING = ("NONE", "VERIFYING", "REFRESHING")
"""Current actions of a managed instance that leave the VM where it is."""


@dataclass(frozen=True)
class Nic:
    """A NIC of a router: its network's and subnetwork's path, and its address."""

    network: str
    subnetwork: str
    address: str


@dataclass(frozen=True)
class Router:
    """A VM of the fleet.

    Attributes:
        name: VM name.
        zone: Its zone.
        group: Name of its managed instance group.
        id: Of the VM; another one after it was recreated under the same name. Empty while there is no VM.
        status: Life-cycle state, such as RUNNING.
        action: What its group does to it; NONE for nothing.
        template: Name of the instance template that it was made from.
        heal: What the heal check says.
        health: Network name → what the traffic check says there.
        drained: Whether its metadata asks it to take no traffic.
        nics: In order.
        tags: Network tags.
        account: E-mail of its service account.
        forwards: Whether it may forward packets.
    """

    name: str
    zone: str
    group: str
    id: str = ""
    status: str = ""
    action: str = "NONE"
    template: str = ""
    heal: str = ""
    health: Mapping[str, str] = field(default_factory=dict)
    drained: bool = False
    nics: tuple[Nic, ...] = ()
    tags: frozenset[str] = frozenset()
    account: str = ""
    forwards: bool = True

    def serves(self, network: str) -> bool:
        """Whether the load balancer of a network sends it new connections."""
        return self.health.get(network) == "HEALTHY"

    @property
    def stays(self) -> bool:
        """Whether nothing is taking the VM away."""
        return self.action in STAYING and self.status == "RUNNING"


@dataclass(frozen=True)
class Autoscaler:
    """Bounds of a group's size; `mode` is ON, OFF or ONLY_SCALE_OUT."""

    name: str
    least: int
    most: int
    mode: str


@dataclass(frozen=True)
class Group:
    """A zone's managed instance group.

    Attributes:
        name: Its name.
        zone: Its zone.
        link: Path of the group manager.
        members: Path of the instance group, as load balancers know it.
        base: What the names of its VMs begin with.
        size: How many VMs it wants.
        template: Name of the template of new VMs.
        stable: Whether nothing is being done and nothing is left to do.
        reached: Whether all VMs are of the version that was asked for.
        actions: Action → number of VMs, without ``none``.
        autoscaler: What decides its size, if anything does.
        check: Path of the heal check.
    """

    name: str
    zone: str
    link: str
    members: str
    base: str
    size: int
    template: str
    stable: bool
    reached: bool
    actions: Mapping[str, int]
    autoscaler: Autoscaler | None = None
    check: str = ""


@dataclass(frozen=True)
class Hop:
    """The load balancer of one network, next hop of its routes.

    Attributes:
        network: Name of the network.
        network_link: Path of the network, whose project may be a Shared VPC host's.
        service: Path of the backend service.
        rule: Path of the forwarding rule.
        address: The rule's address.
        protocol: The rule's; with L3_DEFAULT a next hop drops everything.
        everywhere: Whether clients of other regions may use it.
        check: Path of the traffic check.
        affinity: Session affinity.
    """

    network: str
    network_link: str
    service: str
    rule: str
    address: str
    protocol: str = "TCP"
    everywhere: bool = True
    check: str = ""
    affinity: str = ""


@dataclass(frozen=True)
class Route:
    """A static route of one of the fleet's networks.

    Attributes:
        name: Its name.
        project: Its project.
        network: Name of its network.
        network_link: Path of its network.
        destination: CIDR range.
        priority: Smaller wins.
        tags: Network tags of the VMs that it applies to; none means all.
        next_hop: Link, path or address of a forwarding rule; or of a gateway or whatever else.
        description: Free text.
        warnings: What Google Cloud says is wrong with it.
    """

    name: str
    project: str
    network: str
    network_link: str
    destination: str
    priority: int
    tags: tuple[str, ...] = ()
    next_hop: str = ""
    description: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.name} ({self.network}: {self.destination}, priority {self.priority})"


@dataclass(frozen=True)
class Fleet:
    """All of it.

    Attributes:
        name: What its VMs' names begin with, without the zone's letter.
        project: Of its VMs and load balancers.
        region: Its region.
        hops: One for each network.
        groups: One for each zone.
        routers: Its VMs, by zone and name.
        routes: Static routes of its networks, also others' routes.
        others: Names of the other fleets of the region.
        rules: Paths of all forwarding rules of the region, also of others.
    """

    name: str
    project: str
    region: str
    hops: tuple[Hop, ...]
    groups: tuple[Group, ...]
    routers: tuple[Router, ...] = ()
    routes: tuple[Route, ...] = ()
    others: tuple[str, ...] = ()
    rules: frozenset[str] = frozenset()

    @property
    def zones(self) -> tuple[str, ...]:
        """Zones that have a group."""
        return tuple(group.zone for group in self.groups)

    @property
    def networks(self) -> tuple[str, ...]:
        """Names of its networks."""
        return tuple(hop.network for hop in self.hops)

    def group(self, name: str) -> Group:
        """A group by name."""
        return next(group for group in self.groups if group.name == name)

    def router(self, name: str) -> Router | None:
        """A VM by name."""
        return next((router for router in self.routers if router.name == name), None)

    def healthy(self, network: str) -> list[Router]:
        """The VMs to which a network's load balancer sends new connections."""
        return [router for router in self.routers if router.serves(network)]

    def left(self, network: str, without: Collection[str]) -> list[Router]:
        """As `healthy`, once the VMs of these names, and those that are being taken away anyhow, are gone."""
        return [one for one in self.healthy(network) if one.stays and one.name not in without]

    def serving(self, router: Router) -> bool:
        """Whether a VM gets traffic in every network."""
        return all(router.serves(network) for network in self.networks)

    def own(self, route: Route) -> bool:
        """Whether a route leads to this fleet."""
        return self.hop_of(route) is not None

    def hop_of(self, route: Route) -> Hop | None:
        """The load balancer that a route leads to, if it is one of this fleet's."""
        from multinic.operate import links

        for hop in self.hops:
            if links.same(route.next_hop, hop.rule):
                return hop
            if route.next_hop == hop.address and links.same(route.network_link, hop.network_link):
                return hop
        return None

    @property
    def own_routes(self) -> tuple[Route, ...]:
        """The routes that lead to this fleet."""
        return tuple(route for route in self.routes if self.own(route))

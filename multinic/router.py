"""MultinicRouter: a fleet in each zone, a next hop in each network, routes between them.

clients ── network 0 ── next hop 0 ─┐             ┌─ next hop 1 ── network 1 ── servers
                                    ├── routers ──┤
           routes to network 1      │  per zone   │      routes to network 0
                                    └─────────────┘
"""

from collections.abc import Sequence
from typing import cast

import pulumi

from multinic import access, checks, naming, parsing, routes
from multinic.args import MultinicRouterArgs
from multinic.fleet import RouterFleet, RouterFleetArgs, with_zones
from multinic.next_hop import NextHop, NextHopArgs
from multinic.problems import Problems
from multinic.settings import RouterSettings


class MultinicRouter(pulumi.ComponentResource):
    """Linux VMs that forward between VPC networks, dependable as one router.

    Does not make: the networks, NAT, external addresses, anything for IPv6.
    """

    addresses: pulumi.Output[list[str]]
    """Address of the load balancer in each network, in the order of the networks."""
    next_hops: pulumi.Output[list[str]]
    """Link of the forwarding rule in each network: the next hop, for routes of your own."""
    backend_services: pulumi.Output[list[str]]
    """Link of the backend service in each network."""
    groups: pulumi.Output[dict[str, str]]
    """Zone → link of its instance group manager."""
    template: pulumi.Output[str]
    """Link of the instance template in use."""
    heal_check: pulumi.Output[str]
    """Link of the check that decides who is re-created."""
    traffic_check: pulumi.Output[str]
    """Link of the check that decides who gets traffic."""
    service_account: pulumi.Output[str]
    """E-mail of the routers' service account."""
    routes: pulumi.Output[list[str]]
    """Links of all routes."""

    def __init__(self, name: str, args: MultinicRouterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        problems = Problems()
        settings = parsing.router(args, problems)
        routes.refuse_clashes(name, settings.fleet.networks, settings.routes, problems)
        problems.raise_if_any()
        super().__init__("multinic:index:MultinicRouter", name, {}, opts)
        # Before anything else, since what is looked up can be refused as well.
        fleet_settings = with_zones(settings.fleet, self)
        names = naming.prefix(name, fleet_settings.generation)
        project = fleet_settings.project or None
        child = pulumi.ResourceOptions(parent=self)
        self.zones = fleet_settings.zones or ()
        """Zones in which routers stand, also when they were looked up."""

        given = settings.access.service_account
        email = pulumi.Output.from_input(given) if given else access.declare_service_account(names, project, self)
        firewall = access.declare_firewall(names, fleet_settings, email, settings.access, self)

        # A group waits for its VMs to be healthy, and without the firewall no probe reaches them.
        after_firewall = pulumi.ResourceOptions(parent=self, depends_on=firewall)
        fleet = RouterFleet(naming.child(name, "fleet"), fleet_args(args, settings, self.zones, email), after_firewall)

        check_name, health = naming.child(names, "traffic"), fleet_settings.health
        traffic_check = checks.traffic_check(check_name, health, fleet_settings.region, project=project, opts=child)
        hops = [
            NextHop(
                naming.child(names, naming.nic(i)), hop_args(args, settings, i, fleet, traffic_check.self_link), child
            )
            for i in range(len(fleet_settings.networks))
        ]
        rules = [hop.forwarding_rule for hop in hops]
        made = routes.declare(names, fleet_settings.networks, rules, settings.routes, self)

        self.addresses = pulumi.Output.all(*(hop.address for hop in hops))
        self.next_hops = pulumi.Output.all(*rules)
        self.backend_services = pulumi.Output.all(*(hop.backend_service for hop in hops))
        self.groups = fleet.managers
        self.template = fleet.template
        self.heal_check = fleet.heal_check
        self.traffic_check = traffic_check.self_link
        self.service_account = email
        self.routes = pulumi.Output.all(*(route.self_link for route in made.values()))
        self.register_outputs(
            {
                "addresses": self.addresses,
                "next_hops": self.next_hops,
                "backend_services": self.backend_services,
                "groups": self.groups,
                "template": self.template,
                "heal_check": self.heal_check,
                "traffic_check": self.traffic_check,
                "service_account": self.service_account,
                "routes": self.routes,
            }
        )


def fleet_args(
    args: MultinicRouterArgs, settings: RouterSettings, in_zones: Sequence[str], email: pulumi.Input[str]
) -> RouterFleetArgs:
    """Returns the fleet's part of the inputs, with the zones resolved."""
    shape = {key: value for key, value in args.items() if key not in ("next_hop", "routes", "access", "zones")}
    own = {
        "zones": list(in_zones),
        "service_account": email,
        "scopes": list(settings.access.scopes),
        "draining_sec": settings.next_hop.draining_sec,
    }
    return cast(RouterFleetArgs, {**shape, **own})


def hop_args(
    args: MultinicRouterArgs, settings: RouterSettings, index: int, fleet: RouterFleet, check: pulumi.Input[str]
) -> NextHopArgs:
    """Returns the inputs of one network's load balancer; all get the same groups, check and policy."""
    network = settings.fleet.networks[index]
    hop = NextHopArgs(
        region=settings.fleet.region,
        network=network.network,
        subnetwork=network.subnetwork,
        groups={zone: manager.instance_group for zone, manager in fleet.managers_by_zone.items()},
        health_check=check,
        policy=args.get("next_hop", {}),
        labels=dict(settings.fleet.labels),
    )
    if network.address:
        hop["address"] = network.address
    if settings.fleet.project:
        hop["project"] = settings.fleet.project
    return hop

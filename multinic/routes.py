"""Routes: in every network, one for each range of each other network, with its own load balancer as next hop."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network

import pulumi
import pulumi_gcp as gcp

from multinic import naming
from multinic.settings import NetworkSettings, RoutesSettings


def claims(networks: Sequence[NetworkSettings]) -> list[tuple[int, IPv4Network]]:
    """Returns which network gets a route for which range, in order of network and range."""
    return [
        (i, cidr)
        for i in range(len(networks))
        for cidr in sorted(cidr for j, other in enumerate(networks) if j != i for cidr in other.cidrs)
    ]


def declare(
    name: str,
    networks: Sequence[NetworkSettings],
    next_hops: Sequence[pulumi.Input[str]],
    settings: RoutesSettings,
    parent: pulumi.Resource,
) -> Mapping[str, gcp.compute.Route]:
    """Declares the routes. Each lives in its network's project, which may be a Shared VPC host.

    Args:
        name: What their names begin with.
        networks: The networks, in the order of the NICs.
        next_hops: Link of the forwarding rule in each network.
        settings: Priority and tags.
        parent: The component they belong to.

    Returns:
        ``nic0-10-2-0-0-16`` → route.
    """
    if not settings.tags and any(cidr.prefixlen == 0 for _, cidr in claims(networks)):
        pulumi.log.warn(
            "a route for 0.0.0.0/0 without routes.tags applies to the routers as well and takes their own way to "
            "Google's APIs (logging); give routes.tags, and those tags to the VMs that shall use it",
            parent,
        )
    made = {}
    for i, cidr in claims(networks):
        key = f"{naming.nic(i)}-{naming.cidr_key(cidr)}"
        network = networks[i]
        made[key] = gcp.compute.Route(
            naming.child(name, "route", key),
            project=network.project or naming.project_of_link(network.network),
            network=network.network,
            dest_range=str(cidr),
            next_hop_ilb=next_hops[i],
            priority=settings.priority,
            tags=list(settings.tags) or None,
            opts=pulumi.ResourceOptions(parent=parent),
        )
    return made

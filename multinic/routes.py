"""Routes: in every network, one for each range of each other network, with its own load balancer as next hop."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from ipaddress import IPv4Network

import pulumi
import pulumi_gcp as gcp
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.settings import get_monitor

from multinic import naming
from multinic.problems import Problems
from multinic.settings import NetworkSettings, RoutesSettings

_Claims = dict[tuple[pulumi.Input[str], IPv4Network, int, str], str]
_CLAIMED: ContextVar[tuple[object, _Claims] | None] = ContextVar("claimed routes", default=None)
"""The run's monitor and network, range, priority, tag → router; in a context variable, as Pulumi's own settings."""


def claims(networks: Sequence[NetworkSettings]) -> list[tuple[int, IPv4Network]]:
    """Returns which network gets a route for which range, in order of network and range."""
    return [
        (i, cidr)
        for i in range(len(networks))
        for cidr in sorted(cidr for j, other in enumerate(networks) if j != i for cidr in other.cidrs)
    ]


def refuse_clashes(
    name: str, networks: Sequence[NetworkSettings], settings: RoutesSettings, problems: Problems
) -> None:
    """Notes each range that another router of this program leads to with the same priority in the same network.

    Google Cloud refuses such routes without tags, and where they share a tag it picks one of them for everybody.
    https://docs.cloud.google.com/load-balancing/docs/internal/ilb-next-hop-overview

    Args:
        name: The router's name.
        networks: Its networks. A link that is an Output is known again where the same Output is given.
        settings: Priority and tags.
        problems: Where clashes are noted.
    """
    # The host of the package sees one component at a time; tests that only set mocks share a run, and are no program.
    if pulumi.runtime.get_root_resource() is None or type(monitor := get_monitor()) is MockMonitor:
        return
    known = _CLAIMED.get()
    taken: _Claims = known[1] if known and known[0] is monitor else {}
    _CLAIMED.set((monitor, taken))
    for i, cidr in claims(networks):
        link = networks[i].network
        network = naming.partial(link) if isinstance(link, str) else link
        for tag in settings.tags or ("",):
            other = taken.setdefault((network, cidr, settings.priority, tag), name)
            if other != name:
                j, k = next(
                    (j, one.cidrs.index(cidr)) for j, one in enumerate(networks) if j != i and cidr in one.cidrs
                )
                problems.add(
                    f"networks[{j}].cidrs[{k}]",
                    f"router {other!r} of this program has a route for {cidr} with priority {settings.priority} in the "
                    f"network of networks[{i}] as well; give one of the two another routes.priority, or other ranges",
                    rule="route-clash",
                )


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

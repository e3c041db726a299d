"""Rules of networks, ranges, zones and routes. See `rules` for the columns."""

import re
from collections.abc import Iterable, Iterator
from ipaddress import AddressValueError, IPv4Address, IPv4Network

import pulumi

from multinic import naming, zones
from multinic.reading import UNREADABLE, shown
from multinic.settings import NetworkSettings, RouterSettings, nested_cidrs

_NEXT_HOP = "https://docs.cloud.google.com/load-balancing/docs/internal/ilb-next-hop-overview"
_ROUTES = "https://docs.cloud.google.com/vpc/docs/static-routes"
_NICS = "https://docs.cloud.google.com/vpc/docs/multiple-interfaces-concepts"
_SUBNETS = "https://docs.cloud.google.com/vpc/docs/subnets"
_RESERVED = [
    IPv4Network(text) for text in ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32")
]
"""240.0.0.0/4 is not among them: Google's list of valid IPv4 ranges has it."""
_GOOGLE_APIS = IPv4Network("199.36.153.4/30"), IPv4Network("199.36.153.8/30")
_SPECIAL = {
    IPv4Network("35.191.0.0/16"): "where health checks come from",
    IPv4Network("130.211.0.0/22"): "where health checks come from",
    IPv4Network("35.235.240.0/20"): "where Identity-Aware Proxy comes from",
    IPv4Network("35.199.192.0/19"): "where Cloud DNS forwards from",
}
"""Answers to these always take Google's own way. https://docs.cloud.google.com/vpc/docs/routes"""

_IN_PROJECT = r"(?:projects/[a-z0-9][-a-z0-9.:]{0,62}/)?"  # by id or by number

_REGION = "us-central1"
"""An example, where the region cannot be read."""

Findings = Iterable[tuple[str, ...]]


def _cidrs(settings: RouterSettings) -> Iterator[tuple[int, int, IPv4Network]]:
    for i, network in enumerate(settings.fleet.networks):
        for k, cidr in enumerate(network.cidrs):
            yield i, k, cidr


def _enough_networks(settings: RouterSettings) -> Findings:
    count = len(settings.fleet.networks)
    if not 2 <= count <= 8:
        yield "networks", f"a router joins two to eight networks, not {count}"


def _distinct_networks(settings: RouterSettings) -> Findings:
    for key in ("network", "subnetwork"):
        seen: dict[pulumi.Input[str], int] = {}
        for i, network in enumerate(settings.fleet.networks):
            link = getattr(network, key)
            same = naming.partial(link) if isinstance(link, str) else link
            if same and (first := seen.setdefault(same, i)) != i:
                yield f"networks[{i}].{key}", f"is the same as networks[{first}].{key}; each NIC needs its own"


def _has_cidrs(settings: RouterSettings) -> Findings:
    for i, network in enumerate(settings.fleet.networks):
        if not network.cidrs:
            yield f"networks[{i}].cidrs", "is empty; give the ranges that are reachable through this NIC"


def _routable(settings: RouterSettings) -> Findings:
    for i, k, cidr in _cidrs(settings):
        for reserved in _RESERVED:
            if cidr.subnet_of(reserved):
                yield f"networks[{i}].cidrs[{k}]", f"{cidr} lies in {reserved}, which no VPC network routes"
        # What contains them all is the default route, of which `routes` warns.
        for apis in _GOOGLE_APIS:
            if cidr.prefixlen > 0 and cidr.overlaps(apis):
                yield f"networks[{i}].cidrs[{k}]", f"{cidr} overlaps Google's own APIs, which no load balancer leads to"
        for special, why in _SPECIAL.items():
            if cidr.prefixlen > 0 and cidr.overlaps(special):
                yield f"networks[{i}].cidrs[{k}]", f"{cidr} overlaps {special}, {why}"


def _sources(settings: RouterSettings) -> Findings:
    for i, cidr in enumerate(settings.access.source_cidrs):
        for reserved in _RESERVED:
            if cidr.subnet_of(reserved):
                yield (
                    f"access.source_cidrs[{i}]",
                    f"{cidr} lies in {reserved}, from which no VPC network routes packets",
                )


def _once(settings: RouterSettings) -> Findings:
    seen: dict[IPv4Network, tuple[int, int]] = {}
    for i, k, cidr in _cidrs(settings):
        first = seen.setdefault(cidr, (i, k))
        if first != (i, k):
            where = f"networks[{first[0]}].cidrs[{first[1]}]"
            same = (
                "twice in this network" if first[0] == i else f"as {where} as well; it can be behind one network only"
            )
            yield f"networks[{i}].cidrs[{k}]", f"{cidr} is given {same}"


def _own_subnets(settings: RouterSettings) -> Findings:
    for i, k, cidr in _cidrs(settings):
        for j, other in enumerate(settings.fleet.networks):
            for m, subnet in enumerate(other.subnet_cidrs):
                if j != i and cidr.subnet_of(subnet):
                    yield (
                        f"networks[{i}].cidrs[{k}]",
                        f"{cidr} overlaps networks[{j}].subnet_cidrs[{m}] ({subnet}): a subnet's own route wins, "
                        "so that network could never be left towards it",
                    )


def _nested(settings: RouterSettings) -> Findings:
    if settings.routes.allow_nested_cidrs:
        return
    for i, wide, j, near in nested_cidrs(settings.fleet.networks):
        k = settings.fleet.networks[i].cidrs.index(wide)
        yield (
            f"networks[{i}].cidrs[{k}]",
            f"{wide} overlaps {near} of networks[{j}]: unused addresses in it would bounce between the networks; "
            "give narrower ranges, or set routes.allow_nested_cidrs and the routers drop what would go back",
            "routes.allow_nested_cidrs",
        )


def judge_subnet(path: str, subnet: IPv4Network) -> Findings:
    """Judges the range of a subnetwork; `RoutedNetworks` asks as well."""
    if not 8 <= subnet.prefixlen <= 29:
        yield path, f"{subnet}: a subnetwork is between /8 and /29"
    for reserved in _RESERVED:
        if subnet.overlaps(reserved):
            yield path, f"{subnet} overlaps {reserved}, where no subnetwork can be"


def _subnets_apart(settings: RouterSettings) -> Findings:
    seen: list[tuple[int, IPv4Network]] = []
    for i, network in enumerate(settings.fleet.networks):
        for m, subnet in enumerate(network.subnet_cidrs):
            path = f"networks[{i}].subnet_cidrs[{m}]"
            yield from judge_subnet(path, subnet)
            for j, taken in seen:
                if subnet.overlaps(taken) and taken != UNREADABLE:
                    yield path, f"{subnet} overlaps {taken} of networks[{j}]"
            seen.append((i, subnet))


def _address_fits(settings: RouterSettings) -> Findings:
    seen: dict[str, int] = {}
    for i, network in enumerate(settings.fleet.networks):
        if isinstance(network.address, str) and network.address:
            yield from _judge_address(settings, i, network.address)
            if (first := seen.setdefault(network.address, i)) != i:
                yield f"networks[{i}].address", f"{network.address} is the address of networks[{first}] as well"


def _judge_address(settings: RouterSettings, index: int, text: str) -> Findings:
    path, network = f"networks[{index}].address", settings.fleet.networks[index]
    if ":" in text and "/" not in text:
        yield path, f"{text} is IPv6; multinic routes IPv4 only"
        return
    try:
        address = IPv4Address(text)
    except AddressValueError:
        yield (
            path,
            f"{shown(text)} is not an IPv4 address; give the address itself, not the link or name of a reservation",
        )
        return
    for reserved in _RESERVED:
        if address in reserved:
            yield path, f"{text} lies in {reserved}, where no subnetwork can be"
    # What a route leads away from the network is in none of its subnets; nested ranges are judged elsewhere.
    if not settings.routes.allow_nested_cidrs and not any(address in own for own in network.cidrs):
        for j, k, cidr in _cidrs(settings):
            if address in cidr:
                message = f"{text} is behind networks[{j}], in its cidrs[{k}], {cidr}; give one of this network's own"
                yield path, message, "routes.allow_nested_cidrs", f"networks[{index}].cidrs"
    ranges = network.subnet_cidrs
    if ranges and not any(address in subnet for subnet in ranges):
        message = f"{text} is in none of the network's subnets ({', '.join(map(str, ranges))})"
        yield path, message, f"networks[{index}].subnet_cidrs"
    for subnet in ranges:
        if subnet.prefixlen <= 29 and address in (subnet[0], subnet[1], subnet[-2], subnet[-1]):
            yield path, f"{text} is one of the first and last two addresses of {subnet}, which Google Cloud keeps"


def _some_zone(settings: RouterSettings) -> Findings:
    if settings.fleet.zones == ():
        region = settings.fleet.region or _REGION
        yield "zones", f"is empty; give at least one zone such as {region}-b, or leave it out to use all of {region}"


def _zones_fit(settings: RouterSettings) -> Findings:
    region, given = settings.fleet.region, settings.fleet.zones or ()
    for i, zone in enumerate(given):
        if zone in given[:i]:
            yield f"zones[{i}]", f"{zone} is given twice"
        elif not zones.is_zone_of(zone, region):
            where = f" of region {region}, such as {region}-b" if region else f", such as {_REGION}-b"
            # What is no zone of any region is told beside a wrong region, too.
            rests_on = ["region"] if zones.is_zone(zone) else []
            yield f"zones[{i}]", f"{shown(zone)} is not an ordinary zone{where}", *rests_on


def _links(settings: RouterSettings) -> Findings:
    for i, network in enumerate(settings.fleet.networks):
        for key in ("network", "subnetwork"):
            link = getattr(network, key)
            if isinstance(link, str) and link:
                yield from judge_link(f"networks[{i}].{key}", link, key, settings.fleet.region)
        if isinstance(network.network, str) and is_link(network.network, "network"):
            yield from _project(f"networks[{i}]", network, network.network)


def judge_link(path: str, link: str, kind: str, region: str = "") -> Findings:
    """Judges the form of a network's or subnetwork's link; `NextHop` and `Endpoints` ask as well."""
    if not is_link(link, kind):
        said = "global" if kind == "network" else f"regions/{region or 'R'}"
        yield path, f"{shown(link)} is not a full link; give projects/P/{said}/{kind}s/N"


def is_link(link: str, kind: str) -> bool:
    """Whether this is a link of a network or subnetwork; it need not name the project."""
    place = "global" if kind == "network" else rf"regions/{zones.REGION}"
    form = rf"(?:projects/[a-z0-9][-a-z0-9.:]{{0,62}}/)?{place}/{kind}s/{naming.NAME}"
    return re.fullmatch(form, naming.partial(link)) is not None


def _project(path: str, network: NetworkSettings, link: str) -> Findings:
    """Judges which project's the network is: routes and firewall rules are made there."""
    own = naming.project_of(link)
    if own is None and not network.project:
        message = f"{shown(link)} does not say the project; give projects/P/global/networks/N"
        yield f"{path}.network", message, f"{path}.project"
    elif own and network.project and own != network.project:
        yield f"{path}.project", f"{network.project} is not the network's own project, {own}; leave it out"
    inside = naming.project_of(network.subnetwork) if isinstance(network.subnetwork, str) else None
    if own and inside and own != inside:
        yield f"{path}.subnetwork", f"is in project {inside}, its network in {own}"


def _subnet_region(settings: RouterSettings) -> Findings:
    for i, network in enumerate(settings.fleet.networks):
        link = network.subnetwork
        if isinstance(link, str) and "/regions/" in link and f"/regions/{settings.fleet.region}/" not in link:
            yield f"networks[{i}].subnetwork", f"{link} is not in region {settings.fleet.region}", "region"


NETWORK_RULES = (
    ("network-count", _NICS, "Two to eight networks.", _enough_networks),
    ("network-distinct", _NICS, "Each NIC is in a network and subnet of its own.", _distinct_networks),
    ("link-form", "Shared VPC: a name alone does not say the project", "Full links.", _links),
    ("subnet-region", _NICS, "Subnets are in the routers' region.", _subnet_region),
    ("cidr-some", _ROUTES, "Every network has a range.", _has_cidrs),
    ("cidr-routable", _ROUTES, "Ranges are ones that a VPC network routes.", _routable),
    ("source-cidrs", _ROUTES, "Ranges that packets come from.", _sources),
    ("cidr-once", _NEXT_HOP, "A range is behind one network, once.", _once),
    ("cidr-own-subnet", _ROUTES, "No route into or equal to an own subnet.", _own_subnets),
    ("cidr-nested", "packets bounce until their TTL ends", "No range contains another's.", _nested),
    ("subnet-apart", _SUBNETS, "Ranges that subnets can have, none overlapping.", _subnets_apart),
    ("address-fits", _NEXT_HOP, "The load balancer's address is in its subnet.", _address_fits),
    ("zone-some", "a fleet without zones routes nothing", "At least one zone.", _some_zone),
    (
        "zone-fits",
        "https://cloud.google.com/compute/docs/regions-zones",
        "Ordinary zones of the region, each once.",
        _zones_fit,
    ),
)

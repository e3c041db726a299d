"""Rules of networks, ranges, zones and routes. See `rules` for the columns."""

from collections.abc import Iterable, Iterator
from ipaddress import AddressValueError, IPv4Address, IPv4Network

from multinic import zones
from multinic.settings import NetworkSettings, RouterSettings, nested_cidrs

_NEXT_HOP = "https://docs.cloud.google.com/load-balancing/docs/internal/ilb-next-hop-overview"
_ROUTES = "https://docs.cloud.google.com/vpc/docs/static-routes"
_NICS = "https://docs.cloud.google.com/vpc/docs/multiple-interfaces-concepts"
_RESERVED = [IPv4Network(text) for text in ("127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4")]
_PROBES = [IPv4Network(text) for text in ("35.191.0.0/16", "130.211.0.0/22")]

Findings = Iterable[tuple[str, str]]


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
        seen: dict[str, int] = {}
        for i, network in enumerate(settings.fleet.networks):
            link = getattr(network, key)
            if isinstance(link, str) and seen.setdefault(link, i) != i:
                yield f"networks[{i}].{key}", f"is the same as networks[{seen[link]}].{key}; each NIC needs its own"


def _has_cidrs(settings: RouterSettings) -> Findings:
    for i, network in enumerate(settings.fleet.networks):
        if not network.cidrs:
            yield f"networks[{i}].cidrs", "is empty; give the ranges that are reachable through this NIC"


def _routable(settings: RouterSettings) -> Findings:
    for i, k, cidr in _cidrs(settings):
        for reserved in _RESERVED:
            if cidr.subnet_of(reserved):
                yield f"networks[{i}].cidrs[{k}]", f"{cidr} lies in {reserved}, which no VPC network routes"
        for probes in _PROBES:
            if cidr.prefixlen > 0 and cidr.overlaps(probes):
                yield f"networks[{i}].cidrs[{k}]", f"{cidr} overlaps {probes}, where health checks come from"


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
        )


def _subnets_apart(settings: RouterSettings) -> Findings:
    networks = settings.fleet.networks
    for i, one in enumerate(networks):
        for j, other in enumerate(networks[:i]):
            for m, subnet in enumerate(one.subnet_cidrs):
                for taken in other.subnet_cidrs:
                    if subnet.overlaps(taken):
                        yield f"networks[{i}].subnet_cidrs[{m}]", f"{subnet} overlaps {taken} of networks[{j}]"


def _address_fits(settings: RouterSettings) -> Findings:
    for i, network in enumerate(settings.fleet.networks):
        if isinstance(network.address, str) and network.address:
            yield from _judge_address(f"networks[{i}].address", network, network.address)


def _judge_address(path: str, network: NetworkSettings, text: str) -> Findings:
    if ":" in text:
        yield path, f"{text} is IPv6; multinic routes IPv4 only"
        return
    try:
        address = IPv4Address(text)
    except AddressValueError:
        yield path, f"{text!r} is not an IPv4 address; give the address itself, not the link or name of a reservation"
        return
    ranges = network.subnet_cidrs
    if ranges and not any(address in subnet for subnet in ranges):
        yield path, f"{text} is in none of the network's subnets ({', '.join(map(str, ranges))})"


def _some_zone(settings: RouterSettings) -> Findings:
    if settings.fleet.zones == ():
        region = settings.fleet.region
        yield "zones", f"is empty; give at least one zone such as {region}-b, or leave it out to use all of {region}"


def _zones_fit(settings: RouterSettings) -> Findings:
    region, given = settings.fleet.region, settings.fleet.zones or ()
    for i, zone in enumerate(given):
        if not zones.is_zone_of(zone, region):
            yield f"zones[{i}]", f"{zone!r} is not an ordinary zone of region {region}, such as {region}-b"
        elif zone in given[:i]:
            yield f"zones[{i}]", f"{zone} is given twice"


def _links(settings: RouterSettings) -> Findings:
    for i, network in enumerate(settings.fleet.networks):
        for key, form in (
            ("network", "projects/P/global/networks/N"),
            ("subnetwork", f"projects/P/regions/{settings.fleet.region}/subnetworks/N"),
        ):
            link = getattr(network, key)
            if isinstance(link, str) and f"/{key}s/" not in link:
                yield f"networks[{i}].{key}", f"{link!r} is not a full link; give {form}"


def _subnet_region(settings: RouterSettings) -> Findings:
    for i, network in enumerate(settings.fleet.networks):
        link = network.subnetwork
        if isinstance(link, str) and "/regions/" in link and f"/regions/{settings.fleet.region}/" not in link:
            yield f"networks[{i}].subnetwork", f"{link} is not in region {settings.fleet.region}"


NETWORK_RULES = (
    ("network-count", _NICS, "Two to eight networks.", ("networks",), _enough_networks),
    ("network-distinct", _NICS, "Each NIC is in a network and subnet of its own.", ("networks",), _distinct_networks),
    ("link-form", "Shared VPC: a name alone does not say the project", "Full links.", ("networks", "region"), _links),
    ("subnet-region", _NICS, "Subnets are in the routers' region.", ("networks", "region"), _subnet_region),
    ("cidr-some", _ROUTES, "Every network has a range.", ("networks",), _has_cidrs),
    ("cidr-routable", _ROUTES, "Ranges are ones that a VPC network routes.", ("networks",), _routable),
    ("cidr-once", _NEXT_HOP, "A range is behind one network, once.", ("networks",), _once),
    ("cidr-own-subnet", _ROUTES, "No route into or equal to an own subnet.", ("networks",), _own_subnets),
    (
        "cidr-nested",
        "packets bounce until their TTL ends",
        "No range contains another's.",
        ("networks", "routes"),
        _nested,
    ),
    ("subnet-apart", _NICS, "Subnets of a VM's NICs do not overlap.", ("networks",), _subnets_apart),
    ("address-fits", _NEXT_HOP, "The load balancer's address is in its subnet.", ("networks",), _address_fits),
    ("zone-some", "a fleet without zones routes nothing", "At least one zone.", ("zones", "region"), _some_zone),
    (
        "zone-fits",
        "https://cloud.google.com/compute/docs/regions-zones",
        "Ordinary zones of the region, each once.",
        ("zones", "region"),
        _zones_fit,
    ),
)

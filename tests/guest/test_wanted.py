"""The wanted state: each class of packets leaves by the right NIC, for every router that metadata can describe."""

from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model import Nic, Router, parse
from rule_model import Kernel
from trees import interface, tree
from wanted import OUTSIDE, OWN_RULE, Route, Rule, names, wanted

CHECKED = settings(deadline=None, max_examples=30)
"""No limit of time for an example: the machine may be busy."""

DEVICES = {index: f"ens{4 + index}" for index in range(8)}


@st.composite
def routers(draw: st.DrawFn, by_destination: bool | None = None) -> Router:
    """Routers as the component can make them: subnets apart, CIDRs of different networks unequal but perhaps nested."""
    if by_destination is None:
        by_destination = draw(st.booleans())
    count = draw(st.integers(2, 8)) if by_destination else 2
    claimed: set[IPv4Network] = {IPv4Network(f"10.{index}.0.0/16") for index in range(count)}
    nics = []
    for index in range(count):
        subnet = IPv4Network(f"10.{index}.{draw(st.integers(0, 15)) * 16}.0/{draw(st.integers(20, 28))}")
        base = int(subnet.network_address)
        hosts = st.integers(base + 3, base + subnet.num_addresses - 2).map(IPv4Network)
        outside = st.integers(0, 255).map(f"192.168.{index}.{{}}/32".format).map(IPv4Network)
        cidrs: list[IPv4Network] = []
        if by_destination:
            for _ in range(draw(st.integers(0, 4))):
                prefix = draw(st.sampled_from([0, 8, 12, 16, 24, 32]))
                cidr = IPv4Network((draw(st.integers(0, 2**32 - 1)) >> (32 - prefix) << (32 - prefix), prefix))
                if cidr not in claimed:
                    claimed.add(cidr)
                    cidrs.append(cidr)
        nics.append(
            Nic(
                number=index,
                mac=f"42:01:0a:{index:02x}:00:02",
                address=subnet[2],
                gateway=subnet[1],
                subnet=subnet,
                forwarded=tuple(sorted(draw(st.sets(hosts | outside, max_size=3)))),
                aliases=tuple(sorted(draw(st.sets(st.just(IPv4Network(f"10.{index}.255.0/24")), max_size=1)))),
                cidrs=tuple(sorted(cidrs)),
            )
        )
    return Router(tuple(nics), by_destination, draw(st.none() | st.integers(536, 8856)))


addresses = st.integers(0x01000000, 0xDFFFFFFF).map(IPv4Address)


def is_own(router: Router, address: IPv4Address) -> bool:
    return address.is_loopback or any(
        address == nic.address or any(address in network for network in nic.forwarded) for nic in router.nics
    )


@CHECKED
@given(routers(), addresses, addresses, st.data())
def test_transit_leaves_by_the_right_nic(
    router: Router, source: IPv4Address, destination: IPv4Address, data: st.DataObject
) -> None:
    kernel = Kernel(wanted(router, DEVICES))
    inside = [network for nic in router.nics for network in (*nic.cidrs, nic.subnet)]
    if data.draw(st.booleans()):
        network = data.draw(st.sampled_from(inside))
        destination = network[data.draw(st.integers(0, network.num_addresses - 1))]
    for nic in router.nics:
        out = kernel.lookup(str(source), str(destination), DEVICES[nic.number])
        if is_own(router, destination):
            assert out == "local"
            continue
        assert out != DEVICES[nic.number], "back out of the NIC that it came in by"
        if not router.by_destination:
            assert out == DEVICES[1 - nic.number]
            continue
        # Said once more in other words: the owner of the longest prefix, unless that is where it came from.
        owners = sorted(
            (n.prefixlen, held.number) for held in router.nics for n in (*held.cidrs, held.subnet) if destination in n
        )
        gateways = [held.number for held in router.nics if held.gateway == destination and held.number != nic.number]
        expected = gateways[0] if gateways else owners[-1][1] if owners else None
        assert out == ("drop" if expected in (None, nic.number) else DEVICES[expected])


@CHECKED
@given(routers(), addresses)
def test_replies_of_the_vm_leave_where_the_question_came_in(router: Router, asker: IPv4Address) -> None:
    """L1, L2: probes to NIC addresses and forwarded addresses; ICMP errors have the incoming NIC's address (M-9)."""
    kernel = Kernel(wanted(router, DEVICES))
    if is_own(router, asker) or asker == IPv4Address("169.254.169.254"):
        return
    for nic in router.nics:
        for own in (IPv4Network(nic.address), *nic.forwarded):
            address = str(own.network_address)
            for incoming in DEVICES.values():
                assert kernel.lookup(str(asker), address, incoming) == "local"
            assert kernel.lookup(address, str(asker), "lo") == DEVICES[nic.number]


@CHECKED
@given(routers())
def test_own_traffic_and_metadata_by_nic0(router: Router) -> None:
    kernel = Kernel(wanted(router, DEVICES))
    assert kernel.lookup("0.0.0.0", "142.250.0.1", "lo") == DEVICES[0]
    for nic in router.nics:
        assert kernel.lookup(str(nic.address), "169.254.169.254", "lo") == DEVICES[0]


@CHECKED
@given(routers())
def test_lookups_that_the_guest_tries_agree_with_the_model(router: Router) -> None:
    target = wanted(router, DEVICES)
    kernel = Kernel(target)
    assert target.lookups
    for lookup in target.lookups:
        assert kernel.lookup(lookup.source, lookup.destination, lookup.iif or "lo") == lookup.device


@CHECKED
@given(routers(), st.data())
def test_a_missing_nic_leaks_nothing_into_others(router: Router, data: st.DataObject) -> None:
    """U1, S7: while a NIC is absent, its packets are dropped or the port is closed, never sent back."""
    gone = data.draw(st.integers(1, len(router.nics) - 1))
    present = {number: name for number, name in DEVICES.items() if number != gone}
    kernel = Kernel(wanted(router, present))
    target = str(next(iter(router.nics[gone].subnet.hosts())))
    for nic in router.nics:
        if nic.number != gone:
            assert kernel.lookup(OUTSIDE, target, DEVICES[nic.number]) in (
                {"drop", "local"}
                | ({DEVICES[n] for n in present} - {DEVICES[nic.number]} if router.by_destination else set())
            )


def test_virtual_wire_of_two_nics() -> None:
    target = wanted(parse(tree()), DEVICES)
    assert Rule(1000, iif="ens4", table=1001) in target.rules
    assert Rule(1001, iif="ens5", table=1000) in target.rules
    assert Rule(OWN_RULE + 1, source="10.1.0.9", iif="lo", table=1001) in target.rules
    assert Route(1001, "default", "ens5", "10.1.0.1", source="10.1.0.2") in target.routes
    assert Route(255, "10.1.0.9", "ens5", kind="local") in target.routes


def test_gateway_has_a_link_route_before_the_default_uses_it() -> None:
    """M-3, G22: with /32 addresses a default route needs the gateway's link route in the same table, and before it."""
    routes = list(wanted(parse(tree(3)), DEVICES).routes)
    for position, route in enumerate(routes):
        if route.via:
            assert Route(route.table, route.via, route.device) in routes[:position]


@pytest.mark.parametrize("nics", [2, 3, 8])
def test_sysctls_per_nic_and_for_all(nics: int) -> None:
    """G21, U19: the stricter of `all` and the NIC's own filter is in force. G13, G26: IPv6 is untouched."""
    sysctls = dict(wanted(parse(tree(nics)), DEVICES).sysctls)
    for name in ["all", *(DEVICES[index] for index in range(nics))]:
        assert sysctls[f"net/ipv4/conf/{name}/rp_filter"] == "0"
    assert sysctls["net/ipv4/icmp_errors_use_inbound_ifaddr"] == "1"
    assert not [path for path in sysctls if "ipv6" in path]


def test_filter_keeps_no_state() -> None:
    """S9: no NAT and no connection tracking on the path."""
    for nics in (2, 3):
        text = wanted(parse(tree(nics)), DEVICES).nft
        assert 'iifname "ens5" oifname "ens5" counter name "same_nic" drop' in text
        assert not [word for word in ("ct ", "nat", "masquerade", "snat", "dnat") if f" {word}" in text]


def test_nested_ranges_of_two_networks() -> None:
    """0.0.0.0/0 behind nic0 and a part of it behind nic1: what would go back is dropped."""
    lists = '[{"cidrs": ["0.0.0.0/0"]}, {"cidrs": ["10.8.0.0/16"]}]'
    kernel = Kernel(wanted(parse(tree(attributes={"multinic-networks": lists})), DEVICES))
    assert kernel.lookup("10.0.0.10", "10.8.0.5", "ens4") == "ens5"
    assert kernel.lookup("10.8.0.5", "10.0.0.10", "ens5") == "ens4"
    assert kernel.lookup("10.8.0.5", "10.8.0.6", "ens5") == "drop"
    assert kernel.lookup("10.0.0.10", "142.250.0.1", "ens4") == "drop"


def test_names_for_people() -> None:
    assert names(parse(tree()))["rt_tables.d/multinic.conf"] == "1000 nic0\n1001 nic1\n"
    assert "1101 from-nic1\n" in names(parse(tree(3)))["rt_tables.d/multinic.conf"]


def test_same_metadata_same_state_whatever_the_order() -> None:
    one = tree(interfaces=[interface(0, forwardedIps=["10.0.0.8", "10.0.0.9"]), interface(1)])
    two = tree(interfaces=[interface(0, forwardedIps=["10.0.0.9", "10.0.0.8", "10.0.0.9"]), interface(1)])
    assert wanted(parse(one), DEVICES) == wanted(parse(two), DEVICES)

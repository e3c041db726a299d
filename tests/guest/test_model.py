"""Metadata → router: what Google's server answers in each situation, and what cannot be used."""

import json
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest
import verdict
from differences import describe
from hypothesis import given, settings
from hypothesis import strategies as st
from model import InvalidError, parse
from trees import interface, mac, tree
from wanted import Route, Rule, wanted


@pytest.mark.parametrize("nics", [2, 3, 8])
def test_nics_in_order_by_mac(nics: int) -> None:
    router = parse(tree(nics))
    assert [nic.mac for nic in router.nics] == [mac(index) for index in range(nics)]
    assert router.nics[1].address == IPv4Address("10.1.0.2")
    assert router.nics[1].subnet == IPv4Network("10.1.0.0/24")
    assert router.nics[1].mtu == 1460
    assert router.by_destination == (nics > 2)
    assert (router.instance, router.zone) == ("router-a-0001", "us-central1-a")


def test_forwarded_addresses_ranges_and_none() -> None:
    interfaces = [
        interface(0, forwardedIps=["10.0.0.9", "10.0.0.7/32", "10.0.0.64/28"], targetInstanceIps=["10.0.0.5"]),
        interface(1, forwardedIps=[], ipAliases=["10.9.0.0/24"]),
    ]
    router = parse(tree(interfaces=interfaces))
    assert list(map(str, router.nics[0].forwarded)) == ["10.0.0.5/32", "10.0.0.7/32", "10.0.0.9/32", "10.0.0.64/28"]
    assert router.nics[1].forwarded == ()
    assert router.nics[1].aliases == (IPv4Network("10.9.0.0/24"),)


def test_ipv6_is_left_alone() -> None:
    dual = interface(
        1,
        forwardedIps=["10.1.0.9", "2600:1900::9"],
        ipv6=["2600:1900::2"],
        gatewayIpv6="fe80::1",
        forwardedIpv6s=["2600::/96"],
    )
    assert parse(tree(interfaces=[interface(0), dual])) == parse(tree())


def test_lists_may_be_absent() -> None:
    bare = [interface(index) for index in range(2)]
    for held in bare:
        for key in ("forwardedIps", "ipAliases", "targetInstanceIps", "mtu"):
            del held[key]
    router = parse(tree(interfaces=bare))
    assert [(nic.forwarded, nic.mtu) for nic in router.nics] == [((), None)] * 2


def test_config_overrides_mtu_and_clamps() -> None:
    config = json.dumps({"version": 1, "clamp_mss": 1380, "networks": [{"mtu": 8896}, {"mtu": None}]})
    router = parse(tree(attributes={"multinic-config": config}))
    assert [nic.mtu for nic in router.nics] == [8896, 1460]
    assert router.clamp_mss == 1380


def test_class_e_is_a_range_as_any_other() -> None:
    """Google's list of valid ranges has 240.0.0.0/4, and Linux routes it."""
    held = interface(0, ip="240.0.0.2", gateway="240.0.0.1", forwardedIps=["240.0.0.9"])
    lists = json.dumps([{"cidrs": ["241.0.0.0/8"]}, {"cidrs": []}])
    router = parse(tree(interfaces=[held, interface(1)], attributes={"multinic-networks": lists}))
    assert router.nics[0].cidrs == (IPv4Network("241.0.0.0/8"),)
    elements = wanted(router, {0: "ens4", 1: "ens5"}).nft.partition("elements = {")[2].partition("}")[0]
    assert elements.split(", ")[-4:] == ["224.0.0.0/4", "240.0.0.0/24", "241.0.0.0/8", "255.255.255.255/32 "]


@pytest.mark.parametrize(("value", "drain"), [("true", True), ("TRUE", True), ("false", False), ("", False)])
def test_drain_request(value: str, drain: bool) -> None:
    assert parse(tree(attributes={"multinic-drain": value})).drain is drain
    assert parse(tree()).drain is False


def test_host_bits_are_cleared() -> None:
    """M-4: the kernel refuses a prefix with host bits set, and with it what comes behind it."""
    lists = json.dumps([{"cidrs": ["10.5.1.9/16"]}, {"cidrs": ["10.6.0.0/16"]}])
    assert parse(tree(attributes={"multinic-networks": lists})).nics[0].cidrs == (IPv4Network("10.5.0.0/16"),)


def _without(key: str) -> dict[str, Any]:
    second = interface(1)
    del second[key]
    return tree(interfaces=[interface(0), second])


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ({}, "instance"),
        ([], "metadata"),
        (tree(interfaces=[interface(0)]), "networkInterfaces"),
        (tree(interfaces=[interface(0), interface(0)]), "same mac"),
        (tree(interfaces=[interface(0), interface(1, mac="")]), "networkInterfaces[1].mac"),
        (_without("ip"), "networkInterfaces[1].ip"),
        (_without("gateway"), "networkInterfaces[1].gateway"),
        (_without("subnetmask"), "networkInterfaces[1].subnetmask"),
        (tree(interfaces=[interface(0), interface(1, mtu=10**6)]), "networkInterfaces[1].mtu"),
        (tree(interfaces=[interface(0), interface(1, forwardedIps=["x"])]), "networkInterfaces[1].forwardedIps"),
        (tree(interfaces=[interface(0), interface(1, forwardedIps=["0.0.0.0/0"])]), "too wide"),
        (tree(interfaces=[interface(0), interface(1, forwardedIps=["127.0.0.1"])]), "no address or range of a network"),
        (tree(interfaces=[interface(0), interface(1, ip="224.0.0.5")]), "networkInterfaces[1].ip"),
        (tree(interfaces=[interface(0), interface(1, subnetmask="0.0.0.0")]), "networkInterfaces[1].subnetmask"),
        (tree(attributes={"multinic-config": "{"}), "multinic-config"),
        (tree(attributes={"multinic-config": "[]"}), "multinic-config"),
        (tree(attributes={"multinic-config": '{"clamp_mss": -1}'}), "clamp_mss"),
        (tree(attributes={"multinic-networks": '[{"cidrs": []}]'}), "no entry for nic1"),
        (tree(3, attributes={"multinic-networks": ""}), "multinic-networks: needed"),
        (
            tree(attributes={"multinic-networks": '[{"cidrs": ["10.5.0.0/16"]}, {"cidrs": ["10.5.0.0/16"]}]'}),
            "nic0 and nic1",
        ),
        (
            tree(attributes={"multinic-networks": '[{"cidrs": ["10.1.0.0/24"]}, {"cidrs": []}]'}),
            "10.1.0.0/24 is behind nic0 and nic1",
        ),
        (tree(interfaces=[interface(0, forwardedIps=["10.1.0.9"]), interface(1)]), "10.1.0.9/32 is nic0's and nic1's"),
        (tree(interfaces=[interface(0), interface(1, forwardedIps=["10.0.0.2"])]), "10.0.0.2/32 is nic0's and nic1's"),
        (tree(interfaces=[interface(0), interface(1, gateway="10.77.0.1")]), "networkInterfaces[1].gateway"),
        (tree(interfaces=[interface(0), interface(1, gateway="10.1.0.2")]), "networkInterfaces[1].gateway"),
        (tree(interfaces=[interface(0), interface(1, forwardedIps=["10.1.0.1"])]), "holds nic1's gateway"),
        (tree(interfaces=[interface(0, forwardedIps=["10.1.0.1"]), interface(1)]), "holds nic1's gateway"),
        (tree(interfaces=[interface(0, ipAliases=["10.1.0.0/24"]), interface(1)]), "of nic1 is in 10.1.0.0/24 of nic0"),
        (tree(interfaces=[interface(0, ipAliases=["10.1.0.9/32"]), interface(1)]), "of nic1 is in 10.1.0.9/32 of nic0"),
        (
            tree(attributes={"multinic-networks": '[{"cidrs": ["10.1.0.1/32"]}, {"cidrs": []}]'}),
            "10.1.0.1/32 is behind nic0 and nic1",
        ),
    ],
)
def test_unusable_metadata_names_the_key(content: Any, names: str) -> None:
    with pytest.raises(InvalidError) as caught:
        parse(content)
    assert names in str(caught.value)


def test_a_huge_value_makes_no_huge_error() -> None:
    """A probe's answer shows it, in one write to a socket."""
    huge = "x" * 200_000
    for held in (interface(1, forwardedIps=[huge]), interface(1, mac=huge), interface(1, mtu=huge)):
        with pytest.raises(InvalidError) as caught:
            parse(tree(interfaces=[interface(0), held]))
        assert len(str(caught.value)) <= 500


JSON = st.recursive(
    # With surrogates, which JSON can hold and UTF-8 cannot.
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(content=JSON, data=st.data())
def test_fuzzed_metadata_is_understood_or_refused(content: Any, data: st.DataObject) -> None:
    """Nothing but `InvalidError` may come out, whatever stands in whichever place."""
    whole = tree(data.draw(st.sampled_from([2, 3])))
    place: Any = whole["instance"]
    path = data.draw(
        st.sampled_from(
            [("attributes",), ("networkInterfaces",), ("networkInterfaces", 1), ("name",), ("id",), ("zone",)]
            + [("networkInterfaces", 0, key) for key in interface(0)]
            + [("attributes", key) for key in ("multinic-config", "multinic-networks", "multinic-drain")]
        )
    )
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = content if path[0] != "attributes" or data.draw(st.booleans()) else json.dumps(content)
    try:
        router = parse(whole)
    except InvalidError as error:
        assert str(error)
        return
    target = wanted(router, {nic.number: f"ens{4 + nic.number}" for nic in router.nics})
    items: list[Route | Rule] = [*target.routes, *target.rules]
    assert all(describe(item) for item in items)
    json.dumps(verdict.judge({}, router, None)).encode()

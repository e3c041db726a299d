"""Others' rules, routes and filters beside ours: what breaks forwarding goes or is told, the rest stays."""

from typing import Any

import kernel
import pytest
import reconcile
from differences import Difference, differences
from foreign import takeovers
from links import LinkState, devices
from model import Router, parse
from program import run
from trees import mac, tree
from wanted import BASE_RULES, MAIN, Route, wanted
from wire import Wire

DEVICES = {0: "ens4", 1: "ens5"}
ROUTES = (
    Route(MAIN, "default", "ens4", "10.0.0.1"),
    Route(MAIN, "10.0.0.1", "ens4"),
    Route(200, "default", "ens4", "10.0.0.1"),
    Route(201, "10.1.0.0/24", "ens4", "10.0.0.1"),
    Route(202, "default", "ens5", "10.1.0.1"),
    Route(203, "default", kind="throw"),
    Route(204, "172.17.0.0/16", kind="unreachable"),
)
"""`main` as on a Google VM; and what tables of others may hold."""


def parsed(**raw: Any) -> Any:
    """A rule as `ip -json` prints it."""
    held = {"priority": 899, "src": "all", "protocol": "0", **raw}
    return [kernel._foreign(held)] if kernel._before_ours(held) else []


@pytest.mark.parametrize(
    ("raw", "taken"),
    [
        ({"table": "254"}, True),
        ({"table": "254", "iif": "ens4"}, True),
        ({"table": "254", "src": "10.0.0.0", "srclen": 24}, True),
        ({"table": "200", "src": "10.0.0.0", "srclen": 24}, True),
        ({"table": "254", "dst": "35.191.0.0", "dstlen": 16}, True),
        ({"table": "254", "src": "10.1.0.9"}, True),
        ({"table": "254", "ipproto": "ipproto-6", "dport": 9001}, True),
        ({"table": "254", "tos": "0x10"}, True),
        ({"table": "254", "fwmark": "0", "fwmask": "0x10"}, True),
        ({"table": "200", "not": None, "fwmark": "0xca6c"}, True),
        ({"table": "201", "suppress_prefixlen": 0}, True),
        ({"table": "204"}, True),
        ({"action": "6", "dst": "172.17.0.0", "dstlen": 16, "iif": "ens4"}, True),
        ({"goto": 32766, "iif": "ens5"}, True),
        ({"goto": 1100, "iif": "ens5"}, True),
        ({"action": "6", "not": None, "src": "172.17.0.0", "srclen": 16, "oif": "lo"}, True),
        # What these lead to is where we lead it, nowhere, or not ours to lead.
        ({"table": "254", "src": "10.0.0.2"}, False),
        ({"table": "202", "iif": "ens4"}, False),
        ({"table": "203"}, False),
        ({"table": "205"}, False),
        ({"table": "254", "suppress_prefixlen": 0}, False),
        ({"table": "254", "fwmark": "0x7"}, False),
        ({"table": "254", "oif": "ens4"}, False),
        ({"table": "254", "iif": "docker0"}, False),
        ({"table": "254", "dst": "169.254.169.254"}, False),
        ({"table": "255"}, False),
        ({"nop": None}, False),
        ({"goto": 950, "iif": "ens5"}, False),
        ({"table": "254", "priority": 5000}, False),
        ({"table": "254", "protocol": "213"}, False),
    ],
    ids=str,
)
def test_which_rules_before_ours_take_our_packets(raw: dict[str, Any], taken: bool) -> None:
    """Kind 1: a rule without a priority comes before all of ours; most are harmless and stay."""
    found = takeovers(tuple(parsed(**raw)), ROUTES, parse(tree()), DEVICES)
    assert bool(found) == taken


def test_with_three_networks_each_pair_is_tried() -> None:
    lists = tuple(Route(201, f"172.{16 + n}.0.0/16", "ens6", "10.2.0.1") for n in range(3))
    found = takeovers(tuple(parsed(table="201")), lists, parse(tree(3)), {0: "ens4", 1: "ens5", 2: "ens6"})
    assert [packet.device for _, packet in found] != ["ens6"]
    assert len(found) == 1


def test_only_that_rule_is_deleted() -> None:
    (rule,) = parsed(table="200", src="10.0.0.0", srclen=24, dst="10.1.0.7", iif="ens4", protocol="3")
    assert rule.selector == "pref 899 from 10.0.0.0/24 to 10.1.0.7/32 iif ens4 protocol 3 lookup 200"


def observed(router: Router, **changes: Any) -> kernel.Observed:
    """A kernel that holds all that is wanted."""
    target = wanted(router, DEVICES)
    return kernel.Observed(
        links={
            link.device: LinkState(link.device, 1, (), "", True, True, link.mtu or 0, frozenset([link.address]))
            for link in target.links
        },
        routes=tuple((route, 213) for route in target.routes),
        rules=(*((rule, 213) for rule in target.rules), *((rule, 2) for rule in BASE_RULES)),
        foreign=(),
        lookups={(look.destination, look.source, look.iif): look.device for look in target.lookups},
        sysctls=dict(target.sysctls),
        filter=None,
    )._replace(**changes)


def test_a_nic_with_another_mac_gets_its_own_back() -> None:
    """Kind 2: found by its permanent address, it sends with one that the network takes nothing from."""
    router = parse(tree())
    whole = observed(router)
    other = whole.links["ens5"]._replace(macs=("02:00:00:00:00:99", mac(1)))
    assert devices({1: mac(1)}, {"ens5": other}) == {1: "ens5"}
    seen = whole._replace(links={**whole.links, "ens5": other})
    (found,) = differences(wanted(router, DEVICES), seen)
    assert (found.reason, found.commands) == ("mac-wrong", (f"link set dev ens5 address {mac(1)}",))


def test_others_texts_may_hold_anything() -> None:
    """Kind 17: an alias in Latin-1, with a control character, or as iproute2 5.9 writes an apostrophe."""
    assert run(["printf", r"caf\351"])[1] == "caf\N{REPLACEMENT CHARACTER}"
    # A backslash in front of an apostrophe that is one of two stands for itself.
    printed = r"""[{"ifalias":"bob\'s \"link\" \\' """ + "\x01" + '"}]'
    assert kernel._documents(printed) == [[{"ifalias": "bob's \"link\" \\' \x01"}]]


def test_lookups_have_the_last_word() -> None:
    """Kind 2: all of ours is there, and the kernel decides otherwise: that is told, whatever the reason."""
    router = parse(tree())
    target = wanted(router, DEVICES)
    assert differences(target, observed(router)) == []
    reasons = {held.reason for held in differences(target, observed(router, lookups={}))}
    assert reasons == {"lookup-wrong"}


def test_a_filter_that_cannot_be_loaded_closes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kind 17: an nft that is too old, or a kernel without its modules. Routing needs no filter."""
    router = parse(tree())
    missing = Difference("filter-missing", "x")
    seen = observed(router, unloaded="nft: Operation not supported")
    monkeypatch.setattr(reconcile, "_look", lambda *_, **__: (wanted(router, DEVICES), [missing], seen))
    monkeypatch.setattr(reconcile, "_write_names", lambda _: None)
    outcome = reconcile.reconcile(router)
    assert (outcome.found, outcome.left) == ((), ())
    assert outcome.warnings == ("filter-unavailable: nft: Operation not supported",)


BREAKING = [
    "route append default via 10.0.0.1 dev ens4 table 1001",
    "route add default via 10.0.0.1 dev ens4 table 1001 metric 500",
    "route change default via 10.0.0.1 dev ens4 src 10.0.0.2 proto 213 table 1000 mtu 576",
    "route add 172.17.1.0/24 tos 0x10 via 10.0.0.1 dev ens4 table 1001 onlink",
    "route add 172.17.2.0/24 table 1001 nexthop via 10.0.0.1 dev ens4 onlink nexthop via 10.1.0.1 dev ens5 onlink",
    "route add 172.17.3.0/24 encap ip id 5 dst 10.1.0.10 dev ens5 table 1001",
    "route change default encap ip id 5 dst 10.0.0.10 via 10.0.0.1 dev ens4 src 10.0.0.2 proto 213 table 1000",
    "nexthop add id 7 via 10.1.0.10 dev ens5 onlink",
    "route add 172.17.4.0/24 nhid 7 table 1001",
    "route add throw 172.17.5.0/24 table 1001",
    "route add unreachable 172.17.6.0/24 table 1001 metric 7",
    "route add blackhole 172.17.0.0/16 table local",
    "route add local 10.1.0.10 dev lo table local",
    "route add broadcast 10.0.0.10 dev ens4 table local",
    "route add 172.17.7.0/24 tos 0x10 dev ens4 table 1001",
    "route add 10.1.0.0/24 via 10.0.0.1 dev ens4 table 200",
    "rule add from 10.0.0.0/24 lookup 200",
    "rule add to 35.191.0.0/16 lookup main",
    "rule add iif ens4 to 172.17.0.0/16 blackhole",
    "rule add not fwmark 7 lookup 200",
    "rule add pref 0 iif ens4 lookup 200",
    "rule add pref 0 from 172.16.0.0/16 blackhole",
    "rule add lookup 200 suppress_prefixlength 0",
]
HARMLESS = {
    "rule add fwmark 7 lookup main": "fwmark 0x7 lookup main",
    "rule add lookup main suppress_prefixlength 0": "lookup main suppress_prefixlength 0",
    "route add 203.0.113.0/24 via 10.0.0.1 dev ens4 table 77 proto 66": "203.0.113.0/24 via 10.0.0.1",
    "route add default via 10.1.0.1 dev ens5 metric 50 onlink": "default via 10.1.0.1 dev ens5 metric 50",
}
"""Command → what still shows afterwards."""

FILTER = "add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }; "
DOCKER = 'add rule ip filter FORWARD oifname "docker0" ct state established accept'
OWN = "add rule ip filter FORWARD ip saddr 10.0.0.0/8 accept"
REJECT = """
add rule ip filter FORWARD counter reject with icmp type host-prohibited
add chain ip filter INPUT { type filter hook input priority 0; policy accept; }
add rule ip filter INPUT ct state related,established accept
"""


@pytest.mark.root
def test_beside_others(repaired_router: Wire) -> None:
    """Kind 1, U4, G8: agents' rules and routes, all at once; then a NIC made a port of a bridge, a table flushed."""
    router = repaired_router

    def whole() -> bool:
        pings = (router.ping(0, "10.1.0.10"), router.ping(1, "172.16.0.10", source="172.17.0.10"))
        return all(pings) and router.routing("verify").returncode == 0

    for command in (*HARMLESS, *BREAKING):
        router.ip("r", command)
    router.wait_for(lambda: whole() and all(router.probe(n, f"10.{n}.0.9")[0] == 200 for n in (0, 1)), "as wanted")
    state = router.state()
    assert not [text for text in HARMLESS.values() if text not in state]
    assert "lookup 200" not in state

    for command in ("link add br0 type bridge", "link set ens5 master br0", "link set ens4 arp off"):
        router.ip("r", command)
    router.wait_for(whole, "NICs are free")
    router.ip("r", "route flush table local")
    router.wait_for(whole, "the NICs' own addresses are delivered again")
    assert router.routing("stop").returncode == 0
    assert "local 10.0.0.2" in router.ip("r", "route show table local"), "else the VM is cut off"
    assert router.routing("start").returncode == 0
    assert router.probe(0, "10.0.0.2", 9000)[0] == 200

    # No packet that comes back corrects these, whichever way they were fixed.
    for neighbour in ("10.1.0.1 lladdr 02:00:00:00:00:99 dev ens5 nud permanent", "10.0.0.1 dev ens4 nud noarp"):
        router.ip("r", f"neigh replace {neighbour}")
        router.wait_for(whole, "the gateway is asked for again")

    # Docker's filter lets nothing pass between NICs: nothing that we may repair, and no new VM would be better.
    router.run("r", "nft", FILTER + DOCKER)
    router.wait_for(lambda: router.reasons() == {"forward-filtered"}, "closed")
    assert not router.ping(0, "10.1.0.10")
    assert router.verdict()["failed_repairs"] == 0
    router.run("r", "nft", OWN)
    router.wait_for(lambda: router.probe(1, "10.1.0.9")[0] == 200, "open: that may be meant so")
    assert router.verdict()["warnings"] == ["forward-filter: table ip filter drops what it does not accept"]
    router.run("r", "nft", "delete table ip filter")
    router.wait_for(lambda: router.verdict()["warnings"] == [])

    # As Red Hat's iptables-services sets it up: the policy accepts, and the last rule takes everything.
    router.run("r", "nft", FILTER.replace("drop", "accept") + REJECT)
    router.wait_for(lambda: router.reasons() == {"forward-filtered"}, "closed by a rule")
    assert not router.ping(0, "10.1.0.10")
    router.run("r", "nft", "delete table ip filter")
    router.wait_for(lambda: router.probe(1, "10.1.0.9")[0] == 200, "open again")

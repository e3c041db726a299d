"""A whole two-NIC router in network namespaces: it comes up, answers probes where they come in, and repairs itself."""

import json
import subprocess
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trees import mac
from wire import GUEST, PYTHON, Wire, wire

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def still_router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """A router that nothing watches: what is broken stays broken until `start`."""
    with wire(tmp_path_factory.mktemp("still")) as made:
        made.serve_metadata()
        assert made.routing("start").returncode == 0
        yield made


def test_probes_are_answered_on_the_nic_they_come_in_by(router: Wire) -> None:
    """L1, L2, L3, kind 4: the same prober in both networks, the NIC's address and the rule's address, both ports."""
    for network in (0, 1):
        for address in (f"10.{network}.0.2", f"10.{network}.0.9"):
            for port in (9000, 9001):
                assert router.probe(network, address, port)[0] == 200, (network, address, port)


def test_transit_both_ways(router: Wire) -> None:
    for network in (0, 1):
        other = 1 - network
        assert router.ping(network, f"10.{other}.0.10")
        assert router.ping(network, f"172.{16 + other}.0.10", source=f"172.{16 + network}.0.10")


def test_start_twice_changes_nothing(router: Wire) -> None:
    """Idempotent: no rule twice (M-5), no route made anew."""
    before = router.state()
    done = router.routing("start")
    assert done.returncode == 0
    assert "changes=0" in done.stderr
    assert router.state() == before


def test_stop_takes_all_away_and_start_brings_it_back(router: Wire) -> None:
    """M-7, G19: tables that are empty, or were never filled, are no error."""
    before = router.state()
    assert router.routing("stop").returncode == 0
    assert "213" not in router.ip("r", "rule show") + router.ip("r", "route show table all")
    assert router.run("r", "nft", "list", "tables").stdout == ""
    assert router.verdict()["state"] == "stopped"
    assert router.routing("stop").returncode == 0
    assert router.routing("start").returncode == 0
    router.wait_for(lambda: router.state() == before)


WIPES = [
    ("M-1 U4 G12", "addr del 10.1.0.2/32 dev ens5"),
    ("M-1 U4", "addr flush dev ens4"),
    ("M-2 U2", "link set ens5 down"),
    ("M-2 U2", "link set ens4 down"),
    ("U2", "route flush table 1000"),
    ("U2", "route flush table 1001"),
    ("G3", "rule flush"),
    ("G3", "rule del pref 1001"),
    ("G3 base", "rule del pref 0"),
    ("G3 base", "rule del pref 32766"),
    ("G1 G2 G13", "route del local 10.1.0.9 dev ens5 table local"),
    ("G1 G2 G13", "route del local 10.0.0.9 dev ens4 table local"),
    ("G29", "link set ens5 mtu 1400"),
    ("gateway", "route del 10.1.0.1 dev ens5 table 1001"),
]


def quick(values: Iterable[Any], few: Container[Any]) -> list[Any]:
    """Parameters of a test of which only a few are tried in the quick run; `make test-all` tries all."""
    return [pytest.param(*value, marks=() if value[-1] in few else pytest.mark.slow, id=value[-1]) for value in values]


QUICK_WIPES = {
    "addr del 10.1.0.2/32 dev ens5",
    "link set ens4 down",
    "route flush table 1001",
    "rule flush",
    "rule del pref 0",
    "route del local 10.1.0.9 dev ens5 table local",
}


@pytest.mark.parametrize(("case", "command"), quick(WIPES, QUICK_WIPES))
def test_what_others_take_away_comes_back(repaired_router: Wire, case: str, command: str) -> None:
    """Kind 1, M-1, M-2: another program wipes addresses, links, tables, rules or local routes."""
    router = repaired_router
    before = [line for line in router.state().splitlines() if "fe80" not in line and "state" not in line]
    ours = [line for line in before if "213" in line or "lookup" in line or "10.1.0.2/32" in line]
    router.ip("r", command)
    # nic0's route in main is the image's own affair; forwarding and probes do not need it.
    router.wait_for(lambda: all(line in router.state() for line in ours), f"{case}: repaired")
    router.wait_for(lambda: router.ping(0, "10.1.0.10") and router.ping(1, "10.0.0.10"), f"{case}: forwards")
    router.wait_for(lambda: all(router.probe(n, f"10.{n}.0.9")[0] == 200 for n in (0, 1)), f"{case}: traffic open")
    assert router.probe(0, "10.0.0.2", 9000)[0] == 200, "repaired, so not healed (U24)"


SETTINGS = {
    "net.ipv4.ip_forward": "0",
    "net.ipv4.conf.ens5.rp_filter": "1",
    "net.ipv4.conf.all.rp_filter": "1",
    "net.ipv4.conf.ens4.forwarding": "0",
    "net.ipv4.icmp_errors_use_inbound_ifaddr": "0",
    "net.ipv4.conf.ens4.send_redirects": "1",
    "net.ipv4.conf.all.arp_ignore": "8",
    "net.ipv4.conf.ens5.arp_filter": "1",
    "net.ipv4.conf.ens5.accept_local": "0",
}


def test_sysctls_come_back(repaired_router: Wire) -> None:
    """Kind 14, U19, G21: also per NIC, and those that send no event."""
    router = repaired_router
    router.run("r", "sysctl", "-qw", *(f"{name}={value}" for name, value in SETTINGS.items()))
    names = list(SETTINGS)
    router.wait_for(
        lambda: router.run("r", "sysctl", "-n", *names).stdout.split() == ["1", "0", "0", "1", "1", "0", "0", "0", "1"],
        "all",
    )


FAULTS = {
    "sysctl-wrong": ["sysctl", "-qw", "net.ipv4.ip_forward=0"],
    "rule-missing": ["ip", "rule", "del", "pref", "1000"],
    "route-missing": ["ip", "route", "flush", "table", "1001"],
    "local-route-missing": ["ip", "route", "del", "local", "10.1.0.9", "dev", "ens5", "table", "local"],
    "address-missing": ["ip", "addr", "del", "10.1.0.2/32", "dev", "ens5"],
    "link-down": ["ip", "link", "set", "ens5", "down"],
    "mtu-wrong": ["ip", "link", "set", "ens5", "mtu", "1400"],
    "filter-missing": ["nft", "delete", "table", "ip", "multinic"],
    "base-rule-missing": ["ip", "rule", "del", "pref", "32767"],
    "rule-unwanted": ["ip", "rule", "add", "pref", "1050", "iif", "ens4", "lookup", "1000", "protocol", "213"],
    "route-unwanted": ["ip", "route", "add", "203.0.113.0/24", "dev", "ens4", "table", "1001"],
    "foreign-rule": ["ip", "rule", "add", "pref", "500", "iif", "ens4", "lookup", "main"],
}


QUICK_FAULTS = {"sysctl-wrong", "rule-missing", "route-missing", "mtu-wrong", "foreign-rule"}


@pytest.mark.parametrize("reason", quick([(reason,) for reason in FAULTS], QUICK_FAULTS))
def test_verify_tells_each_fault_and_start_repairs_it(still_router: Wire, reason: str) -> None:
    """U3, G7: verify looks at the kernel only, and fails on anything that forwarding needs."""
    wire = still_router
    assert wire.routing("start").returncode == 0
    assert wire.routing("verify").returncode == 0
    wire.run("r", *FAULTS[reason])
    found = wire.routing("verify")
    assert found.returncode == 1
    assert reason in {held["name"] for held in json.loads(found.stdout)["reasons"]}
    assert wire.routing("start").returncode == 0
    assert wire.routing("verify").returncode == 0


def test_what_cannot_be_repaired_closes_traffic_and_reopens(make_wire: Callable[..., Wire]) -> None:
    """U3, S12: a rule that somebody puts before ours, again and again, or a NIC that is gone."""
    wire = make_wire()
    wire.serve_metadata()
    wire.start("policy-routing watch", "hc-traffic", "hc-health")
    wire.wait_for(lambda: wire.probe(0, "10.0.0.9")[0] == 200)
    wire.ip("1", "link del up1")
    wire.wait_for(lambda: "nic-missing" in wire.reasons(), "closed")
    assert wire.probe(0, "10.0.0.2", 9000)[0] == 200, "healing waits until repair has failed for a while"
    wire.plug(1)
    wire.wait_for(lambda: wire.probe(1, "10.1.0.9")[0] == 200, "reopened")


def test_a_nic_that_comes_late(make_wire: Callable[..., Wire]) -> None:
    """U1, S7, M-6, G12: the port stays closed without nic1, then opens by itself."""
    wire = make_wire(late=(1,))
    wire.serve_metadata()
    wire.start("policy-routing watch", "hc-traffic", "hc-health")
    wire.wait_for(lambda: wire.reasons() == {"nic-missing"}, "closed with the reason")
    assert wire.probe(0, "10.0.0.2", 9000)[0] == 503, "not healthy before the first good verdict"
    assert wire.routing("verify").returncode == 1
    wire.plug(1)
    wire.wait_for(lambda: wire.probe(1, "10.1.0.9")[0] == 200, "open")
    assert wire.probe(0, "10.0.0.2", 9000)[0] == 200
    assert wire.ping(0, "10.1.0.10")


def test_start_gives_up_without_the_nic(make_wire: Callable[..., Wire]) -> None:
    """S7: the unit fails; it does not end well with an empty NIC name."""
    wire = make_wire(late=(1,))
    wire.serve_metadata()
    lines = [
        "import sys",
        "sys.path.insert(0, sys.argv[1])",
        "import routing",
        "routing.START_WAIT = 0.5",
        "sys.exit(routing.start())",
    ]
    limit = "\n".join(lines)
    done = wire.run("r", PYTHON, "-ISc", limit, str(GUEST / "lib"), check=False)
    assert done.returncode == 1
    assert "nic-missing" in done.stderr
    assert wire.verdict()["ok"] is False


def test_a_renamed_nic_is_found_by_its_mac(router: Wire) -> None:
    """G6, G27: names change; rules that name the old one are replaced."""
    router.ip("r", "link set ens5 down")
    router.ip("r", "link set ens5 name eth1")
    router.wait_for(
        lambda: "iif eth1 lookup" in router.ip("r", "rule show") and "ens5" not in router.ip("r", "rule show")
    )
    router.wait_for(lambda: router.ping(0, "10.1.0.10"))
    router.wait_for(lambda: router.probe(1, "10.1.0.9")[0] == 200)


def test_a_bridge_that_borrows_the_mac_is_not_taken_for_the_nic(make_wire: Callable[..., Wire]) -> None:
    wire = make_wire(late=(1,))
    wire.serve_metadata()
    wire.ip("r", f"link add br0 address {mac(1)} type bridge")
    assert "nic-missing" in wire.routing("verify").stdout
    wire.plug(1)
    assert wire.routing("start").returncode == 0
    assert "dev br0" not in wire.state()


def test_a_changed_main_table_does_not_matter(router: Wire) -> None:
    """G8, G15: the agent takes over nic0's default route; gateways come from the metadata."""
    router.ip("r", "route flush table main")
    assert router.ping(0, "10.1.0.10")
    assert router.ping(1, "10.0.0.10")
    assert router.probe(1, "10.1.0.9")[0] == 200
    assert router.routing("verify").returncode == 0, "the metadata server is still reached"


def test_others_rules_and_routes_are_left_alone_unless_they_break_ours(router: Wire) -> None:
    router.ip("r", "rule add pref 5000 fwmark 7 lookup 77")
    router.ip("r", "route add 203.0.113.0/24 via 10.0.0.1 dev ens4 proto 66")
    router.ip("r", "rule add pref 500 iif ens4 lookup main")
    router.wait_for(
        lambda: "500:" not in router.ip("r", "rule show").split(), "the one that steals our packets is gone"
    )
    assert router.routing("verify").returncode == 0
    assert "fwmark 0x7 lookup 77" in router.ip("r", "rule show")
    assert "203.0.113.0/24" in router.ip("r", "route show")


def test_two_at_once_are_excluded_by_a_lock(make_wire: Callable[..., Wire]) -> None:
    wire = make_wire()
    wire.serve_metadata()
    lock = Path(wire.environment["RUNTIME_DIRECTORY"]) / "lock"
    lock.parent.mkdir()
    with subprocess.Popen(["flock", str(lock), "cat"], stdin=subprocess.PIPE) as holder:
        wire.wait_for(lambda: subprocess.run(["flock", "-n", str(lock), "true"], check=False).returncode == 1, "held")
        wire.start("policy-routing start")
        starter = wire.processes[-1]
        wire.wait_for(lambda: (lock.parent / "metadata.json").exists(), "it has got as far as the lock")
        with pytest.raises(subprocess.TimeoutExpired):
            starter.wait(1.0)
        assert "213" not in wire.ip("r", "rule show")
        assert holder.stdin is not None
        holder.stdin.close()
        assert starter.wait(60) == 0
    assert "213" in wire.ip("r", "rule show")


def test_a_silent_client_holds_up_nobody(router: Wire) -> None:
    """Nothing that a packet from outside can cause closes the port."""
    hold = (
        "import socket, time\n"
        "held = [socket.create_connection(('10.0.0.9', 9001)) for _ in range(300)]\n"
        "[s.send(b'GET ') for s in held[::2]]\n"
        "print('held', flush=True); time.sleep(60)"
    )
    router.spawn("0", PYTHON, "-ISc", hold)
    log = router.folder / f"{len(router.processes) - 1}.log"
    router.wait_for(lambda: "held" in log.read_text())
    assert router.probe(0, "10.0.0.9")[0] == 200

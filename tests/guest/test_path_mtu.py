"""Kind 3: "fragmentation needed" reaches the sender on either side, and a clamp works both ways."""

import json
from collections.abc import Callable

import pytest
from trees import interface, tree
from wire import Wire

pytestmark = pytest.mark.root


FOUR_WAYS = pytest.mark.parametrize(
    ("narrow", "sender"),
    [(0, 1), pytest.param(1, 1, marks=pytest.mark.slow), pytest.param(0, 0, marks=pytest.mark.slow), (1, 0)],
)


def uneven(make_wire: Callable[..., Wire], narrow: int, clamp: int | None = None) -> Wire:
    """One network with 1460, the other with 3000; hosts send large segments one by one, as wires carry them."""
    mtus = {narrow: 1460, 1 - narrow: 3000}
    wire = make_wire(mtus=mtus)
    config = {"clamp_mss": clamp, "networks": [{"mtu": None}, {"mtu": None}]}
    interfaces = [interface(index, mtu=mtus[index]) for index in range(2)]
    wire.serve_metadata(tree(interfaces=interfaces, attributes={"multinic-config": json.dumps(config)}))
    assert wire.routing("start").returncode == 0
    for network in (0, 1):
        # A veth passes large offloaded segments whatever the MTU says.
        wire.run(str(network), "ethtool", "-K", f"up{network}", "tso", "off", "gso", "off", "gro", "off")
        wire.run("r", "ethtool", "-K", wire.nic(network), "tso", "off", "gso", "off", "gro", "off")
        wire.serve_packets(network)
    return wire


@pytest.mark.parametrize("narrow", [0, 1])
def test_dont_fragment_datagrams_learn_the_path_mtu(make_wire: Callable[..., Wire], narrow: int) -> None:
    """M-9: with nic0 narrow the sender is behind nic1, whose errors the main table would send into nic0's network."""
    wire = uneven(make_wire, narrow)
    sender = 1 - narrow
    learned = wire.packets(sender, "udp", f"10.{narrow}.0.10", 2500, 20)
    assert learned.stdout.strip() == "1460"
    assert wire.packets(sender, "udp", f"10.{narrow}.0.10", 1200, 20).stdout.strip() == "echoed"


@pytest.mark.slow
def test_without_the_sysctl_the_error_goes_astray(make_wire: Callable[..., Wire]) -> None:
    """M-8: shows that the test above can fail, and why the sysctl is always set."""
    wire = uneven(make_wire, narrow=0)
    wire.run("r", "sysctl", "-qw", "net.ipv4.icmp_errors_use_inbound_ifaddr=0")
    # The network that it is sent into may send it back to the router, which takes it only because of this one.
    wire.run("r", "sysctl", "-qw", "net.ipv4.conf.ens4.accept_local=0")
    assert wire.packets(1, "udp", "10.0.0.10", 2500, 2).returncode == 1


@FOUR_WAYS
def test_tcp_gets_through_from_either_side(make_wire: Callable[..., Wire], narrow: int, sender: int) -> None:
    wire = uneven(make_wire, narrow)
    # Hosts think that the whole path is wide, as containers behind a VM's NIC do.
    wire.ip(str(narrow), f"route replace 10.{1 - narrow}.0.0/24 via 10.{narrow}.0.2 dev up{narrow} onlink advmss 2960")
    assert wire.packets(sender, "tcp", f"10.{1 - sender}.0.10", 300_000, 20).returncode == 0


@FOUR_WAYS
def test_clamp_limits_segments_both_ways(make_wire: Callable[..., Wire], narrow: int, sender: int) -> None:
    """S10, M-10: a number, no lookup of a route that may be the wrong one; whichever side is narrow."""
    wire = uneven(make_wire, narrow, clamp=1400)
    sent = wire.packets(sender, "tcp", f"10.{1 - sender}.0.10", 300_000, 20)
    assert sent.returncode == 0
    assert int(sent.stdout.split()[1]) <= 1400


def test_ttl_exceeded_reaches_the_sender_on_both_sides(make_wire: Callable[..., Wire]) -> None:
    wire = uneven(make_wire, narrow=1)
    trace = (
        "import socket, sys\n"
        "own, other = sys.argv[1:]\n"
        "raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)\n"
        "raw.bind((own, 0)); raw.settimeout(20)\n"
        "probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); probe.bind((own, 0))\n"
        "probe.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 1); probe.sendto(b'x', (other, 33434))\n"
        "while True:\n"
        "    data, sender = raw.recvfrom(4096)\n"
        "    if data[20] == 11: print(sender[0]); break\n"
    )
    for network in (0, 1):
        done = wire.run(str(network), "/usr/bin/python3", "-ISc", trace, f"10.{network}.0.10", f"10.{1 - network}.0.10")
        assert done.stdout.strip() == f"10.{network}.0.2"


def test_a_loop_is_cut_at_its_first_turn(make_wire: Callable[..., Wire]) -> None:
    """M-11, kind 7: our rules are gone and the network's route points at the router: one packet, not thirty-two."""
    wire = make_wire()
    wire.serve_metadata()
    assert wire.routing("start").returncode == 0
    wire.ip("r", "rule flush")
    wire.ip("r", "rule add pref 32766 lookup main")
    # The network sends it back to the router, as Google's would: its route applies to the router, too.
    wire.run("0", "sysctl", "-qw", "net.ipv4.conf.up0.accept_local=1")
    assert not wire.ping(0, "10.1.0.10")
    shown = wire.run("r", "nft", "list", "counter", "ip", "multinic", "same_nic").stdout
    assert "packets 1 " in shown


@pytest.mark.slow
def test_the_loop_without_the_filter(make_wire: Callable[..., Wire]) -> None:
    """Shows that the loop of the test above is real."""
    wire = make_wire()
    wire.serve_metadata()
    assert wire.routing("start").returncode == 0
    wire.ip("r", "rule flush")
    wire.ip("r", "rule add pref 32766 lookup main")
    # The network sends it back to the router, as Google's would: its route applies to the router, too.
    wire.run("0", "sysctl", "-qw", "net.ipv4.conf.up0.accept_local=1")
    wire.run("r", "nft", "flush", "chain", "ip", "multinic", "forward")
    wire.run("r", "nft", "add rule ip multinic forward ip daddr 10.1.0.10 counter name same_nic")
    assert not wire.ping(0, "10.1.0.10")
    shown = wire.run("r", "nft", "list", "counter", "ip", "multinic", "same_nic").stdout
    assert int(shown.split("packets ")[1].split()[0]) > 10

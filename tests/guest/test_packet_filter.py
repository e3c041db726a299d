"""When nft is asked, and when what it shows is still what was loaded."""

from collections.abc import Callable
from pathlib import Path

import packet_filter
import paths
import pytest
from packet_filter import Listing
from wire import GUEST, PYTHON, Wire

TABLE = "table ip multinic {\n}\n"
SHOWN = "table ip multinic { # as nft has it\n}\n"
BASE = "type filter hook {} priority filter; policy {};"
CHAINS = "table ip filter {\n\tchain FORWARD {\n\t\ttype filter hook forward priority filter; policy drop;\n\t}\n}\n"


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record of this test's own, an nft that is there, and a kernel whose tables are at generation 5."""
    monkeypatch.setattr(paths, "NFT_LOADED", str(tmp_path / "nft.json"))
    monkeypatch.setattr(packet_filter, "_kept", Listing())
    monkeypatch.setattr(packet_filter, "program", lambda: "nft")
    monkeypatch.setattr(packet_filter, "generation", lambda: 5)
    monkeypatch.setattr(packet_filter, "run", lambda _: (0, CHAINS, ""))


def test_nothing_is_started_while_nothing_changes() -> None:
    """Idle: the period's look costs one `ip`, since the kernel's generation says that no table has changed."""
    packet_filter.loaded(TABLE, 0, "")
    assert len(packet_filter.asked(5, fresh=False)) == 2
    first = packet_filter.understood(5, [(0, CHAINS, ""), (0, SHOWN, "")])
    assert first is not None
    assert list(first.closing) == ["ip filter"]
    assert packet_filter.asked(5, fresh=False) == []
    assert packet_filter.understood(5, []) == first
    assert len(packet_filter.asked(5, fresh=True)) == 2, "the counts of packets are no change"
    assert len(packet_filter.asked(6, fresh=False)) == 2
    assert len(packet_filter.asked(None, fresh=False)) == 2, "a kernel that tells no generation"
    assert packet_filter.asked(packet_filter.FIRST) == [], "no table was ever made: the first boot has nothing to ask"


def test_what_nft_shows_first_after_loading_is_what_it_must_show() -> None:
    assert not packet_filter.is_loaded(TABLE, Listing(5))
    assert packet_filter.loaded(TABLE, 0, "") == ""
    assert packet_filter.is_loaded(TABLE, Listing(5)), "right after loading nft need not be asked"
    assert not packet_filter.is_loaded(TABLE, Listing(6)), "changed by somebody, and by whom nobody has seen"
    assert not packet_filter.is_loaded(TABLE, Listing(5, "")), "it is gone"
    assert packet_filter.is_loaded(TABLE, Listing(5, SHOWN))
    assert packet_filter.is_loaded(TABLE, Listing(6, SHOWN)), "others' tables have changed"
    assert not packet_filter.is_loaded(TABLE, Listing(6, SHOWN + "x"))
    assert not packet_filter.is_loaded(TABLE + "x", Listing(6, SHOWN)), "the metadata wants another one"


def test_a_kernel_without_generations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packet_filter, "generation", lambda: None)
    packet_filter.loaded(TABLE, 0, "")
    assert packet_filter.is_loaded(TABLE, Listing(None))
    assert packet_filter.is_loaded(TABLE, Listing(None, SHOWN))
    assert not packet_filter.is_loaded(TABLE, Listing(None, SHOWN + "x"))


def test_beside_a_program_that_changes_its_tables_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kind 1: what was loaded is never shown before others have changed theirs, and must not be loaded for ever."""
    packet_filter.loaded(TABLE, 0, "")
    assert not packet_filter.is_loaded(TABLE, Listing(6, SHOWN)), "it may be ours that was changed"
    monkeypatch.setattr(packet_filter, "generation", lambda: 7)
    monkeypatch.setattr(packet_filter, "run", lambda _: (0, SHOWN, ""))
    packet_filter.loaded(TABLE, 0, "")
    assert packet_filter.is_loaded(TABLE, Listing(8)), "nft was not asked"
    assert packet_filter.is_loaded(TABLE, Listing(9, SHOWN))
    assert not packet_filter.is_loaded(TABLE, Listing(9, ""))
    assert not packet_filter.is_loaded(TABLE, Listing(9, SHOWN + "x"))


def replaces(at: int | None) -> bool:
    """Whether what is loaded takes away a table of our name first, for which the kernel needs most of the time."""
    [(_, given)] = packet_filter.loading(TABLE, at)
    assert given.endswith(TABLE)
    return "delete table ip multinic\n" in given


def test_only_a_table_that_may_be_there_is_deleted_before_loading() -> None:
    assert not replaces(packet_filter.FIRST), "no table was ever made"
    assert replaces(5), "nobody has looked"
    packet_filter.understood(5, [(0, CHAINS, "")])
    assert not replaces(5), "others' tables only"
    assert replaces(6), "changed since"
    assert replaces(None), "a kernel that tells no generation"
    packet_filter.understood(6, [(0, CHAINS + SHOWN, "")])
    assert replaces(6), "it is there"
    packet_filter.understood(7, [(0, "table inet multinic {\n}\ntable ip multinic2 {\n}\n", "")])
    assert not replaces(7), "other families and names"


def test_what_nft_refuses_is_told() -> None:
    assert packet_filter.loaded(TABLE, 1, "Operation not supported\n") == "nft: Operation not supported"
    assert not packet_filter.is_loaded(TABLE, Listing(5))


@pytest.mark.parametrize(
    ("rule", "passes"),
    [
        ("ip saddr 10.0.0.0/8 accept", True),
        ('ip saddr 10.0.0.0/8 counter packets 0 bytes 0 accept comment "routed"', True),
        ('iifname vmap { "ens4" : accept, "ens5" : accept }', True),
        ("ct state vmap { invalid : drop, established : accept }", True),
        ('iifname != "docker0" accept', True),
        ('iifname "ens*" accept', True),
        ('iif "ens4" oif "ens5" accept', True),
        ('iifname { "ens4", "ens5" } accept', True),
        ('iifname "docker*" accept', False),
        ('iifname "docker0" oifname != "docker0" counter packets 0 bytes 0 accept', False),
        ('iifname "ens4" oifname "docker0" accept comment "one"', False),
        ('ip saddr 10.0.0.0/8 drop comment "never accept"', False),
        ("jump ufw-before-accept", False),
        ("jump last", True),
        ('iifname vmap { "ens4" : jump last }', True),
        ("ip saddr vmap @zones", True),
    ],
)
def test_what_a_closing_filter_accepts(rule: str, passes: bool) -> None:
    """Kinds 5 and 6: a filter that lets routers forward, on all of them at once, must not close them all."""
    shown = f"table ip filter {{\n\tchain forward {{\n\t\t{BASE.format('forward', 'drop')}\n\t\t{rule}\n\t}}\n\n"
    # Packets for the VM itself are another matter.
    shown += f"\tchain input {{\n\t\t{BASE.format('input', 'accept')}\n\t\tct state established accept\n\t}}\n\n"
    shown += "\tchain last {\n\t\taccept\n\t}\n}\n"
    assert packet_filter.lets_pass(packet_filter.accepting(shown), ["ens4", "ens5"]) == passes


REJECTS = "counter packets 7 bytes 420 reject with icmp type host-prohibited"


@pytest.mark.parametrize(
    ("hook", "policy", "rule", "closing"),
    [
        ("forward", "drop", "", True),
        ("prerouting", "drop", "", True),
        ("postrouting", "drop", "", True),
        ("input", "drop", "", False),
        ("forward", "accept", "", False),
        ("forward", "accept", "drop", True),
        ("forward", "accept", REJECTS, True),
        ("forward", "accept", 'log prefix "no accept: " level info drop comment "by us"', True),
        ("forward", "accept", 'counter name "all" drop', True),
        ("forward", "accept", "jump last", True),
        ("forward", "accept", "counter packets 0 bytes 0 goto last", True),
        ("forward", "accept", "jump some", False),
        ("input", "accept", REJECTS, False),
        ("forward", "accept", 'iifname "ens4" oifname "ens6" drop', False),
        ("forward", "accept", 'iifname "ens4" jump last', False),
        ("forward", "accept", "ct state invalid drop", False),
        ("forward", "accept", "limit rate over 9/second burst 5 packets drop", False),
        ("forward", "accept", 'counter packets 0 bytes 0 comment "drop"', False),
        ("forward", "accept", "jump elsewhere", False),
        ("forward", "accept", "jump forward", False),
    ],
)
def test_filters_that_close_the_way(hook: str, policy: str, rule: str, closing: bool) -> None:
    """Kind 1: a base chain that drops what no rule of it names, at any place on the way from NIC to NIC."""
    shown = f"table ip filter {{\n\tchain forward {{\n\t\t{BASE.format(hook, policy)}\n\t\t{rule}\n\t}}\n\n"
    shown += "\tchain last {\n\t\tdrop\n\t}\n\n\tchain some {\n\t\tct state new return\n\t\tdrop\n\t}\n}\n"
    assert packet_filter.is_closing(shown) == closing


@pytest.mark.parametrize(("family", "closing"), [("ip", True), ("inet", True), ("ip6", False), ("bridge", False)])
def test_filters_of_other_families_close_nothing(family: str, closing: bool) -> None:
    """A host that is to forward no IPv6 has `table ip6 filter`, with a policy that drops."""
    seen = packet_filter.understood(5, [(0, CHAINS.replace("table ip ", f"table {family} "), "")])
    assert seen is not None
    assert bool(seen.closing) == closing


@pytest.mark.root
def test_the_kernel_tells_its_generation(make_wire: Callable[..., Wire]) -> None:
    wire = make_wire()
    ask = "import sys; sys.path.insert(0, sys.argv[1]); import packet_filter; print(packet_filter.generation())"

    def generation() -> int:
        return int(wire.run("r", PYTHON, "-ISc", ask, str(GUEST / "lib")).stdout)

    assert generation() == packet_filter.FIRST
    wire.run("r", "nft", "add table ip other")
    made = generation()
    assert made > packet_filter.FIRST
    assert generation() == made
    wire.run("r", "nft", "delete table ip other")
    assert generation() > made

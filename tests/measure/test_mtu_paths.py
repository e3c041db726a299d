"""The walker in real namespaces: two hosts and a router between them, each mismatch in both directions."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as FilePath

import pytest

from multinic.measure.engine import wire
from multinic.measure.errors import MeasureError
from multinic.measure.mtu import path, probe
from multinic.measure.mtu.check import between, check
from multinic.measure.mtu.cures import Severity
from multinic.measure.mtu.path import End, Path
from multinic.measure.shell import Shell

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0 and not os.environ.get("CI"), reason="needs root: network namespaces"),
]
NO_ERRORS = (
    "table ip mute { chain out { type filter hook output priority 0; icmp type destination-unreachable drop; }; }"
)


@dataclass(frozen=True)
class Line:
    """left — router — right, 10.1.0.0/24 and 10.2.0.0/24, and the same in IPv6."""

    left: Shell
    router: Shell
    right: Shell

    def set(self, left: int = 1460, near: int | None = None, far: int | None = None, right: int = 1460) -> None:
        """MTUs of the left host, the router's two NICs and the right host; a NIC left out is as large as its host."""
        sizes = ((self.left, "eth0", left), (self.router, "near", near or left))
        for shell, device, mtu in (*sizes, (self.router, "far", far or right), (self.right, "eth0", right)):
            shell.run(["ip", "link", "set", device, "mtu", str(mtu)])
        for shell in (self.left, self.right):
            shell.run(["ip", "route", "flush", "cache"])

    def walk(self) -> Path:
        return path.walk(End(self.left, "10.1.0.2"), End(self.right, "10.2.0.2"), [self.router])

    @contextlib.contextmanager
    def mute(self) -> Iterator[None]:
        """The router's errors do not get out."""
        self.router.run(["nft", NO_ERRORS])
        try:
            yield
        finally:
            self.router.run(["nft", "delete table ip mute"])


@pytest.fixture(scope="module")
def line() -> Iterator[Line]:
    with wire.held("left") as left, wire.held("router") as router, wire.held("right") as right:
        wire.pair(left, router, 1460, devices=("eth0", "near"))
        wire.pair(right, router, 1460, devices=("eth0", "far"))
        for number, (host, nic) in enumerate(((left, "near"), (right, "far")), 1):
            for shell, device, last in ((host, "eth0", 2), (router, nic, 1)):
                for address in (f"10.{number}.0.{last}/24", f"fd00:{number}::{last}/64"):
                    shell.run(["ip", "address", "add", address, "dev", device, *(["nodad"] if ":" in address else [])])
                shell.run(["ip", "link", "set", device, "up"])
            host.run(["ip", "route", "add", "default", "via", f"10.{number}.0.1"])
            host.run(["ip", "-6", "route", "add", "default", "via", f"fd00:{number}::1"])
        router.run(["sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"])
        yield Line(left, router, right)


def test_equal_all_the_way(line: Line) -> None:
    line.set(1460, right=1460)
    walked = line.walk()
    assert (walked.there.largest, walked.back.largest, walked.findings) == (1460, 1460, ())
    assert [(hop.kind, hop.mtu) for hop in walked.hops] == [
        ("NIC", 1460),
        ("router NIC", 1460),
        ("router NIC", 1460),
        ("NIC", 1460),
    ]


@pytest.mark.parametrize(("left", "right", "wide"), [(8896, 1460, "left"), (1460, 8896, "right")])
def test_unequal_networks_with_errors_that_arrive(line: Line, left: int, right: int, wide: str) -> None:
    line.set(left, right=right)
    walked = line.walk()
    wider = walked.there if wide == "left" else walked.back
    assert (walked.there.largest, walked.back.largest) == (1460, 1460)
    assert wider.told == 1460
    assert wider.by == ("10.1.0.1" if wide == "left" else "10.2.0.1")
    [finding] = walked.findings
    assert finding.severity is Severity.BREAKS
    assert finding.where.startswith(wide)
    assert "mtu 1460" in finding.cures[0]
    # What a host has learnt meanwhile, and will forget, hides nothing.
    assert line.walk().findings == walked.findings


@pytest.mark.slow
@pytest.mark.parametrize(("left", "right", "wide"), [(8896, 1460, "left"), (1460, 8896, "right")])
def test_unequal_networks_without_errors_hang(line: Line, left: int, right: int, wide: str) -> None:
    line.set(left, right=right)
    with line.mute():
        walked = line.walk()
    wider = walked.there if wide == "left" else walked.back
    assert (wider.largest, wider.told) == (1460, None)
    assert wider.black_hole(8896)
    [finding] = walked.findings
    assert (finding.severity, finding.where.split()[0]) == (Severity.HANGS, wide)
    assert "vanish" in finding.text
    assert any("ICMP type 3" in cure for cure in finding.cures)
    assert any("maxseg size set 1420" in cure for cure in finding.cures)


@pytest.mark.slow
@pytest.mark.parametrize("wide", ["left", "right"])
def test_a_router_nic_that_is_too_small_swallows_silently(line: Line, wide: str) -> None:
    """The NIC that receives is smaller than the one that sends: no error can exist."""
    line.set(8896, near=1460 if wide == "left" else 8896, far=1460 if wide == "right" else 8896, right=8896)
    walked = line.walk()
    swallowed = walked.there if wide == "left" else walked.back
    # A veth takes four bytes more than its MTU: room for a VLAN's tag.
    assert (swallowed.largest, swallowed.told) == (1464, None)
    [silent] = [one for one in walked.findings if one.severity is Severity.HANGS]
    assert silent.where.startswith(wide)
    assert f"router {'near' if wide == 'left' else 'far'} with 1460" in silent.text


def test_the_cure_by_a_route_cures(line: Line) -> None:
    line.set(8896, right=1460)
    line.left.run(["ip", "route", "change", "default", "via", "10.1.0.1", "mtu", "1460"])
    try:
        walked = line.walk()
        assert walked.findings == ()
        assert walked.hops[0].mtu == 1460
    finally:
        line.left.run(["ip", "route", "change", "default", "via", "10.1.0.1"])


def test_ipv6(line: Line) -> None:
    line.set(8896, right=1460)
    passed = probe.measure(line.left, line.right, "fd00:2::2", 8896)
    assert (passed.largest, passed.told, passed.by) == (1460, 1460, "fd00:1::1")


def test_what_the_command_says(line: Line) -> None:
    line.set(8896, right=1460)
    verdict = between(line.left, line.right, [line.router], with_docker=False, addresses=("", ""))
    assert not verdict.sound
    assert verdict.rows()[1] == ("NIC", "left eth0", "8896")
    notes = verdict.notes()
    assert notes[0] == "left → right: packets up to 1460 bytes pass; 10.1.0.1 named 1460"
    assert any(note.startswith("first mismatch [breaks] left → right") for note in notes)
    assert any(note.startswith("  cure: ip route change") for note in notes)
    line.set(1460, right=1460)
    assert check([line.left, line.right], with_docker=False).sound


@pytest.mark.slow
def test_nobody_there_is_said(line: Line) -> None:
    with pytest.raises(MeasureError, match=r"no answer from 10\.2\.0\.77"):
        probe.measure(line.left, line.right, "10.2.0.77", 1460)


def test_every_device_is_gone_afterwards() -> None:
    with wire.held("one") as one:
        file = wire.file_of(one)
        assert FilePath(file).exists()
    assert not FilePath(file).exists()

"""VPC firewall rules: what passes, in which order rules win, and that probes are no exception."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from multinic.lab.fabric import prober
from multinic.lab.fabric.firewall import firewall
from multinic.lab.fabric.port import Port
from multinic.lab.substrate import FirewallRule, Probe
from tests.lab.fabric.rig import ANYWHERE, Echo, Rig, backends, connects, ping
from tests.lab.inside import run_inside

TCP = (("tcp", ("80", "8000-8010")),)
ALL = (("all", ()),)


def rule(name: str, priority: int, *, allow: bool = True, ingress: bool = True, **more: object) -> FirewallRule:
    more.setdefault("ranges", (ANYWHERE,))
    more.setdefault("protocols", ALL)
    return FirewallRule(name, priority, allow, ingress, **more)  # type: ignore[arg-type]


async def rules_in_order(folder: Path) -> None:
    rig = Rig()
    network = await rig.network(0)
    one = await rig.machine("one", {0: "10.0.0.10"})
    two = await rig.machine("two", {0: "10.0.0.20"})
    listeners = []
    for inside in (one, two):
        for port in (80, 81):
            listener = inside.socket(socket.AF_INET, socket.SOCK_STREAM)
            listener.bind(("0.0.0.0", port))
            listener.listen(100)
            listeners.append(listener)

    async def seen(*rules: FirewallRule) -> tuple[str, str, bool]:
        await network.change(firewall=rules)
        return (
            await connects(one, "10.0.0.20", 80, 0.3),
            await connects(one, "10.0.0.20", 81, 0.3),
            await ping(one, "10.0.0.20", wait=0.3) is not None,
        )

    nothing, everything = ("silent", "silent", False), ("open", "open", True)
    assert await seen() == nothing, "ingress is denied where no rule allows it"
    assert await seen(rule("a", 1000)) == everything
    assert await seen(rule("a", 1000, protocols=TCP)) == ("open", "silent", False)
    assert await seen(rule("a", 1000, protocols=(("icmp", ()),))) == ("silent", "silent", True)
    assert await seen(rule("a", 1000, protocols=(("1", ()), ("6", ("81",))))) == ("silent", "open", True)
    assert await seen(rule("a", 1000), rule("d", 999, allow=False, protocols=TCP)) == ("silent", "open", True)
    assert await seen(rule("a", 1000), rule("d", 1001, allow=False)) == everything
    assert await seen(rule("a", 1000), rule("d", 1000, allow=False)) == nothing, "deny wins among equals"
    assert await seen(rule("a", 1000, targets=frozenset({"two"}))) == everything
    assert await seen(rule("a", 1000, targets=frozenset({"one"}))) == nothing
    assert await seen(rule("a", 1000, ranges=(IPv4Network("10.0.0.10/32"),))) == everything
    assert await seen(rule("a", 1000, ranges=(IPv4Network("10.0.0.11/32"),))) == nothing
    assert await seen(rule("a", 1000, ranges=(), sources=frozenset({"one"}))) == everything
    assert await seen(rule("a", 1000, ranges=(), sources=frozenset({"two"}))) == nothing
    # Egress is allowed where no rule denies it; answers belong to what was allowed.
    open_ = rule("a", 1000)
    assert await seen(open_, rule("e", 1000, allow=False, ingress=False, targets=frozenset({"two"}))) == everything
    assert await seen(open_, rule("e", 1000, allow=False, ingress=False, targets=frozenset({"one"}))) == nothing
    near = (IPv4Network("10.0.0.20/32"),)
    assert await seen(
        open_,
        rule("e", 1000, allow=False, ingress=False),
        rule("f", 900, ingress=False, ranges=near, protocols=TCP),
    ) == ("open", "silent", False)


async def each_nic_has_a_state_of_its_own(folder: Path) -> None:
    """A reply by another router than the request's needs a rule there; by the same one it does not."""
    rig = await Rig.routers(2)
    clients, servers = (IPv4Network("10.0.0.0/16"),), (IPv4Network("10.1.0.0/16"),)
    a, b = rig.networks
    ends = frozenset({"c", "s"})
    forwards = [rule("to-ends", 900, targets=ends), rule("clients", 1000, ranges=clients)]

    async def passes(there: str, back: str, *rules: FirewallRule) -> bool:
        await a.change(behind=backends([there]))
        await b.change(behind=backends([back]), firewall=[*forwards, *rules])
        return await ping(rig.machines["c"], "10.1.0.50", wait=0.5) is not None and (
            await connects(rig.machines["c"], "10.1.0.50", next(ports), 0.5) == "refused"
        )

    ports = iter(range(7000, 7100))
    assert await passes("r1", "r1")
    assert not await passes("r1", "r2"), "r2 has never seen the request"
    assert await passes("r1", "r2", rule("servers", 1000, ranges=servers))
    # A connection goes on when the rule that let it in is gone; a new one does not begin.
    async with Echo(rig) as echo:
        await a.change(behind=backends(["r1"]))
        await b.change(behind=backends(["r1"]), firewall=forwards)
        flows = await echo.open(5)
        await b.change(firewall=[])
        await echo.talk(flows)
        assert await connects(rig.machines["c"], "10.1.0.50", 7, 0.5) == "silent"


async def probes(folder: Path) -> None:
    rig = await Rig.routers(2)
    network = rig.networks[0]
    replies = {"r1": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "r2": b"HTTP/1.0 503 No\r\n\r\n"}
    requests: list[bytes] = []

    async def respond(name: str) -> None:
        listener = rig.machines[name].socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.bind(("0.0.0.0", 9001))
        listener.listen(100)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            requests.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(replies[name])
            # The first one keeps its connection open, as HTTP/1.1 servers do.
            if name == "r2":
                writer.close()

        await asyncio.start_server(serve, sock=listener)

    for name in replies:
        await respond(name)
    loop = asyncio.get_running_loop()

    async def ask(
        machine: str, address: str = "10.0.0.100", port: int = 9001, timeout: float = 2
    ) -> tuple[bool, str, bool]:
        probe = Probe(network.vpc.plan.key, machine, IPv4Address(address), port, "/x", timeout, "h")
        plugged = next((p for p in network.vpc.ports.values() if p.machine == machine), None)
        began = loop.time()
        result = await prober.send(probe, network.vpc.namespace, plugged)
        return result.healthy, result.detail, loop.time() - began >= timeout - 0.01

    # The load balancer's address, which both own, at one of them; and the NIC's own.
    assert await ask("r1") == (True, "http 200", False)
    assert await ask("r2") == (False, "http 503", False)
    assert await ask("r1", "10.0.0.11") == (True, "http 200", False)
    assert requests[0].startswith(b"GET /x HTTP/1.1\r\n") and b"\r\nHost: h\r\n" in requests[0]
    assert await ask("r1", port=9002) == (False, "refused", False)
    # Silence takes all of its time: link down at the machine, firewall, no such machine.
    silent = (False, "timeout", True)
    await rig.machines["r1"].ip("link set eth0 down")
    assert await ask("r1", timeout=0.5) == silent
    assert await ask("r1", "10.0.0.11", timeout=0.5) == silent
    assert await ask("nobody", timeout=0.5) == silent
    await network.change(firewall=[rule("a", 1000, ranges=(IPv4Network("10.0.0.0/8"),))])
    assert await ask("r2", timeout=0.5) == silent
    await network.change(
        firewall=[rule("a", 1000, ranges=(IPv4Network("35.191.0.0/16"),), protocols=(("tcp", ("9001",)),))]
    )
    assert await ask("r2") == (False, "http 503", False)
    # The NIC itself is gone.
    await rig.machines["r2"].ip("link delete eth0")
    assert await ask("r2", timeout=0.5) == silent


@pytest.mark.root
@pytest.mark.parametrize(
    "check", [rules_in_order, each_nic_has_a_state_of_its_own, probes], ids=lambda check: check.__name__
)
def test_firewall(check: object, tmp_path: Path) -> None:
    run_inside(check, tmp_path)  # type: ignore[arg-type]


def test_rules_without_a_machine_or_a_range_match_nothing() -> None:
    nobody = rule("a", 1000, targets=frozenset({"gone"}))
    from_nobody = rule("b", 1000, ranges=(), sources=frozenset({"gone"}))
    ports: list[Port] = []
    chains = firewall([nobody, from_nobody], ports)
    assert chains["egress"] == []
    assert len(chains["ingress"]) == 1 and "drop" in chains["ingress"][0]


def test_overlapping_ports_and_ranges_are_joined() -> None:
    ranges = (IPv4Network("10.0.0.0/8"), IPv4Network("10.1.0.0/16"))
    chains = firewall([rule("a", 1, ranges=ranges, protocols=(("tcp", ("85", "80-90", "91", "443")),))], [])
    assert "10.1.0.0" not in chains["ingress"][0]
    assert "{ 80-91, 443 }" in chains["ingress"][0]

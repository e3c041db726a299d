"""Which router carries a flow: hashing, symmetry, draining, removal, and what decides between routes."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from tests.lab.fabric.rig import Echo, Rig, backends, connects, ping, route
from tests.lab.inside import run_inside

FLOWS = 300
ROUTERS = {"r1", "r2", "r3"}


async def apply_to_both(rig: Rig, **changes: object) -> None:
    for network in rig.networks:
        await network.change(**changes)  # type: ignore[arg-type]


async def owners(rig: Rig, ports: set[int]) -> dict[int, str]:
    """Each flow's one router, which must be the same in both directions."""
    seen = await rig.carried()
    found = {}
    for port in ports:
        there, back = seen[port]
        assert len(there) == 1 and there == back, f"flow {port} went by {there} and came back by {back}"
        found[port] = next(iter(there))
    return found


async def drain_and_removal(folder: Path) -> None:
    rig = await Rig.routers()
    async with Echo(rig) as echo:
        ports = await echo.open(FLOWS)
        before = await owners(rig, ports)
        sizes = {name: list(before.values()).count(name) for name in ROUTERS}
        assert min(sizes.values()) > FLOWS / 6, f"unevenly spread: {sizes}"

        # Draining: what it has stays, what is new goes elsewhere.
        await rig.forget()
        await apply_to_both(rig, behind=backends(ROUTERS, draining={"r3"}))
        await echo.talk(ports)
        assert await owners(rig, ports) == before
        new = await echo.open(FLOWS)
        assert "r3" not in (await owners(rig, new)).values()

        # Gone: only its own flows move.
        await rig.forget()
        await apply_to_both(rig, behind=backends(ROUTERS, dropped={"r3"}))
        await rig.remove("r3")
        await echo.talk(ports)
        after = await owners(rig, ports)
        moved = {port for port in ports if after[port] != before[port]}
        assert moved == {port for port in ports if before[port] == "r3"}

        # Back, as a new machine of the same name: no flow moves to it, new ones do.
        await rig.router("r3", 13)
        await apply_to_both(rig, behind=backends(ROUTERS))
        await rig.forget()
        await echo.talk(ports)
        assert await owners(rig, ports) == after
        newer = await owners(rig, await echo.open(FLOWS))
        assert list(newer.values()).count("r3") > FLOWS / 6


async def coarse_affinities(folder: Path) -> None:
    rig = await Rig.routers()
    for affinity in ("CLIENT_IP", "CLIENT_IP_PROTO"):
        await apply_to_both(rig, affinity=affinity)
        await rig.forget()
        async with Echo(rig) as echo:
            assert len(set((await owners(rig, await echo.open(20))).values())) == 1, affinity
    await apply_to_both(rig, affinity="CLIENT_IP_NO_DESTINATION")
    await rig.forget()
    async with Echo(rig) as echo:
        await echo.open(20)
        seen = await rig.carried()
        for position in (0, 1):
            assert len({name for ways in seen.values() for name in ways[position]}) == 1, seen


async def none_is_not_symmetric(folder: Path) -> None:
    rig = await Rig.routers(affinity="NONE")
    async with Echo(rig) as echo:
        ports = await echo.open(60)
        seen = await rig.carried()
        ways = [seen[port] for port in ports]
        assert {name for there, _ in ways for name in there} == ROUTERS
        assert any(there != back for there, back in ways)
        assert all(len(there) == len(back) == 1 for there, back in ways)


async def sessions(folder: Path) -> None:
    """PER_SESSION with an affinity by client: a later connection follows the session, also after its bucket moved."""
    rig = await Rig.routers(affinity="CLIENT_IP", per_session=True)
    await apply_to_both(rig, affinity="CLIENT_IP", per_session=True, behind=backends(ROUTERS, dropped={"r1", "r2"}))
    async with Echo(rig) as echo:
        assert set((await owners(rig, await echo.open(3))).values()) == {"r3"}
        await apply_to_both(rig, affinity="CLIENT_IP", per_session=True, behind=backends(ROUTERS))
        await rig.forget()
        assert set((await owners(rig, await echo.open(3))).values()) == {"r3"}
        # A session's router that drains keeps the session; one that is dropped does not.
        await apply_to_both(
            rig, affinity="CLIENT_IP", per_session=True, behind=backends(ROUTERS, dropped={"r3"}, draining={"r2"})
        )
        await rig.forget()
        assert set((await owners(rig, await echo.open(3))).values()) == {"r1"}


async def choice_of_route(folder: Path) -> None:
    rig = await Rig.routers(1)
    a = rig.networks[0]
    client = rig.machines["c"]
    lb = a.balancer

    async def reached(*routes: object) -> bool:
        await a.change(routes=routes)  # type: ignore[arg-type]
        return await ping(client, "10.1.0.50") is not None

    assert not await reached()
    assert await reached(route("10.1.0.0/16", lb))
    assert not await reached(route("10.1.0.0/16", None))
    assert not await reached(route("10.1.0.0/16", lb), route("10.1.0.0/24", None)), "the longer prefix wins"
    assert await reached(route("10.1.0.0/16", None), route("10.1.0.0/24", lb, priority=2000)), "before the priority"
    assert await reached(route("10.1.0.0/16", lb, priority=900), route("10.1.0.0/16", None, priority=1000))
    assert not await reached(route("10.1.0.0/16", lb, priority=1000), route("10.1.0.0/16", None, priority=900))
    assert await reached(route("0.0.0.0/0", lb))
    assert await reached(route("10.1.0.0/16", lb, sources=frozenset({"c"})))
    assert not await reached(route("10.1.0.0/16", lb, sources=frozenset({"r1"}))), "a tag that the sender does not have"
    # A subnetwork's own addresses never follow a static route.
    await rig.machine("d", {0: "10.0.0.60"})
    await a.change(routes=[route("10.0.0.0/8", None), route("10.0.0.60/32", None)])
    assert await ping(client, "10.0.0.60")


async def symmetry_in_odd_shapes(folder: Path) -> None:
    """A default route one way and a short one back, and the lower addresses on either side."""
    rig = await Rig.routers()
    a, b = rig.networks
    await a.change(routes=[route("0.0.0.0/0", a.balancer)])
    await b.change(routes=[route("10.0.0.0/16", b.balancer)])
    async with Echo(rig) as echo:
        assert set((await owners(rig, await echo.open(60))).values()) == ROUTERS
    await a.change(routes=[route("10.1.0.0/16", a.balancer)])
    await b.change(routes=[route("0.0.0.0/0", b.balancer)])
    await rig.forget()
    async with Echo(rig) as echo:
        assert set((await owners(rig, await echo.open(60))).values()) == ROUTERS


async def clients_of_another_region(folder: Path) -> None:
    """Without global access their packets are dropped, by the route and at the load balancer's own address."""
    rig = await Rig.routers(1)
    await rig.machine("far", {0: "10.0.0.60"})
    near, far = rig.machines["c"], rig.machines["far"]
    for clients, reached in ((None, True), (frozenset({"c", "r1"}), False)):
        await rig.networks[0].change(clients=clients)
        for target in ("10.1.0.50", rig.networks[0].balancer):
            assert await ping(near, target)
            assert (await ping(far, target, wait=0.5) is not None) == reached, target
    assert await ping(far, "10.0.0.50"), "its own network is there"


async def own_address_and_hops(folder: Path) -> None:
    rig = await Rig.routers()
    client = rig.machines["c"]
    assert await ping(client, "10.0.0.100"), "the load balancer's own address is balanced too"
    direct = await ping(client, "10.0.0.11")
    assert direct == 64
    through = await ping(client, "10.1.0.50")
    # One router on the way there, and one back; the fabric itself is no hop.
    assert through == 63
    assert await ping(client, "10.1.0.50", ttl=1) is None, "the router's hop counts"
    assert await ping(client, "10.1.0.50", ttl=2)


async def dead_router(folder: Path) -> None:
    """New flows to a router that is silent are lost, not refused; they go on when it is taken out."""
    rig = await Rig.routers()
    await rig.machines["r2"].ip("link set eth0 down", "link set eth1 down")
    async with Echo(rig) as echo:
        client = rig.machines["c"]
        results = [await connects(client, "10.1.0.50", 7, 0.3) for _ in range(30)]
        assert set(results) == {"open", "silent"}, results
        await apply_to_both(rig, behind=backends(ROUTERS, dropped={"r2"}))
        await echo.open(30)


async def sick_router(folder: Path) -> None:
    """An unhealthy router that keeps its connections by default keeps those of TCP; UDP's flows move."""
    rig = await Rig.routers()
    senders = [rig.machines["c"].socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(20)]
    ports = set()
    for sender in senders:
        sender.bind(("10.0.0.50", 0))
        ports.add(sender.getsockname()[1])

    async def carriers() -> dict[int, str]:
        await rig.forget()
        for sender in senders:
            sender.sendto(b"x", ("10.1.0.50", 9))
        seen: dict[int, str] = {}
        async with asyncio.timeout(20):
            while len(seen) < len(ports):
                seen = {port: min(there) for port, (there, _) in (await rig.carried()).items() if port in ports}
        return seen

    async with Echo(rig) as echo:
        datagrams = await carriers()
        streams = await owners(rig, await echo.open(40))
        assert "r1" in datagrams.values() and "r1" in streams.values()
        await apply_to_both(rig, behind=backends(ROUTERS, sick={"r1"}))
        after = await carriers()
        assert {port: after[port] for port in ports if datagrams[port] != "r1"} == {
            port: name for port, name in datagrams.items() if name != "r1"
        }
        assert "r1" not in after.values()
        await echo.talk(streams)
        assert await owners(rig, set(streams)) == streams
    for sender in senders:
        sender.close()


async def ip_forwarding_flag(folder: Path) -> None:
    rig = await Rig.routers(1)
    client, server = rig.machines["c"], rig.machines["s"]
    for inside, foreign in ((client, "10.0.0.77"), (server, "10.1.0.77")):
        await inside.ip(f"address add {foreign}/32 dev lo")
    assert await ping(client, "10.0.0.11")
    assert await ping(client, "10.0.0.11", source="10.0.0.77") is None, "a foreign source leaves only where it may"


async def quick_change(folder: Path) -> None:
    """A change while flows run loses none of them; many changes at once end in the last one."""
    rig = await Rig.routers()
    async with Echo(rig) as echo:
        ports = await echo.open(50)
        wanted = [backends(ROUTERS, draining={name}) for name in sorted(ROUTERS)] + [backends(ROUTERS)]
        await asyncio.gather(*(network.change(behind=behind) for behind in wanted for network in rig.networks))
        await echo.talk(ports)


CHECKS = [
    drain_and_removal,
    coarse_affinities,
    none_is_not_symmetric,
    sessions,
    choice_of_route,
    symmetry_in_odd_shapes,
    clients_of_another_region,
    own_address_and_hops,
    dead_router,
    sick_router,
    ip_forwarding_flag,
    quick_change,
]


@pytest.mark.root
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_steering(check: object, tmp_path: Path) -> None:
    run_inside(check, tmp_path)  # type: ignore[arg-type]

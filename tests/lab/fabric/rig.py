"""VPC networks of the lab with plain namespaces as machines: quick to make, and every packet is real."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network

from multinic.lab.fabric.egress import EgressCap
from multinic.lab.fabric.port import Port
from multinic.lab.fabric.vpc import Vpc
from multinic.lab.namespaces import Namespace
from multinic.lab.process import run
from multinic.lab.substrate import Backend, Balancer, FirewallRule, NetworkPlan, Route

ANYWHERE = IPv4Network("0.0.0.0/0")
OPEN = FirewallRule("open", 1000, True, True, (ANYWHERE,), (("all", ()),))


def address(text: str) -> IPv4Address:
    return IPv4Address(text)


def route(destination: str, balancer: str | None, **more: object) -> Route:
    return Route(IPv4Network(destination), None if balancer is None else IPv4Address(balancer), **more)  # type: ignore[arg-type]


def backends(
    names: Iterable[str], *, draining: Iterable[str] = (), sick: Iterable[str] = (), dropped: Iterable[str] = ()
) -> tuple[Backend, ...]:
    """All of `names` serve.

    Those that drain keep what they have, those that are sick keep TCP only, those that are dropped have nothing any
    more.
    """
    draining, sick, dropped = set(draining), set(sick), set(dropped)
    return tuple(
        Backend(n, n not in draining | sick | dropped, n not in dropped, n not in sick | dropped) for n in sorted(names)
    )


@dataclass
class Network:
    """10.`number`.0.0/24, load balancer at .100."""

    number: int
    vpc: Vpc
    plan: NetworkPlan

    @property
    def balancer(self) -> str:
        return f"10.{self.number}.0.100"

    async def change(
        self,
        *,
        behind: Sequence[Backend] | None = None,
        affinity: str = "CLIENT_IP_PORT_PROTO",
        routes: Sequence[Route] | None = None,
        firewall: Sequence[FirewallRule] | None = None,
        per_session: bool = False,
        clients: frozenset[str] | None = None,
    ) -> None:
        old = self.plan
        members = behind if behind is not None else old.balancers[0].backends
        self.plan = NetworkPlan(
            old.key,
            old.mtu,
            old.subnetworks,
            (Balancer(IPv4Address(self.balancer), tuple(members), affinity, per_session, clients=clients),),
            tuple(routes) if routes is not None else old.routes,
            tuple(firewall) if firewall is not None else old.firewall,
        )
        await self.vpc.apply(self.plan)


@dataclass
class Rig:
    """Networks and machines; the number of a NIC's device is that of its network."""

    networks: list[Network] = field(default_factory=list)
    machines: dict[str, Namespace] = field(default_factory=dict)
    indexes: int = 0

    @classmethod
    async def routers(cls, count: int = 3, **more: object) -> Rig:
        """Two networks with a client `c` (10.0.0.50), a server `s` (10.1.0.50) and routers r1, r2 … between them."""
        rig = cls()
        names = [f"r{number}" for number in range(1, count + 1)]
        for number in (0, 1):
            network = await rig.network(number)
            other = f"10.{1 - number}.0.0/16"
            await network.change(
                behind=backends(names),
                routes=[route(other, network.balancer)],
                firewall=[OPEN],
                **more,  # type: ignore[arg-type]
            )
        await rig.machine("c", {0: "10.0.0.50"})
        await rig.machine("s", {1: "10.1.0.50"})
        for number, name in enumerate(names, 11):
            await rig.router(name, number)
        return rig

    async def network(self, number: int, mtu: int = 1460) -> Network:
        key = f"projects/lab/global/networks/n{number}"
        made = Network(number, Vpc(key), NetworkPlan(key, mtu, {f"s{number}": IPv4Network(f"10.{number}.0.0/24")}))
        made.plan = NetworkPlan(key, mtu, made.plan.subnetworks, (Balancer(IPv4Address(made.balancer), ()),))
        await made.vpc.apply(made.plan)
        self.networks.append(made)
        return made

    async def machine(
        self, name: str, nics: dict[int, str], *, can_ip_forward: bool = False, egress: EgressCap | None = None
    ) -> Namespace:
        inside = self.machines[name] = Namespace(f"m-{name}")
        await inside.create()
        for position, (number, own) in enumerate(nics.items()):
            self.indexes += 1
            gateway = f"10.{number}.0.1"
            mtu = self.networks[number].plan.mtu
            port = Port(
                *(name, self.indexes, position, IPv4Address(own), IPv4Address(gateway), mtu, can_ip_forward),
                egress=egress,
            )
            await self.networks[number].vpc.plug(port, inside, f"eth{number}")
            await inside.ip(
                f"address add {own}/32 dev eth{number}",
                f"link set eth{number} up",
                f"route add {gateway} dev eth{number} scope link",
                *([f"route add default via {gateway} dev eth{number}"] if position == 0 else []),
            )
        return inside

    async def router(self, name: str, host: int) -> Namespace:
        """A virtual wire between network 0 and network 1 that notes which flows it carries, by the client's port."""
        inside = await self.machine(name, {0: f"10.0.0.{host}", 1: f"10.1.0.{host}"}, can_ip_forward=True)
        inside.sysctl(
            {
                "ipv4/ip_forward": "1",
                "ipv4/conf/all/rp_filter": "0",
                "ipv4/conf/eth0/rp_filter": "0",
                "ipv4/conf/eth1/rp_filter": "0",
            }
        )
        await inside.ip(
            "route add default via 10.0.0.1 dev eth0 table 100",
            "route add default via 10.1.0.1 dev eth1 table 101",
            "route add local 10.0.0.100 dev eth0 table local",
            "route add local 10.1.0.100 dev eth1 table local",
            "rule add priority 1000 iif eth0 table 101",
            "rule add priority 1001 iif eth1 table 100",
            "rule add priority 1002 from 10.0.0.0/16 iif lo table 100",
            "rule add priority 1003 from 10.1.0.0/16 iif lo table 101",
        )
        await inside.nft(
            """table ip seen {
              set there { type inet_service; size 65535; flags dynamic; }
              set back { type inet_service; size 65535; flags dynamic; }
              chain forward { type filter hook forward priority 0; policy accept;
                iifname "eth0" meta l4proto { tcp, udp } update @there { th sport }
                iifname "eth1" meta l4proto { tcp, udp } update @back { th dport }
              }
            }"""
        )
        return inside

    async def remove(self, name: str) -> None:
        for network in self.networks:
            for port in [port for port in network.vpc.ports.values() if port.machine == name]:
                await network.vpc.unplug(port)
        await self.machines.pop(name).delete()

    async def forget(self) -> None:
        """Lets the routers begin to note anew."""
        for name, inside in self.machines.items():
            if name.startswith("r"):
                await inside.nft("flush set ip seen there\nflush set ip seen back\n")

    async def carried(self) -> dict[int, tuple[set[str], set[str]]]:
        """Client's port → routers seen on the way there, and on the way back."""
        found: dict[int, tuple[set[str], set[str]]] = {}
        for name, inside in self.machines.items():
            if not name.startswith("r"):
                continue
            for position, direction in enumerate(("there", "back")):
                command = ("nsenter", f"--net={inside.path}", "nft", "-j", "list", "set", "ip", "seen", direction)
                for part in json.loads(await run(*command))["nftables"]:
                    for port in part.get("set", {}).get("elem", []):
                        found.setdefault(port, (set(), set()))[position].add(name)
        return found


class Echo:
    """A TCP server in a machine's namespace, and its clients' connections."""

    def __init__(self, rig: Rig, client: str = "c", server: str = "s", port: int = 7, at: str = "10.1.0.50") -> None:
        self._client = rig.machines[client]
        self._server = rig.machines[server]
        self._at = (at, port)
        self.flows: dict[int, socket.socket] = {}

    async def __aenter__(self) -> Echo:
        listener = self._server.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.bind(("0.0.0.0", self._at[1]))
        listener.listen(1024)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while data := await reader.read(100):
                    writer.write(data)
                    await writer.drain()
            except (ConnectionError, asyncio.CancelledError):
                pass
            finally:
                writer.close()

        self._listening = await asyncio.start_server(serve, sock=listener)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listening.close()
        for connection in self.flows.values():
            connection.close()

    async def open(self, count: int) -> set[int]:
        """Opens connections that have been answered once; their client ports."""
        ports = set()
        for _ in range(count):
            connection = self._client.socket(socket.AF_INET, socket.SOCK_STREAM)
            connection.bind(("0.0.0.0", 0))
            await asyncio.wait_for(asyncio.get_running_loop().sock_connect(connection, self._at), 20)
            port = connection.getsockname()[1]
            self.flows[port] = connection
            ports.add(port)
        await self.talk(ports)
        return ports

    async def talk(self, ports: Iterable[int]) -> None:
        """Has each connection answered once more."""
        loop = asyncio.get_running_loop()
        for port in ports:
            await loop.sock_sendall(self.flows[port], b"hello")
            got = await asyncio.wait_for(loop.sock_recv(self.flows[port], 100), 20)
            assert got == b"hello", f"flow {port} got {got!r}"


async def ping(inside: Namespace, to: str, *, source: str = "0.0.0.0", ttl: int = 64, wait: float = 1) -> int | None:
    """The TTL of the answer to one ICMP echo request, or None."""
    # Another identifier each time: the connection table takes an old one for a connection that was allowed.
    own = next(_numbers)
    head = struct.pack("!BBHHH", 8, 0, 0, own, 1)
    words = struct.unpack("!4H", head)
    total = sum(words)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    with inside.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as connection:
        connection.bind((source, 0))
        connection.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)
        loop = asyncio.get_running_loop()
        await loop.sock_sendto(connection, head[:2] + struct.pack("!H", checksum) + head[4:], (to, 0))
        try:
            async with asyncio.timeout(wait):
                while True:
                    packet = await loop.sock_recv(connection, 2048)
                    kind, _, _, ident, sequence = struct.unpack("!BBHHH", packet[20:28])
                    if (kind, ident, sequence) == (0, own, 1):
                        return packet[8]
        except TimeoutError:
            return None


_numbers = itertools.count(1)


async def connects(inside: Namespace, to: str, port: int, wait: float = 1) -> str:
    """``open``, ``refused`` or ``silent``."""
    connection = inside.socket(socket.AF_INET, socket.SOCK_STREAM)
    with connection:
        try:
            await asyncio.wait_for(asyncio.get_running_loop().sock_connect(connection, (to, port)), wait)
        except TimeoutError:
            return "silent"
        except ConnectionRefusedError:
            return "refused"
        return "open"

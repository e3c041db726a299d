"""A router, a client and a server as real guests in two networks of the lab, without cloud and component."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from multinic.lab.guests.exec import DEVNULL, PIPE, GuestProcess, run_in_guest
from multinic.lab.guests.linux import LinuxSubstrate
from multinic.lab.substrate import (
    Backend,
    Balancer,
    FirewallRule,
    Machine,
    MachineEvent,
    NetworkInterface,
    NetworkPlan,
    Probe,
    ProbeResult,
    Route,
)
from tests.lab.guests.router_metadata import attributes, tree

PATIENCE = 90.0
NETWORKS = [f"projects/lab/global/networks/n{number}" for number in (0, 1)]
SERVER = "10.1.0.10"
RULES = {network: f"10.{number}.0.9" for number, network in enumerate(NETWORKS)}
"""Addresses of the forwarding rules."""

ECHO = """#!/usr/bin/python3
import socket, threading
def serve(peer):
    while data := peer.recv(100):
        peer.sendall(data)
with socket.create_server(("", 7)) as door:
    while True:
        threading.Thread(target=serve, args=[door.accept()[0]]).start()
"""
CONNECTION = """
import socket, sys
with socket.create_connection((sys.argv[1], 7), timeout=30) as c:
    print("connected", flush=True)
    for _ in sys.stdin:
        c.sendall(b"x")
        print("echo" if c.recv(1) else "closed", flush=True)
"""


def key(name: str) -> str:
    return f"projects/lab/zones/z/instances/{name}"


def machine(name: str, identity: int, *addresses: str) -> Machine:
    nics = []
    for text in addresses:
        address = IPv4Address(text)
        number = address.packed[1]
        nics.append(NetworkInterface(NETWORKS[number], f"s{number}", address, IPv4Address(f"10.{number}.0.1"), 1460))
    return Machine(key(name), identity, name, tuple(nics), can_ip_forward=len(nics) > 1)


MACHINES = {
    "router": machine("router", 1, "10.0.0.2", "10.1.0.2"),
    "client": machine("client", 2, "10.0.0.10"),
    "server": machine("server", 3, SERVER),
}


class Connection:
    """A TCP connection from the client through the router to the server, used only when asked."""

    def __init__(self, folder: Path) -> None:
        argv = ["python3", "-c", CONNECTION, SERVER]
        self.process = GuestProcess(folder, "client", argv, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)

    async def says(self, word: str, within: float = PATIENCE) -> bool:
        """Whether the program's next line is this."""
        stdout = self.process.stdout
        assert stdout is not None
        line = asyncio.get_running_loop().run_in_executor(None, stdout.readline)
        with contextlib.suppress(TimeoutError):
            return (await asyncio.wait_for(asyncio.shield(line), within)).decode().strip() == word
        return False

    async def works(self, within: float = PATIENCE) -> bool:
        """Whether a byte goes to the server and back."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        return await self.says("echo", within)


class RouterLab:
    """What a test does with them."""

    def __init__(self, folder: Path, substrate: LinuxSubstrate, held: dict[str, str]) -> None:
        self.folder, self.substrate = folder, substrate
        self.attributes = held
        self.boots = 0
        substrate.listen(self._note)
        substrate.serve_metadata(self._metadata)

    def _note(self, machine_key: str, identity: int, event: MachineEvent) -> None:
        self.boots += machine_key == key("router") and event is MachineEvent.BOOTED

    def _metadata(self, machine_key: str) -> dict[str, Any]:
        name = machine_key.rpartition("/")[2]
        if name == "router":
            return tree(MACHINES[name], self.attributes, RULES)
        return tree(MACHINES[name], {"startup-script": ECHO} if name == "server" else {}, {})

    async def plan(self, *, takes_new: bool = True) -> None:
        """What the load balancer does, as the traffic check says it should."""
        anywhere = IPv4Network("0.0.0.0/0")
        for number, network in enumerate(NETWORKS):
            address = IPv4Address(RULES[network])
            plan = NetworkPlan(
                network,
                1460,
                {f"s{number}": IPv4Network(f"10.{number}.0.0/24")},
                (Balancer(address, (Backend(key("router"), takes_new, True, True),)),),
                (Route(IPv4Network(f"10.{1 - number}.0.0/24"), address),),
                (FirewallRule("open", 1000, True, True, (anywhere,), (("all", ()),)),),
            )
            await self.substrate.apply(plan)

    async def set_metadata(self, **changes: str | None) -> None:
        """Sets attributes of the router, or removes them; underscores stand for hyphens."""
        held = dict(self.attributes)
        for name, value in changes.items():
            held.pop(name.replace("_", "-"), None)
            if value is not None:
                held[name.replace("_", "-")] = value
        self.attributes = held
        self.substrate.metadata_changed(key("router"))

    async def run(self, *argv: str, on: str = "router") -> str:
        """A program in a guest."""
        return await asyncio.to_thread(run_in_guest, self.folder, on, argv, timeout=PATIENCE)

    async def probe(self, number: int, port: int = 9001) -> ProbeResult:
        """A probe of the load balancer in a network (9001), or of auto-healing at nic0 (9000)."""
        address = IPv4Address("10.0.0.2" if port == 9000 else RULES[NETWORKS[number]])
        return await self.substrate.probe(Probe(NETWORKS[number], key("router"), address, port, "/status.json", 2.0))

    async def serves(self) -> bool:
        """Whether both traffic checks and the heal check are content."""
        return all([(await self.probe(number, port)).healthy for number, port in ((0, 9001), (1, 9001), (0, 9000))])

    async def closed(self) -> bool:
        """Whether no traffic check is content."""
        return not any([(await self.probe(number)).healthy for number in (0, 1)])

    async def connect(self) -> Connection:
        """A new connection."""
        made = Connection(self.folder)
        assert await made.says("connected")
        assert await made.works()
        return made

    async def settled(self) -> bool:
        """Whether the router's boot is over; nothing may have failed in it."""
        state = (await self.run("sh", "-c", "systemctl is-system-running || true")).strip()
        assert state != "degraded", await self.run("systemctl", "--failed")
        return state == "running"

    async def reboot(self, good: Callable[[], Awaitable[bool]]) -> None:
        """Reboots the router from inside, and waits until it is as `good` wants it."""
        boots = self.boots
        await self.run("systemctl", "--no-block", "reboot")

        async def rebooted() -> bool:
            return self.boots > boots and await good()

        await self.until(rebooted)

    async def shut_down(self, connection: Connection) -> None:
        """Powers the router off in order; a connection must go on while nobody new is let in any more."""
        stopping = asyncio.create_task(self.substrate.stop(key("router"), timeout=2 * PATIENCE))
        await self.until(self.closed)
        assert await connection.works()
        await stopping

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """Waits for an event; shows what the router's console said if it does not come."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not await condition():  # noqa: ASYNC110 - asking is what there is to wait by
                    await asyncio.sleep(0.1)
        except TimeoutError:
            console = self.substrate.serial_output(key("router"))
            raise AssertionError(f"never happened: {condition.__name__}\n{console[-8000:]}") from None


@contextlib.asynccontextmanager
async def router_lab(
    folder: Path, *, agent: bool = False, release: str = "", packages: Sequence[str] = (), **more: Any
) -> AsyncIterator[RouterLab]:
    """A router that serves, with a client and a server; `more` goes to the metadata."""
    substrate = await LinuxSubstrate.create(folder, agent=agent, release=release, more=packages, panic_pause=1.0)
    try:
        here = RouterLab(folder, substrate, attributes(**more))
        await here.plan()
        await asyncio.gather(*(substrate.start(replace(made)) for made in MACHINES.values()))
        await here.until(here.serves)
        await here.run("sh", "-c", "until ss -Hltn | grep -q :7; do sleep 0.05; done", on="server")
        yield here
    finally:
        await substrate.close()

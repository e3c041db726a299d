"""Real guests: boot, disk, events, programs in them, and what is left when everything is killed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest

from multinic.lab import inotify, remains
from multinic.lab.guests import doctor
from multinic.lab.guests.exec import PIPE, GuestError, GuestProcess, run_in_guest
from multinic.lab.guests.image import Image
from multinic.lab.guests.linux import LinuxSubstrate
from multinic.lab.substrate import (
    FirewallRule,
    Machine,
    MachineEvent,
    NetworkInterface,
    NetworkPlan,
    Probe,
    ProbeResult,
    SubstrateError,
)
from tests.lab.inside import run_inside

NETWORK = "projects/lab/global/networks/n"
PATIENCE = 60.0
STARTUP = """#!/bin/bash
echo started by $(id -un) >> /var/log/boots
systemd-run --quiet --unit web python3 -m http.server 9001
"""
SHUTDOWN = "echo stopped >> /var/log/boots\n"


def machine(name: str, host: int, *, boot_delay: float = 0.0, identity: int = 0) -> Machine:
    nic = NetworkInterface(NETWORK, "s", IPv4Address(f"10.0.0.{host}"), IPv4Address("10.0.0.1"), 1460)
    return Machine(key(name), identity or host, name, (nic,), boot_delay=boot_delay)


def key(name: str) -> str:
    return f"projects/lab/zones/z/instances/{name}"


class Lab:
    """A substrate with one open network, whose events can be waited for."""

    def __init__(self, substrate: LinuxSubstrate, folder: Path) -> None:
        self.substrate = substrate
        self.folder = folder
        self.events: list[tuple[str, MachineEvent]] = []
        self._news = asyncio.Event()
        substrate.listen(self._note)

    def _note(self, machine_key: str, identity: int, event: MachineEvent) -> None:
        self.events.append((machine_key.rpartition("/")[2], event))
        self._news.set()

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not done():
                self._news.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), 0.1)

    async def run(self, name: str, *argv: str) -> str:
        return await asyncio.to_thread(run_in_guest, self.folder, name, argv, timeout=PATIENCE)

    async def ready(self, name: str) -> None:
        """The startup script is through."""
        await self.run(name, "sh", "-c", "until systemctl is-active -q lab-startup-script; do sleep 0.05; done")

    async def serves(self, name: str, host: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while not (await self.probe(name, host)).healthy:  # noqa: ASYNC110 - a probe is what there is to wait by
                await asyncio.sleep(0.1)

    async def probe(self, name: str, host: int, timeout: float = 1.0) -> ProbeResult:
        return await self.substrate.probe(Probe(NETWORK, key(name), IPv4Address(f"10.0.0.{host}"), 9001, "/", timeout))


@contextlib.asynccontextmanager
async def lab(folder: Path, **options: Any) -> AsyncIterator[Lab]:
    substrate = await LinuxSubstrate.create(folder, panic_pause=1.0, **options)
    substrate.serve_metadata(
        lambda _: {"instance": {"attributes": {"startup-script": STARTUP, "shutdown-script": SHUTDOWN}}}
    )
    rule = FirewallRule("open", 1000, True, True, (IPv4Network("0.0.0.0/0"),), (("all", ()),))
    await substrate.apply(NetworkPlan(NETWORK, 1460, {"s": IPv4Network("10.0.0.0/24")}, firewall=(rule,)))
    try:
        yield Lab(substrate, folder)
    finally:
        await substrate.close()


async def life(folder: Path) -> None:
    async with lab(folder) as here:
        substrate = here.substrate
        await asyncio.gather(*(substrate.start(machine(f"g{n}", 10 + n)) for n in (1, 2, 3)))
        await asyncio.gather(*(here.ready(f"g{n}") for n in (1, 2, 3)))
        assert set(here.events) == {(f"g{n}", MachineEvent.BOOTED) for n in (1, 2, 3)} and len(here.events) == 3
        for n in (1, 2, 3):
            assert (await here.run(f"g{n}", "systemctl", "is-system-running")).strip() == "running"
            assert (await here.run(f"g{n}", "hostname")).strip() == f"g{n}"
            assert (await here.run(f"g{n}", "cat", "/var/log/boots")) == "started by root\n"
        assert "10.0.0.12/32" in await here.run("g2", "ip", "-br", "address", "show", "ens4")
        assert "startup-script exit status 0" in substrate.serial_output(key("g1"))
        assert (await here.run("g1", "getent", "ahostsv4", "g2")).startswith("10.0.0.12 ")
        assert (await here.run("g1", "getent", "ahostsv4", "g2.z.c.lab.internal")).startswith("10.0.0.12 ")
        with pytest.raises(GuestError, match="exit code 2"):
            await here.run("g1", "getent", "ahostsv4", "www.example.com")
        assert int(inotify.LIMIT.read_text()) >= inotify.NEEDED or doctor._inotify(), "room for many guests"
        assert substrate.egress_bytes(key("g1")) > 0 and substrate.cpu_seconds(key("g1")) > 0
        await here.serves("g1", 11)

        # A reboot from inside keeps the disk, and the shutdown script has run.
        await here.run("g1", "systemctl", "--no-block", "reboot")
        await here.until(lambda: here.events.count(("g1", MachineEvent.BOOTED)) == 2)
        await here.ready("g1")
        assert await here.run("g1", "cat", "/var/log/boots") == "started by root\nstopped\nstarted by root\n"

        # A panic: told at once, silent, and then the same disk boots again; nothing was shut down.
        await here.serves("g2", 12)
        await substrate.panic(key("g2"))
        assert here.events[-1] == ("g2", MachineEvent.PANICKED)
        answer = await here.probe("g2", 12, timeout=0.5)
        assert answer.detail == "timeout", answer
        await here.until(lambda: here.events.count(("g2", MachineEvent.BOOTED)) == 2)
        await here.ready("g2")
        assert await here.run("g2", "cat", "/var/log/boots") == "started by root\nstarted by root\n"
        assert ("g2", MachineEvent.STOPPED) not in here.events

        # Frozen: its programs do not answer, its kernel does; and back.
        await here.serves("g3", 13)
        await substrate.freeze(key("g3"), True)
        assert (await here.probe("g3", 13, timeout=0.5)).detail == "timeout"
        await substrate.freeze(key("g3"), False)
        await here.serves("g3", 13)

        # Power cut; power off from inside; reset.
        await substrate.cut_power(key("g2"))
        await here.until(lambda: ("g2", MachineEvent.STOPPED) in here.events)
        await here.run("g3", "systemctl", "--no-block", "poweroff")
        await here.until(lambda: ("g3", MachineEvent.STOPPED) in here.events)
        await substrate.reset(key("g1"))
        await here.until(lambda: here.events.count(("g1", MachineEvent.BOOTED)) == 3)
        # Stopped machines start again with their disks; a stop on request is nobody's event.
        await substrate.start(machine("g3", 13))
        await here.ready("g3")
        assert (await here.run("g3", "cat", "/var/log/boots")).startswith("started by root\nstopped\nstarted")
        stopped = here.events.count(("g3", MachineEvent.STOPPED))
        await substrate.stop(key("g3"), timeout=PATIENCE)
        assert here.events.count(("g3", MachineEvent.STOPPED)) == stopped
        with pytest.raises(GuestError, match="does not run"):
            await here.run("g3", "true")

        # Re-created: same name, other id, new disk.
        await substrate.delete(key("g2"))
        assert not (folder / "machines" / "12").exists()
        await substrate.start(machine("g2", 12, identity=99))
        await here.ready("g2")
        assert await here.run("g2", "cat", "/var/log/boots") == "started by root\n"


async def slow_power_off(folder: Path) -> None:
    """A guest that reports its progress for a while as it shuts down still ends by itself."""
    async with lab(folder) as here:
        slow = {"startup-script": STARTUP, "shutdown-script": "sleep 8\n" + SHUTDOWN}
        here.substrate.serve_metadata(lambda _: {"instance": {"attributes": slow}})
        await here.substrate.start(machine("g1", 11))
        await here.ready("g1")
        async with asyncio.timeout(PATIENCE):
            await here.substrate.stop(key("g1"), timeout=10 * PATIENCE)
        assert "shutdown-script exit status 0" in here.substrate.serial_output(key("g1"))


async def changes_of_mind(folder: Path) -> None:
    """Deleted, stopped or cancelled while it boots or waits to boot."""
    async with lab(folder) as here:
        substrate = here.substrate
        slow = asyncio.create_task(substrate.start(machine("g1", 11, boot_delay=300)))
        await asyncio.sleep(0.2)
        await substrate.delete(key("g1"))
        with pytest.raises(SubstrateError, match="switched off"):
            await slow
        for pause in (0.0, 0.05, 0.1, 0.2, 0.3):
            booting = asyncio.create_task(substrate.start(machine("g1", 11)))
            await asyncio.sleep(pause)
            booting.cancel()
            await substrate.delete(key("g1"))
            await asyncio.gather(booting, return_exceptions=True)
        await substrate.start(machine("g1", 11))
        await here.ready("g1")
        await substrate.panic(key("g1"))
        await substrate.delete(key("g1"))
        await substrate.delete(key("g1"))
        assert here.events.count(("g1", MachineEvent.STOPPED)) == 0
        assert list(Path("/run/netns").glob("vm-*")) == []
        with pytest.raises(SubstrateError, match="does not run"):
            await substrate.panic(key("g1"))


async def faults(folder: Path) -> None:
    """What the host refuses, and an image that is broken: a sentence with a cure, and nothing is left."""
    async with lab(folder) as here:
        substrate, whole = here.substrate, here.substrate._image
        empty = folder / "images" / "empty"
        empty.mkdir(parents=True)
        substrate._image = Image((empty, empty))
        with pytest.raises(SubstrateError, match=r"(?s)did not boot: .*rm -r .*/images"):
            await substrate.start(machine("g1", 11))
        await substrate.delete(key("g1"))
        substrate._image = whole
        (folder / "machines").rmdir()
        (folder / "machines").write_text("in the way")
        with pytest.raises(SubstrateError, match=r"cannot run: Not a directory .*free some space"):
            await substrate.start(machine("g1", 11))
        (folder / "machines").unlink()
        # The same machine runs once that is mended.
        await substrate.start(machine("g1", 11))
        await here.ready("g1")
        await substrate.delete(key("g1"))
        assert not [path for path in Path("/run/netns").iterdir() if path.name.startswith(("vm-", "host-"))]
        assert not list((folder / "machines").iterdir())


async def programs(folder: Path) -> None:
    async with lab(folder, nic_names="eth") as here:
        await here.substrate.start(machine("g1", 11))
        await here.ready("g1")
        assert "10.0.0.11/32" in await here.run("g1", "ip", "-br", "address", "show", "eth0")

        def work() -> None:
            with GuestProcess(folder, "g1", ["cat"], stdin=PIPE, stdout=PIPE) as process:
                assert process.stdin is not None and process.stdout is not None
                process.stdin.write(b"x" * 50_000)
                process.stdin.close()
                assert process.stdout.read() == b"x" * 50_000
                assert process.wait(PATIENCE) == 0
            with GuestProcess(folder, key("g1"), ["sh", "-c", "exit 7"]) as process:
                assert process.wait(PATIENCE) == 7
            with pytest.raises(GuestError, match=r"no machine is called g9; there are: .*g1"):
                run_in_guest(folder, "g9", ["true"])
            with pytest.raises(GuestError, match="exit code 3: oops"):
                run_in_guest(folder, "g1", ["sh", "-c", "echo oops >&2; exit 3"])
            # The guest's rights, not the host's: what it changes outside of its namespaces is refused.
            with pytest.raises(GuestError, match="exit code"):
                run_in_guest(folder, "g1", ["date", "-s", "2001-01-01"])
            # Killed with its children when its caller goes.
            process = GuestProcess(folder, "g1", ["sh", "-c", "setsid sleep 4711 & setsid sleep 4711"])
            while "4711" not in run_in_guest(folder, "g1", ["ps", "axo", "args"]):
                time.sleep(0.05)
            process.kill()
            while "sleep 4711" in run_in_guest(folder, "g1", ["ps", "axo", "args"]):
                time.sleep(0.05)

        await asyncio.wait_for(asyncio.to_thread(work), PATIENCE)
        assert (folder / remains.CONTROL_SOCKET).stat().st_mode & 0o777 == 0o600


@pytest.mark.guests
@pytest.mark.parametrize(
    "check", [life, slow_power_off, changes_of_mind, faults, programs], ids=lambda check: check.__name__
)
def test_guests(check: Any, tmp_path: Path) -> None:
    run_inside(check, tmp_path, timeout=240)

"""A router whose machine has no idle CPU left, because of what it forwards, still answers its checks in time."""

from __future__ import annotations

import asyncio
import itertools
import os
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from multinic.lab.substrate import Probe
from tests.lab.guests.router_lab import NETWORKS, RULES, SERVER, key, router_lab
from tests.lab.inside import run_inside

SECONDS = 12
"""Of load: the verdict must be renewed meanwhile, or the traffic check would close 20 s after its last one."""

CHECKS = [
    Probe(NETWORKS[0], key("router"), IPv4Address(RULES[NETWORKS[0]]), 9001, "/status.json", 1.0),
    Probe(NETWORKS[1], key("router"), IPv4Address(RULES[NETWORKS[1]]), 9001, "/status.json", 1.0),
    Probe(NETWORKS[0], key("router"), IPv4Address("10.0.0.2"), 9000, "/status.json", 5.0),
]
"""With the component's own timeouts."""


def busy() -> tuple[int, int]:
    """Ticks of all CPUs: idle, and all."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


async def full_cpu(folder: Path) -> None:
    async with router_lab(folder) as here:
        # The prober stands for machines of Google's, which have CPUs of their own.
        os.nice(-20)
        # iperf3 is one thread: several of them, or a core would have time left.
        ports = [str(5201 + number) for number in range(2 * (os.cpu_count() or 1))]
        for port in ports:
            await here.run("iperf3", "--server", "--daemon", "--port", port, on="server")
        # Small datagrams, as fast as they will go: each costs the router as much as a large one.
        flood = ("iperf3", "--client", SERVER, "--udp", "--bitrate", "0", "--length", "64", "--time", str(SECONDS))
        load = asyncio.gather(*(here.run(*flood, "--port", port, on="client") for port in ports))
        await asyncio.sleep(2)
        before, verdict = busy(), await here.run("cat", "/run/multinic/verdict.json")
        answers: dict[int, list[bool]] = {number: [] for number in range(len(CHECKS))}
        while not load.done():
            for number, check in enumerate(CHECKS):
                answers[number].append((await here.substrate.probe(check)).healthy)
            await asyncio.sleep(0.2)
        idle, total = (after - start for after, start in zip(busy(), before, strict=True))
        await load
        print(f"idle {idle / total:.1%}, answers {[(sum(held), len(held)) for held in answers.values()]}")
        assert idle / total < 0.2, "the machine was not busy: this shows nothing"
        for held in answers.values():
            # Two in a row would move traffic.
            assert all(any(pair) for pair in itertools.pairwise(held)), answers
        assert await here.run("cat", "/run/multinic/verdict.json") != verdict, "the watcher was starved"


@pytest.mark.guests
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_checks_are_answered_while_forwarding_keeps_all_cores_busy(tmp_path: Path) -> None:
    """Kind 6: a full CPU must not look like an ill router, least of all to auto-healing."""
    run_inside(full_cpu, tmp_path, timeout=300)

"""What a VM sends is capped, for all of its NICs together."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from multinic.lab.fabric.egress import LEAST, EgressCap
from multinic.lab.namespaces import Namespace
from tests.lab.fabric.rig import OPEN, Rig
from tests.lab.inside import run_inside

CAP = 80_000_000
SECONDS = 1.5
ATTEMPTS = 20
"""A machine that is busy with other things may fall short of a cap for a while, but never pass more."""


async def _rig(cap: EgressCap | None) -> Rig:
    """Machine `m` with a NIC in each of two networks, and a receiver in each."""
    rig = Rig()
    for number in (0, 1):
        network = await rig.network(number)
        await network.change(behind=(), firewall=[OPEN])
        await rig.machine(f"s{number}", {number: f"10.{number}.0.50"})
    inside = await rig.machine("m", {0: "10.0.0.11", 1: "10.1.0.11"}, egress=cap)
    await inside.ip("route add 10.1.0.0/24 via 10.1.0.1 dev eth1")
    return rig


def _flood(inside: Namespace, networks: Iterable[int], seconds: float) -> None:
    """Sends UDP as fast as it goes, to the receivers of some networks in turn."""
    with inside.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        targets = [(f"10.{number}.0.50", 9) for number in networks]
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for target in targets:
                try:
                    sender.sendto(bytes(1400), target)
                except BlockingIOError:
                    continue


async def _rate(rig: Rig, networks: Iterable[int]) -> float:
    """Bits per second that the receivers get, after the queue is full."""

    def received() -> int:
        return sum(rig.machines[f"s{number}"].received_bytes()[f"eth{number}"] for number in (0, 1))

    flood = threading.Thread(target=_flood, args=(rig.machines["m"], networks, SECONDS + 1))
    flood.start()
    await asyncio.sleep(0.4)
    # Time is taken outside of the counters: a pause in between may not look like a higher rate.
    began, before = time.monotonic(), received()
    await asyncio.sleep(SECONDS)
    total, seconds = received() - before, time.monotonic() - began
    await asyncio.to_thread(flood.join)
    return total * 8 / seconds


async def _reaches(rig: Rig, networks: Iterable[int], cap: float, most: float = 1.1) -> None:
    """The cap is reached, and passed at no time."""
    rates = []
    for _ in range(ATTEMPTS):
        rates.append(await _rate(rig, networks) / cap)
        assert rates[-1] < most, (networks, rates)
        if rates[-1] > 0.8:
            return
    raise AssertionError(f"the cap of {cap / 1e6:.0f} Mbit/s is never reached: {rates}")


async def one_cap_for_all_nics(folder: Path) -> None:
    cap = EgressCap(1, CAP)
    rig = await _rig(cap)
    for networks in ((0,), (1,), (0, 1)):
        await _reaches(rig, networks, CAP)

    # Another machine type, another cap.
    await cap.change(CAP // 2)
    await _reaches(rig, (0, 1), CAP / 2)
    await cap.change(CAP)

    # Its NICs come and go; the cap stays, and nothing of it is left in the end.
    await rig.remove("m")
    inside = await rig.machine("m", {0: "10.0.0.11"}, egress=cap)
    await _reaches(rig, (0,), CAP)
    assert set(inside.received_bytes()) == {"lo", "eth0"}
    await rig.remove("m")
    await cap.close()
    assert not list(Path("/run/netns").glob("host-*"))
    assert not list(Path("/run/multinic/bpf").glob("host-*"))


async def without_a_cap_it_is_more(folder: Path) -> None:
    rig = await _rig(None)
    rates = [0.0]
    while max(rates) < 2 * CAP:
        assert len(rates) <= ATTEMPTS, rates
        rates.append(await _rate(rig, (0, 1)))


async def two_machines_have_a_cap_each(folder: Path) -> None:
    rig = await _rig(EgressCap(1, CAP))
    other = await rig.machine("n", {0: "10.0.0.12"}, egress=EgressCap(2, CAP))
    done = threading.Event()

    def flood() -> None:
        while not done.is_set():
            _flood(other, (0,), 0.2)

    beside = threading.Thread(target=flood)
    beside.start()
    try:
        await _reaches(rig, (0,), 2 * CAP)
    finally:
        done.set()
        await asyncio.to_thread(beside.join)


async def tcp_fills_it(folder: Path) -> None:
    """One stream gets what the MTU lets through of the cap, and loses next to nothing on the way."""
    rig = await _rig(EgressCap(1, CAP))
    listener = rig.machines["s0"].socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("0.0.0.0", 7))
    listener.listen(1)
    loop = asyncio.get_running_loop()
    with listener, rig.machines["m"].socket(socket.AF_INET, socket.SOCK_STREAM) as sender:
        await asyncio.wait_for(loop.sock_connect(sender, ("10.0.0.50", 7)), 20)
        receiver, _ = await loop.sock_accept(listener)
        with receiver:
            done = asyncio.Event()

            async def send() -> None:
                while not done.is_set():
                    await loop.sock_sendall(sender, bytes(1 << 16))

            sending = asyncio.create_task(send())
            payload, found = CAP * (1460 - 52) / 1460, []
            for _ in range(ATTEMPTS):
                lost, total, began = _retransmitted(sender), 0, time.monotonic()
                while time.monotonic() < began + SECONDS:
                    total += len(await asyncio.wait_for(loop.sock_recv(receiver, 1 << 18), 20))
                rate = total * 8 / (time.monotonic() - began) / payload
                found.append((round(rate, 3), (_retransmitted(sender) - lost) * 1408 / total))
                # What waited in the receiver's buffer comes on top.
                assert rate < 1.2, found
                if rate > 0.9 and found[-1][1] < 0.02:
                    break
            else:
                raise AssertionError(f"shares of the cap, and of packets sent again: {found}")
            done.set()
            sending.cancel()


def _retransmitted(sender: socket.socket) -> int:
    """struct tcp_info: the 26th number is tcpi_total_retrans."""
    return int(struct.unpack_from("=I", sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192), 100)[0])


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize(
    "check",
    [one_cap_for_all_nics, without_a_cap_it_is_more, two_machines_have_a_cap_each, tcp_fills_it],
    ids=lambda check: check.__name__,
)
def test_egress(check: Callable[..., object], tmp_path: Path) -> None:
    run_inside(check, tmp_path)  # type: ignore[arg-type]


def test_queue_and_burst_hold_some_packets_of_segmentation_offload_at_least() -> None:
    fast, slow = EgressCap(1, 16_000_000_000), EgressCap(1, 10)
    assert (fast.burst_bytes, fast.queue_bytes) == (10_000_000, 40_000_000)
    assert (slow.rate, slow.burst_bytes, slow.queue_bytes) == (LEAST, 2 * 65536, 8 * 65536)

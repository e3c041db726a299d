"""iperf3 as the engine: which version is there, how it is called, and what it says.

iperf3 uses one thread for all of its streams before 3.16 (https://github.com/esnet/iperf/releases/tag/3.16), so there
many streams are that many processes on as many ports. One run measures one direction: the client sends.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from multinic.measure.errors import MeasureError
from multinic.measure.shell import Shell

PORT = 5301
"""First port of the servers."""
THREADS_SINCE = (3, 16)
OLDEST = (3, 7)
"""Older ones lack what is used here."""
SECONDS_TO_LISTEN = 20.0
"""How long a server may take until it listens: ssh through a tunnel takes a few seconds."""
END_SECONDS = 30.0
LISTENING = re.compile(r"^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) \S+ 0A", re.MULTILINE)
"""Port of a listening socket, in a line of /proc/net/tcp."""


@dataclass(frozen=True)
class Traffic:
    """What to send.

    Attributes:
        sender: Where the iperf3 client runs.
        receiver: Where the server runs.
        address: The receiver's, as the sender reaches it.
        streams: Parallel TCP streams.
        seconds: How long is measured.
        warm_up: Seconds before that, which do not count.
        congestion: Congestion control of the sender; empty is its default.
        port: First port of the servers.
    """

    sender: Shell
    receiver: Shell
    address: str
    streams: int = 1
    seconds: float = 5
    warm_up: float = 1
    congestion: str = ""
    port: int = PORT


@dataclass(frozen=True)
class Result:
    """What one run came to, one direction.

    Attributes:
        megabits: Received TCP payload, Mbit/s, all streams together.
        streams: Number of streams.
        processes: Number of iperf3 processes on each side.
        per_stream: Mbit/s of each stream.
        retransmits: Segments sent again, all streams.
        cwnd_kib: Largest congestion window of any stream.
        mss: Maximum segment size, bytes; 0 if iperf3 did not say.
        sender_cpu: Per cent of one CPU that the sending iperf3 used, all processes.
        receiver_cpu: Likewise of the receiving one.
        congestion: Congestion control that was used.
        intervals: Beginning and end of each measured second, by the sender's clock, and bits sent in it.
    """

    megabits: float
    streams: int
    processes: int
    per_stream: tuple[float, ...]
    retransmits: int
    cwnd_kib: float
    mss: int
    sender_cpu: float
    receiver_cpu: float
    congestion: str
    intervals: tuple[tuple[float, float, float], ...] = field(default=(), repr=False)


def version(text: str) -> tuple[int, int]:
    """Reads ``iperf3 --version``.

    Raises:
        MeasureError: It is no iperf3, or one too old.
    """
    found = re.search(r"^iperf (\d+)\.(\d+)", text, re.MULTILINE)
    if not found:
        raise MeasureError(f"this is not iperf3: {text.strip()[:80]!r}")
    known = (int(found[1]), int(found[2]))
    if known < OLDEST:
        raise MeasureError(f"iperf3 {known[0]}.{known[1]} is too old; {OLDEST[0]}.{OLDEST[1]} or newer is needed")
    return known


def version_at(shell: Shell) -> tuple[int, int]:
    """The version of iperf3 in a place.

    Raises:
        MeasureError: There is none, or one too old.
    """
    code, output, errors = shell.attempt(["iperf3", "--version"])
    if code != 0:
        raise MeasureError(f"{shell.title}: iperf3 cannot be run ({(errors or output).strip()[-200:]})")
    return version(output)


def split(streams: int, *versions: tuple[int, int]) -> list[int]:
    """Streams of each process: one process for all from 3.16 on, else one a stream."""
    if streams < 1:
        raise MeasureError(f"{streams} streams: at least one is needed")
    return [streams] if streams == 1 or min(versions) >= THREADS_SINCE else [1] * streams


def client_command(traffic: Traffic, ports: Sequence[int], streams: int) -> list[str]:
    """The command that runs one client a port, all at the same time, and prints what each said.

    They start together there: started one by one from here, through ssh or into a container, they would not overlap.
    """
    command = ["iperf3", "--client", traffic.address, "--json", "--parallel", str(streams)]
    command += ["--time", f"{traffic.seconds:g}", "--omit", f"{traffic.warm_up:g}"]
    command += ["--congestion", traffic.congestion] if traffic.congestion else []
    return _together(CLIENTS, _limit(traffic), command, ports)


def server_command(traffic: Traffic, ports: Sequence[int]) -> list[str]:
    """The command that runs one server a port: each takes one test, and ends by itself whatever becomes of us."""
    return _together(SERVERS, _limit(traffic) + SECONDS_TO_LISTEN, ["iperf3", "--server", "--one-off"], ports)


CLIENTS = """
folder=$(mktemp -d)
for port in $PORTS; do timeout "$LIMIT" "$@" --port "$port" >"$folder/$port" 2>&1 & done
wait
for port in $PORTS; do cat "$folder/$port"; echo "--$port--"; done
rm -r "$folder"
"""
SERVERS = """
for port in $PORTS; do timeout "$LIMIT" "$@" --port "$port" & done
wait
"""


def _together(script: str, limit: float, command: Sequence[str], ports: Sequence[int]) -> list[str]:
    given = f"LIMIT={limit:.0f}\nPORTS='{' '.join(map(str, ports))}'\n"
    return ["sh", "-c", given + script.lstrip(), "sh", *command]


def run(traffic: Traffic, *others: Traffic) -> Result:
    """Runs tests at the same time, each on ports of its own, and returns what they came to together.

    Raises:
        MeasureError: One of them failed; with iperf3's own words.
    """
    tests = [traffic, *others]
    sizes = [split(one.streams, version_at(one.sender), version_at(one.receiver)) for one in tests]
    ports, first = [], traffic.port
    for parts in sizes:
        ports.append(range(first, first + len(parts)))
        first += len(parts)
    started: list[subprocess.Popen[str]] = []
    try:
        for one, own in zip(tests, ports, strict=True):
            started.append(one.receiver.start(server_command(one, own)))
        for one, own in zip(tests, ports, strict=True):
            wait_until_listening(one.receiver, own, SECONDS_TO_LISTEN)
        clients = []
        for one, own, split_up in zip(tests, ports, sizes, strict=True):
            clients.append(one.sender.start(client_command(one, own, split_up[0])))
            started.append(clients[-1])
        said = [
            client.communicate(timeout=_limit(one) + END_SECONDS) for client, one in zip(clients, tests, strict=True)
        ]
    except subprocess.TimeoutExpired:
        raise MeasureError(f"{traffic.sender.title} → {traffic.address}: iperf3 did not end in time") from None
    finally:
        for process in started:
            process.kill()
            process.communicate()
    results: list[Result] = []
    for one, own, (output, errors) in zip(tests, ports, said, strict=True):
        title = f"{one.sender.title} → {one.receiver.title}"
        for port in own:
            piece, _, output = output.partition(f"--{port}--\n")
            results.append(parse(piece, errors, title))
    return replace(add(results), intervals=())


def parse(output: str, errors: str = "", title: str = "iperf3") -> Result:
    """Reads the JSON of one client.

    Raises:
        MeasureError: It holds no result; with the reason that iperf3 gives.
    """
    try:
        document: dict[str, Any] = json.loads(output)
    except ValueError:
        raise MeasureError(
            f"{title}: iperf3 said nothing that can be read: {(errors or output).strip()[-300:]}"
        ) from None
    if "error" in document or "sum_received" not in document.get("end", {}):
        reason = document.get("error") or "its result is incomplete"
        raise MeasureError(f"{title}: {reason}")
    end = document["end"]
    streams = [one for one in end["streams"] if "receiver" in one]
    windows = [one["sender"].get("max_snd_cwnd", 0) for one in streams]
    return Result(
        megabits=end["sum_received"]["bits_per_second"] / 1e6,
        streams=len(streams),
        processes=1,
        per_stream=tuple(one["receiver"]["bits_per_second"] / 1e6 for one in streams),
        retransmits=int(end["sum_sent"].get("retransmits", 0)),
        cwnd_kib=max(windows, default=0) / 1024,
        mss=int(document["start"].get("tcp_mss_default", 0) or 0),
        sender_cpu=float(end["cpu_utilization_percent"]["host_total"]),
        receiver_cpu=float(end["cpu_utilization_percent"]["remote_total"]),
        congestion=str(end.get("sender_tcp_congestion", "")),
        intervals=_intervals(document),
    )


def _intervals(document: dict[str, Any]) -> tuple[tuple[float, float, float], ...]:
    """The measured seconds. iperf3 counts from 0 again after what it omits, and tells its start in whole seconds.

    They are the sender's, and part of what it sent still waits in a queue at the end: so much is left out of each.
    """
    end = document["end"]
    arrived = min(1.0, end["sum_received"]["bytes"] / (end["sum_sent"]["bytes"] or 1))
    sums = [one["sum"] for one in document.get("intervals", [])]
    began = float(document["start"].get("timestamp", {}).get("timesecs", 0)) + 0.5
    began += sum(one["seconds"] for one in sums if one.get("omitted"))
    return tuple(
        (began + one["start"], began + one["end"], one["bytes"] * 8.0 * arrived)
        for one in sums
        if not one.get("omitted")
    )


def common_rate(parts: Sequence[Result]) -> float:
    """Mbit/s of all processes together while all of them ran.

    Started at the same moment, on a busy machine they still begin one after the other, and the last ones end alone: the
    sum of what each had in its own time would be more than there ever was.

    Raises:
        MeasureError: There was no such time.
    """
    first = max(one.intervals[0][0] for one in parts) + 1
    last = min(one.intervals[-1][1] for one in parts) - 1
    if last - first < 1:
        raise MeasureError("iperf3's processes did not run at the same time; take longer runs (--seconds)")
    total = 0.0
    for one in parts:
        for begin, end, bits in one.intervals:
            shared = max(0.0, min(end, last) - max(begin, first))
            total += bits * shared / (end - begin)
    return total / (last - first) / 1e6


def add(parts: Sequence[Result]) -> Result:
    """The results of processes that ran at the same time, as one."""
    return Result(
        megabits=parts[0].megabits if len(parts) == 1 else common_rate(parts),
        streams=sum(one.streams for one in parts),
        processes=sum(one.processes for one in parts),
        per_stream=tuple(rate for one in parts for rate in one.per_stream),
        retransmits=sum(one.retransmits for one in parts),
        cwnd_kib=max(one.cwnd_kib for one in parts),
        mss=min(one.mss for one in parts),
        sender_cpu=sum(one.sender_cpu for one in parts),
        receiver_cpu=sum(one.receiver_cpu for one in parts),
        congestion=parts[0].congestion,
    )


def _limit(traffic: Traffic) -> float:
    return traffic.seconds + traffic.warm_up + END_SECONDS


def wait_until_listening(shell: Shell, ports: Sequence[int], timeout: float) -> None:
    """Waits until TCP sockets listen on these ports.

    Raises:
        MeasureError: They do not in time.
    """
    wanted = set(ports)
    deadline = time.monotonic() + timeout
    while True:
        # Without IPv6 the second file is not there; what the first says counts all the same.
        _, listening, _ = shell.attempt(["cat", "/proc/net/tcp", "/proc/net/tcp6"])
        found = {int(port, 16) for port in LISTENING.findall(listening)}
        if wanted <= found:
            return
        if time.monotonic() > deadline:
            missing = ", ".join(map(str, sorted(wanted - found)))
            raise MeasureError(f"{shell.title}: iperf3 does not listen on port {missing}")
        time.sleep(0.1)

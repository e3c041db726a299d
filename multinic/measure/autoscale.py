"""`multinic bench autoscale`: routers come as load comes, and go when it goes. Reference 1's test: 1 → 6, and back.

Clients open new connections again and again, since a connection stays on its router: only new ones reach new routers.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from multinic.lab.client import Lab
from multinic.measure import topology
from multinic.measure.errors import MeasureError
from multinic.measure.iperf import PORT, SECONDS_TO_LISTEN, wait_until_listening
from multinic.measure.report import Overhead, Report
from multinic.measure.shell import Shell
from multinic.measure.topology import Fleet, Say

PUBLISHED_OUT = "about 6 min"
"""docs/AUTOSCALER.md of terraform-google-multinic: 1 → 6 routers by CPU; by sent bytes about 30 min."""
STREAM_SECONDS = 4
SAMPLE_SECONDS = 1.0
HOLD_SECONDS = 10.0
CLIENT = """
while :; do timeout 60 iperf3 --client "$1" --port "$2" --parallel 2 --time "$3" >/dev/null 2>&1 || sleep 0.2; done
"""
SERVER = "while :; do iperf3 --server --port $1 >/dev/null 2>&1; sleep 0.2; done"


@dataclass(frozen=True)
class Options:
    """What the command may be told.

    Attributes:
        folder: Of the lab meanwhile; removed at the end.
        port: Of its front door.
        report: Where the results go.
        clients: How many clients, each with a server of its own.
        most: Most routers.
        scale: Factor on what a machine type may send.
        speed: Lab seconds in a real second, for controllers; guests and packets keep real time.
        timeout: Real seconds that each way may take.
        command: What the user typed.
    """

    folder: Path
    port: int
    report: Path
    clients: int = 6
    most: int = 6
    scale: float = 1 / 128
    speed: float = 4
    timeout: float = 1800
    command: str = "multinic bench autoscale"


@dataclass(frozen=True)
class Sample:
    """One moment. `at`: real seconds since the load began; `megabits`: received by the servers since the last one."""

    at: float
    wanted: int
    serving: int
    megabits: float


def run(options: Options, say: Say) -> Report:
    """Runs the test and writes the report.

    Raises:
        MeasureError: It could not run, or the fleet did not grow or shrink in time; then the report is written with
            what was seen.
    """
    shape = topology.Shape(replicas={"min": 1, "max": options.most}, clients=options.clients, servers=options.clients)
    overhead = Overhead()
    samples: list[Sample] = []
    marks: dict[str, float] = {}
    with (
        topology.lab(options.folder, options.port, say, egress_scale=options.scale, speed=options.speed) as opened,
        topology.fleet(opened, shape, say) as fleet,
    ):
        target = topology.cpu_target(opened)
        watch = _Watch(opened, fleet, samples, say)
        with _load(fleet):
            watch.begin()
            marks["load begins"] = 0.0
            grown = watch.until(lambda one: one.serving >= options.most, options.timeout)
            if grown is not None:
                marks[f"{options.most} routers serve"] = grown
                watch.hold(HOLD_SECONDS)
        marks["load ends"] = ended = watch.now()
        overhead.sent(ended)
        shrunk = None
        if grown is not None:
            shrunk = watch.until(lambda one: one.wanted == 1 and one.serving == 1, options.timeout)
            if shrunk is not None:
                marks["one router is left"] = shrunk
    report = _tell(options, target, samples, marks, overhead)
    if grown is None or shrunk is None:
        way = "grow to" if grown is None else "shrink from"
        raise MeasureError(
            f"the fleet did not {way} {options.most} routers in {options.timeout:.0f} s ({samples[-1].serving} serve); "
            f"see {options.report}/autoscale.md"
        )
    return report


@contextlib.contextmanager
def _load(fleet: Fleet) -> Iterator[None]:
    """Clients that send to their servers as fast as they can, in new connections every few seconds."""
    started = []
    try:
        pairs = list(zip(fleet.clients, fleet.servers, strict=True))
        for _, server in pairs:
            started.append(fleet.shell(server.name).start(["sh", "-c", SERVER, "sh", str(PORT)]))
        for _, server in pairs:
            wait_until_listening(fleet.shell(server.name), [PORT], SECONDS_TO_LISTEN)
        for client, server in pairs:
            words = ["sh", "-c", CLIENT, "sh", server.address, str(PORT), str(STREAM_SECONDS)]
            started.append(fleet.shell(client.name).start(words))
        yield
    finally:
        for process in started:
            process.kill()
            process.communicate()


class _Watch:
    """Looks at the fleet and its traffic again and again."""

    def __init__(self, lab: Lab, fleet: Fleet, samples: list[Sample], say: Say) -> None:
        self._lab = lab
        self._servers = [fleet.shell(server.name) for server in fleet.servers]
        self._samples = samples
        self._say = say
        self._zero = time.monotonic()
        self._last: tuple[float, int] = (self._zero, 0)

    def begin(self) -> None:
        """Starts the clock."""
        self._zero = time.monotonic()
        self._last = (self._zero, self._received())

    def now(self) -> float:
        """Seconds since the load began."""
        return time.monotonic() - self._zero

    def until(self, reached: Any, timeout: float) -> float | None:
        """Looks until a sample satisfies `reached` and returns its moment, or None."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            sample = self._look()
            if reached(sample):
                return sample.at
        return None

    def hold(self, seconds: float) -> None:
        """Looks on for a while."""
        self.until(lambda _: False, seconds)

    def _look(self) -> Sample:
        time.sleep(SAMPLE_SECONDS)
        received, moment = self._received(), time.monotonic()
        before, bytes_before = self._last
        self._last = (moment, received)
        wanted, serving = topology.sizes(self._lab)
        megabits = (received - bytes_before) * 8 / 1e6 / (moment - before)
        sample = Sample(round(moment - self._zero, 2), wanted, serving, round(megabits, 1))
        if not self._samples or (wanted, serving) != (self._samples[-1].wanted, self._samples[-1].serving):
            self._say(f"{sample.at:6.1f} s: {serving} of {wanted} routers serve, {sample.megabits:.0f} Mbit/s")
        self._samples.append(sample)
        return sample

    def _received(self) -> int:
        return sum(_bytes(shell) for shell in self._servers)


def _bytes(shell: Shell) -> int:
    lines = shell.run(["cat", "/proc/net/dev"]).splitlines()
    rows = [line.split(":") for line in lines if ":" in line]
    return sum(int(numbers.split()[0]) for name, numbers in rows if name.strip() != "lo")


def _tell(
    options: Options, target: float, samples: Sequence[Sample], marks: dict[str, float], overhead: Overhead
) -> Report:
    report = Report("autoscale", "Routers come as load comes, and go when it goes.", options.command)
    speed = f"{options.speed:g}"

    def both(start: str, end: str) -> tuple[str, str]:
        if start not in marks or end not in marks:
            return "not reached", ""
        seconds = marks[end] - marks[start]
        return f"{seconds:.0f} s", f"{seconds * options.speed / 60:.1f} min"

    full = f"{options.most} routers serve"
    rows = [
        ("", "real", f"lab time (real × {speed})", "published by reference 1"),  # noqa: RUF001 - a product
        (f"1 → {options.most} routers", *both("load begins", full), PUBLISHED_OUT),
        (f"{options.most} → 1 router", *both("load ends", "one router is left"), ""),
    ]
    by_size: dict[int, list[float]] = {}
    for sample in samples:
        if sample.at <= marks["load ends"] and sample.wanted == sample.serving:
            by_size.setdefault(sample.serving, []).append(sample.megabits)
    reached = ", ".join(f"{size}: {median(rates):.0f}" for size, rates in sorted(by_size.items()))
    report.table(
        f"{options.clients} clients, 1 to {options.most} routers",
        rows,
        f"The lab's clock runs {speed} times as fast for controllers (autoscaler, group, health checks); guests boot "
        f"and packets run in real time. Caps are scaled by 1/{1 / options.scale:.0f}. The component's defaults decide: "
        f"a CPU target of {target:g}, cool-down, stabilisation, and one VM in 10 min at most when scaling in.",
        f"Mbit/s received by number of routers, medians of the samples of each: {reached}.",
        overhead.line(),
    )
    report.data.update(
        speed=options.speed,
        scale=options.scale,
        cpu_target=target,
        marks=marks,
        samples=[asdict(sample) for sample in samples],
    )
    report.write(options.report, lambda figure: _draw(figure, samples, marks))
    return report


def _draw(figure: Any, samples: Sequence[Sample], marks: dict[str, float]) -> None:
    """Scaling out on the left, all of it on the right: in takes ten times as long."""
    times = [sample.at for sample in samples]
    columns = figure.subplots(2, 2, sharex="col", sharey="row", width_ratios=(1, 1.4)).T
    for (upper, lower), end in zip(columns, (marks["load ends"], times[-1]), strict=True):
        upper.step(times, [sample.wanted for sample in samples], where="post", label="wanted", linestyle="--")
        upper.step(times, [sample.serving for sample in samples], where="post", label="serving")
        lower.step(times, [sample.megabits for sample in samples], where="post", linewidth=1)
        lower.set_xlabel("real seconds since the load began")
        upper.set_xlim(0, end * 1.05)
        for moment in marks.values():
            for axis in (upper, lower):
                axis.axvline(moment, color="tab:gray", linewidth=1, linestyle=":")
    (first, below), (whole, _) = columns
    first.set_ylabel("routers")
    first.legend(fontsize=8)
    below.set_ylabel("Mbit/s")
    first.set_title(f"out: {', '.join(title for title in marks if 'serve' in title) or 'not reached'}", fontsize=9)
    whole.set_title("out, and in again after the load has ended", fontsize=9)

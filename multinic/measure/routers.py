"""`multinic bench routers`: reference 1's four bandwidth tests, potential against actual.

In the lab each VM's cap on what it sends (all NICs together, as Google Cloud counts) is scaled down by a stated factor,
so that the machine below has CPU to spare and the figures say something about the routers. In the cloud the same
streams run between the user's own VMs, over the real machines.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from multinic.lab.client import Lab
from multinic.machines import parse
from multinic.measure import iperf, topology
from multinic.measure.engine import wire
from multinic.measure.errors import MeasureError
from multinic.measure.iperf import Result, Traffic
from multinic.measure.mtu.encapsulation import tcp_share
from multinic.measure.report import Overhead, Report, spread
from multinic.measure.shell import Shell
from multinic.measure.topology import Say

MTU = 1460
AT_LEAST = 0.99
"""Of what the MTU lets through as TCP payload."""
WARM_UP_SECONDS = 3.0
CONGESTION = "cubic"


@dataclass(frozen=True)
class Test:
    """One of reference 1's tests.

    Attributes:
        name: As the command line names it.
        title: For people.
        machine: Machine type of the routers.
        routers: How many.
        many: Many streams; else a single one.
        published: Reference 1's potential and actual, Gbit/s.
    """

    name: str
    title: str
    machine: str
    routers: int
    many: bool
    published: tuple[float, float]


TESTS = (
    Test("three", "3 routers of 8 vCPU, many streams", "n2-highcpu-8", 3, True, (48, 46.8)),
    Test("sixteen", "1 router of 16 vCPU, many streams", "n2-highcpu-16", 1, True, (32, 30.2)),
    Test("eight", "1 router of 8 vCPU, many streams", "n2-highcpu-8", 1, True, (16, 14.3)),
    Test("single", "1 router of 8 vCPU, one stream", "n2-highcpu-8", 1, False, (16, 13.4)),
)


@dataclass(frozen=True)
class Pair:
    """Two VMs that streams run between.

    Attributes:
        client: Sends.
        server: Receives.
        address: The server's.
    """

    client: Shell
    server: Shell
    address: str


@dataclass(frozen=True)
class Options:
    """What the command may be told.

    Attributes:
        folder: Of the lab meanwhile; removed at the end.
        port: Of its front door.
        report: Where the results go.
        tests: Names of tests; all where empty.
        scale: Factor on what a machine type may send.
        repeat: Runs of each.
        seconds: Length of a run.
        streams: How many are many.
        command: What the user typed.
    """

    folder: Path
    port: int
    report: Path
    tests: tuple[str, ...] = ()
    scale: float = 1 / 128
    repeat: int = 3
    seconds: float = 15
    streams: int = 32
    command: str = "multinic bench routers"


@dataclass
class Outcome:
    """What one test came to.

    Attributes:
        title: The test.
        potential: What the routers may send together, Mbit/s.
        mtu: Of the path.
        published: Reference 1's potential and actual, Gbit/s; None for other machines.
        results: One for each run, all pairs added up.
    """

    title: str
    potential: float
    mtu: int
    published: tuple[float, float] | None
    results: list[Result] = field(default_factory=list)

    @property
    def payload(self) -> float:
        """What of the potential is left for TCP payload, Mbit/s."""
        return self.potential * tcp_share(self.mtu)

    @property
    def reached(self) -> float:
        """The median, as a share of that."""
        return median(one.megabits for one in self.results) / self.payload

    def row(self) -> tuple[str, ...]:
        """For the table."""
        rates = [one.megabits for one in self.results]
        published = ("", "", "")
        if self.published:
            potential, actual = self.published
            published = (f"{potential:g}", f"{actual:g}", f"{actual / potential:.3f}")
        return (
            self.title,
            f"{self.potential:.0f}",
            f"{self.payload:.0f}",
            spread(rates, "{:.1f}"),
            f"{self.reached:.3f}",
            f"{median(rates) / self.potential:.3f}",
            *published,
        )


HEADER = (
    "test",
    "potential, Mbit/s",
    "TCP payload of it",
    "actual, Mbit/s",
    "of the payload",
    "of the potential",
    "reference 1: potential, Gbit/s",
    "actual",
    "of the potential",
)


def run(options: Options, say: Say) -> Report:
    """Runs the tests in the lab and writes the report.

    Raises:
        MeasureError: They could not run, or the routers let less through than they should; then the report is written
            all the same.
    """
    known = [one.name for one in TESTS]
    if unknown := set(options.tests) - set(known):
        raise MeasureError(f"no test {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    overhead = Overhead()
    with topology.lab(options.folder, options.port, say, egress_scale=options.scale) as opened:
        chosen = [test for test in TESTS if test.name in (options.tests or known)]
        outcomes = [_in_lab(test, opened, options, overhead, say) for test in chosen]
    factor = f"1/{1 / options.scale:.0f}" if options.scale < 1 else f"{options.scale:g}"
    below = [
        f"Caps of machine types times {factor}, for each VM, all of its NICs together. Segmentation offload is off at "
        "the ends, so that a packet is a packet.",
    ]
    return _tell(outcomes, options.report, options.command, below, overhead, least=AT_LEAST)


def run_between(
    pairs: Sequence[Pair],
    *,
    machine: str,
    routers: int,
    mtu: int,
    streams: int,
    repeat: int,
    seconds: float,
    report: Path,
    command: str,
    say: Say,
) -> Report:
    """Runs many streams, then one, between VMs that there are already: the cloud's.

    Args:
        pairs: Whom to let send to whom; all at the same time.
        machine: Machine type of the routers.
        routers: How many there are.
        mtu: Of the path.
        streams: How many are many, all pairs together.
        repeat: Runs of each.
        seconds: Length of a run.
        report: Where the results go.
        command: What the user typed.
        say: Gets a line now and then.

    Raises:
        MeasureError: Something cannot be reached, or the machine type's bandwidth is not known.
    """
    found = parse(machine)
    if found is None or found.gbps is None:
        raise MeasureError(f"machine {machine!r}: what it may send is not known; multinic/machines.py lists the series")
    overhead, outcomes = Overhead(), []
    for many in (True, False):
        used = routers if many else 1
        title = f"{routers} routers of {machine}, {f'{streams} streams' if many else 'one stream'}"
        outcome = Outcome(title, found.gbps * 1000 * used, mtu, None)
        _measure(outcome, pairs if many else pairs[:1], streams if many else 1, repeat, seconds, overhead, say)
        outcomes.append(outcome)
    gigabytes = sum(one.megabits for each in outcomes for one in each.results) * seconds / 8000
    note = f"About {gigabytes:.0f} GB were sent; what crosses zones is charged."
    return _tell(outcomes, report, command, [note], overhead, least=0)


def _in_lab(test: Test, opened: Lab, options: Options, overhead: Overhead, say: Say) -> Outcome:
    say(f"\n── {test.title} ──")
    machine = parse(test.machine)
    assert machine is not None and machine.gbps is not None
    shape = topology.Shape(
        machine=test.machine,
        zones=test.routers,
        clients=2 if test.many else 1,
        servers=2 if test.many else 1,
        mtu=MTU,
    )
    outcome = Outcome(test.title, machine.gbps * 1000 * options.scale * test.routers, MTU, test.published)
    with topology.fleet(opened, shape, say) as fleet, contextlib.ExitStack() as stack:
        pairs = []
        for client, server in zip(fleet.clients, fleet.servers, strict=True):
            pairs.append(Pair(fleet.shell(client.name), fleet.shell(server.name), server.address))
            for end in (client, server):
                place = stack.enter_context(wire.of_guest(opened.folder, end.name, end.address))
                place.shell.run(["ethtool", "-K", place.device, "tso", "off", "gso", "off", "gro", "off"])
        streams = options.streams if test.many else 1
        _measure(outcome, pairs, streams, options.repeat, options.seconds, overhead, say)
    return outcome


def _measure(
    outcome: Outcome,
    pairs: Sequence[Pair],
    streams: int,
    repeat: int,
    seconds: float,
    overhead: Overhead,
    say: Say,
) -> None:
    each = max(1, streams // len(pairs))
    tests = [
        Traffic(
            pair.client,
            pair.server,
            pair.address,
            each,
            seconds,
            WARM_UP_SECONDS,
            CONGESTION,
            # Two pairs may have the same server.
            port=iperf.PORT + number * each,
        )
        for number, pair in enumerate(pairs)
    ]
    for number in range(1, repeat + 1):
        outcome.results.append(iperf.run(*tests))
        overhead.sent(seconds + WARM_UP_SECONDS)
        say(f"run {number} of {repeat}: {outcome.results[-1].megabits:.1f} of {outcome.payload:.1f} Mbit/s")


def _tell(
    outcomes: Sequence[Outcome],
    folder: Path,
    command: str,
    below: Sequence[str],
    overhead: Overhead,
    *,
    least: float,
) -> Report:
    report = Report("routers", "Bandwidth through the routers, potential against actual.", command)
    share = tcp_share(outcomes[0].mtu)
    report.table(
        "Bandwidth through the routers",
        [HEADER, *(one.row() for one in outcomes)],
        f"TCP payload is {share:.3f} of the bytes on the wire at MTU {outcomes[0].mtu}: IP 20, TCP 20, timestamps 12, "
        "Ethernet 14 bytes a packet. Reference 1's figures are from the cloud; compare its share with ours.",
        *below,
    )
    report.table(
        "The engine's figures",
        [
            (
                "test",
                "streams",
                "processes",
                "least and greatest stream, Mbit/s",
                "sent again",
                "window, KiB",
                "CPU: ends",
            ),
            *(_engine_row(one) for one in outcomes),
        ],
        f"iperf3 with {CONGESTION}, {WARM_UP_SECONDS:g} s of warm-up not counted; medians of "
        f"{len(outcomes[0].results)} runs, least and greatest in brackets.",
        overhead.line(),
    )
    report.data["tests"] = [{**asdict(one), "payload": one.payload, "reached": one.reached} for one in outcomes]
    report.write(folder, lambda figure: _draw(figure, outcomes))
    if low := [f"{one.title}: {one.reached:.3f}" for one in outcomes if one.reached < least]:
        raise MeasureError(
            f"the routers should let {least} of the TCP payload through, but: {'; '.join(low)}. See {folder}/routers.md"
        )
    return report


def _engine_row(one: Outcome) -> tuple[str, ...]:
    streams = [rate for result in one.results for rate in result.per_stream]
    return (
        one.title,
        str(one.results[0].streams),
        str(one.results[0].processes),
        f"{min(streams):.1f} to {max(streams):.1f}",
        spread([result.retransmits for result in one.results]),
        spread([result.cwnd_kib for result in one.results]),
        f"{median(r.sender_cpu for r in one.results):.0f} % and {median(r.receiver_cpu for r in one.results):.0f} %",
    )


def _draw(figure: Any, outcomes: Sequence[Outcome]) -> None:
    axis = figure.subplots()
    places = range(len(outcomes))
    axis.bar([p - 0.2 for p in places], [one.reached * tcp_share(one.mtu) for one in outcomes], 0.38, label="here")
    published = [one.published[1] / one.published[0] if one.published else 0 for one in outcomes]
    axis.bar([p + 0.2 for p in places], published, 0.38, color="tab:gray", label="published by reference 1")
    share = tcp_share(outcomes[0].mtu)
    share = tcp_share(outcomes[0].mtu)
    axis.axhline(share, color="tab:red", linewidth=1, linestyle="--", label="all that the MTU lets through")
    axis.set_xticks(list(places), [one.title.replace(", ", "\n") for one in outcomes], fontsize=8)
    axis.set_ylabel("share of the potential")
    axis.set_ylim(0, 1)
    axis.legend(fontsize=8, loc="lower right")

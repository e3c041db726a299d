"""`multinic bench routers`: reference 1's four bandwidth tests, potential against actual.

In the lab each VM's cap on what it sends (all NICs together, as Google Cloud counts) is scaled down by a stated factor,
so that the machine below has CPU to spare and the figures say something about the routers. In the cloud the same
streams run between the user's own VMs, over the real machines.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from multinic.lab.client import Lab
from multinic.machines import parse
from multinic.measure import iperf, topology
from multinic.measure.engine import wire
from multinic.measure.errors import MeasureError, WordError
from multinic.measure.iperf import Traffic
from multinic.measure.report import Overhead, Report
from multinic.measure.routers_report import Outcome, tell
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


def run(options: Options, say: Say) -> Report:
    """Runs the tests in the lab and writes the report.

    Raises:
        MeasureError: They could not run, or the routers let less through than they should; then the report is written
            all the same.
    """
    known = [one.name for one in TESTS]
    if unknown := set(options.tests) - set(known):
        raise WordError(f"no test {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    overhead = Overhead()
    with topology.lab(options.folder, options.port, say, egress_scale=options.scale) as opened:
        chosen = [test for test in TESTS if test.name in (options.tests or known)]
        outcomes = [_in_lab(test, opened, options, overhead, say) for test in chosen]
    factor = f"1/{1 / options.scale:.0f}" if options.scale < 1 else f"{options.scale:g}"
    below = [
        f"Caps of machine types times {factor}, for each VM, all of its NICs together. Segmentation offload is off at "
        "the ends, so that a packet is a packet.",
    ]
    return tell(outcomes, options.report, options.command, below, overhead, warm_up=WARM_UP_SECONDS, least=AT_LEAST)


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
    return tell(outcomes, report, command, [note], overhead, warm_up=WARM_UP_SECONDS, least=0)


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

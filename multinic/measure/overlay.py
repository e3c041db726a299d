"""`multinic bench overlay`: what an overlay network costs with Docker's defaults, why, and after the cure.

After a published test of Docker Swarm's overlay network on VMs: host to host about 1 Gbit/s, container to container
about 340 Mbit/s, since the hosts' NICs had MTU 9001 and Docker's 1500; full speed after the overlay was made again with
``com.docker.network.driver.mtu=9001``. A real Docker Engine and a real swarm of two nodes, once on a plain link of MTU
9001, once in two VPC networks of Google Cloud's largest MTU across the lab's routers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from multinic.measure import iperf, overlay_report, topology
from multinic.measure.engine import wire
from multinic.measure.engine.node import Node, swarm
from multinic.measure.errors import MeasureError, WordError
from multinic.measure.iperf import Result, Traffic
from multinic.measure.limit import LIMITS, Limit
from multinic.measure.mtu import docker, path
from multinic.measure.mtu.cures import OPTION, Finding
from multinic.measure.overlay_report import AFTER_AT_LEAST, BEFORE_AT_MOST, Comparison
from multinic.measure.report import Overhead, Report, spread
from multinic.measure.shell import Shell
from multinic.measure.topology import Say

NETWORK = "measured"
WARM_UP_SECONDS = 2.0
STARTING_SECONDS = 4.0
"""So much longer run several streams, a process each: where packets are dropped they do not begin at the same moment,
as the connections that control them lose some too, and only the time that they share counts."""
CONGESTION = "cubic"
"""Linux's default, whatever this machine's is."""


@dataclass(frozen=True)
class SetUp:
    """Where the two hosts are.

    Attributes:
        name: As the command line names it.
        title: For people.
        open: Gives the two places and the routers between them for as long as its block lasts.
    """

    name: str
    title: str
    open: Callable[[Options, Say], contextlib.AbstractContextManager[tuple[wire.Place, wire.Place, list[Shell]]]]


@dataclass(frozen=True)
class Options:
    """What the command may be told.

    Attributes:
        folder: Of the lab meanwhile; removed at the end.
        port: Of its front door.
        report: Where the results go.
        set_ups: Names of set-ups; all where empty.
        repeat: Runs of each kind; the table shows medians.
        seconds: Length of a run.
        streams: Streams of the aggregate; a single one is always measured.
        scale: Factor on all limits, for machines that have no CPU to spare: what is compared are ratios.
        command: What the user typed.
    """

    folder: Path
    port: int
    report: Path
    set_ups: tuple[str, ...] = ()
    repeat: int = 3
    seconds: float = 3
    streams: int = 4
    scale: float = 1
    command: str = "multinic bench overlay"


@contextlib.contextmanager
def _plain(options: Options, say: Say) -> Iterator[tuple[wire.Place, wire.Place, list[Shell]]]:
    with wire.plain_link(9001) as (left, right):
        yield left, right, []


@contextlib.contextmanager
def _google(options: Options, say: Say) -> Iterator[tuple[wire.Place, wire.Place, list[Shell]]]:
    shape = topology.Shape(zones=2, mtu=8896)
    with (
        topology.lab(options.folder, options.port, say) as opened,
        topology.fleet(opened, shape, say) as fleet,
        wire.of_guest(opened.folder, fleet.clients[0].name, fleet.clients[0].address) as left,
        wire.of_guest(opened.folder, fleet.servers[0].name, fleet.servers[0].address) as right,
    ):
        routers = [fleet.shell(router.name) for router in fleet.routers]
        yield replace(left, title="client"), replace(right, title="server"), routers


SET_UPS = (
    SetUp("plain", "two hosts on one link of MTU 9001 (reference 2)", _plain),
    SetUp("google-cloud", "two VPC networks of MTU 8896, across the lab's routers", _google),
)


def run(options: Options, say: Say) -> Report:
    """Runs all of it and writes the report.

    Raises:
        MeasureError: It could not run, or the figures are not what the cure promises; then the report is written all
            the same.
    """
    chosen = [one for one in SET_UPS if one.name in (options.set_ups or [each.name for each in SET_UPS])]
    if unknown := set(options.set_ups) - {one.name for one in SET_UPS}:
        raise WordError(f"no set-up {', '.join(sorted(unknown))}; there are {', '.join(one.name for one in SET_UPS)}")
    for one in chosen:
        if one.open is _google:
            topology.require_guests()
    report = Report("overlay", "Docker Swarm's overlay network, before and after its MTU was set.", options.command)
    overhead = Overhead()
    broken: list[str] = []
    for one in chosen:
        say(f"\n── {one.title} ──")
        with one.open(options, say) as (left, right, routers):
            comparisons, found, engine = _measure(one, left, right, routers, options, overhead, say)
        others = [each for each in found if NETWORK not in each.where]
        overlay_report.tell(report, one.name, comparisons, _mismatch(found), others, engine, options.scale)
        broken += [f"{each.set_up}, {each.limit}, {each.direction}" for each in comparisons if not each.holds]
    heading, rows, below = report.tables[-1]
    report.tables[-1] = (heading, rows, (*below, overhead.line()))
    report.write(options.report, lambda figure: overlay_report.draw(figure, report))
    if broken:
        raise MeasureError(
            f"the overlay should be at most {BEFORE_AT_MOST} of the host's speed before the cure and at least "
            f"{AFTER_AT_LEAST} after it, but: {'; '.join(broken)}. See {options.report}/overlay.md"
        )
    return report


def _measure(
    set_up: SetUp,
    left: wire.Place,
    right: wire.Place,
    routers: Sequence[Shell],
    options: Options,
    overhead: Overhead,
    say: Say,
) -> tuple[list[Comparison], list[Finding], str]:
    walked = path.walk(path.End(left.shell, left.address), path.End(right.shell, right.address), routers)
    hops = " → ".join(f"{hop.name} {hop.mtu}" for hop in walked.hops)
    say(f"{hops}; largest packet that passes: {walked.there.largest} there, {walked.back.largest} back")
    with swarm([(one.title, one.address, one.file) for one in (left, right)], say) as nodes:
        comparisons = [
            Comparison(set_up.title, limit.title, f"{a.title} → {b.title}", streams)
            for limit in _limits(options)
            for a, b, streams in ((left, right, 1), (right, left, 1), (left, right, options.streams))
        ]
        _phase("before", 0, nodes, (left, right), comparisons, options, overhead, say)
        found = docker.judge(docker.networks(nodes[0].shell), walked.mtu, left.title)
        mismatch = _mismatch(found)
        say(f"found: {mismatch.where}: {mismatch.text}")
        say(f"cure: {mismatch.cures[0]}")
        for node in nodes:
            node.remove_container(f"container-{node.name}")
        _remove_network(nodes)
        _phase("after", mismatch.option, nodes, (left, right), comparisons, options, overhead, say)
        left_over = [one for one in docker.judge(docker.networks(nodes[0].shell), walked.mtu) if NETWORK in one.where]
        if left_over:
            raise MeasureError(f"the cure did not cure: {left_over[0].text}")
        return comparisons, found, nodes[0].engine()


def _mismatch(found: Sequence[Finding]) -> Finding:
    """What is wrong with the overlay that is measured."""
    for one in found:
        if NETWORK in one.where:
            return one
    raise MeasureError("no mismatch was found on the overlay with Docker's defaults: nothing to cure here")


def _limits(options: Options) -> list[Limit]:
    return [limit.scaled(options.scale) for limit in LIMITS]


def _remove_network(nodes: Sequence[Node]) -> None:
    nodes[0].docker("network", "rm", NETWORK)
    # The other node learns of it a moment later; a network of the same name must not meet the old one there.
    for _ in range(100):
        if all(NETWORK not in node.docker("network", "ls", "--format", "{{.Name}}").split() for node in nodes):
            return
    raise MeasureError(f"the network {NETWORK} did not go away")


def _phase(
    phase: str,
    option: int,
    nodes: Sequence[Node],
    places: Sequence[wire.Place],
    comparisons: Sequence[Comparison],
    options: Options,
    overhead: Overhead,
    say: Say,
) -> None:
    extra = ["--opt", f"{OPTION}={option}"] if option else []
    nodes[0].docker("network", "create", "--driver", "overlay", "--attachable", *extra, NETWORK)
    for node in nodes:
        node.run_container(f"container-{node.name}", NETWORK)
        node.without_offloads()
    by_title = {place.title: (place, node) for place, node in zip(places, nodes, strict=True)}
    for limit in _limits(options):
        for place in places:
            limit.apply(place.shell, place.device)
        for one in comparisons:
            if one.limit != limit.title:
                continue
            (sender, from_node), (receiver, to_node) = (by_title[title] for title in one.direction.split(" → "))
            inside = [(node, f"container-{node.name}") for node in (from_node, to_node)]
            address = to_node.address_in(inside[1][1], NETWORK)
            contained: list[Result] = getattr(one, phase)
            ratios: list[float] = getattr(one, f"{phase}_ratios")
            for _ in range(options.repeat):
                host = _run(sender.shell, receiver.shell, receiver.address, one.streams, options, overhead)
                ends = [node.in_container(name) for node, name in inside]
                overlay = _run(ends[0], ends[1], address, one.streams, options, overhead)
                one.host.append(host)
                contained.append(overlay)
                ratios.append(overlay.megabits / host.megabits)
            rates = [spread([each.megabits for each in results]) for results in (one.host, contained)]
            say(f"{phase}: {one.label}: host {rates[0]}, container {rates[1]} Mbit/s")


def _run(sender: Shell, receiver: Shell, address: str, streams: int, options: Options, overhead: Overhead) -> Result:
    seconds = options.seconds + (STARTING_SECONDS if streams > 1 else 0)
    traffic = Traffic(sender, receiver, address, streams, seconds, WARM_UP_SECONDS, CONGESTION)
    result = iperf.run(traffic)
    overhead.sent(traffic.seconds + traffic.warm_up)
    return result

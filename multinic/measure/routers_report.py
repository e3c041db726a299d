"""What `multinic bench routers` came to: potential against actual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from multinic.measure.errors import MeasureError
from multinic.measure.iperf import Result
from multinic.measure.mtu.encapsulation import tcp_share
from multinic.measure.report import Overhead, Report, spread


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


def tell(
    outcomes: Sequence[Outcome],
    folder: Path,
    command: str,
    below: Sequence[str],
    overhead: Overhead,
    *,
    warm_up: float,
    least: float,
) -> Report:
    """Writes the report.

    Args:
        outcomes: What was measured.
        folder: Where the report goes.
        command: What the user typed.
        below: Lines below the first table.
        overhead: What the benchmark cost.
        warm_up: Seconds that are not counted.
        least: Share of the TCP payload that each must reach.

    Raises:
        MeasureError: One did not reach it; the report is written all the same.
    """
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
        f"iperf3 with {outcomes[0].results[0].congestion}, {warm_up:g} s of warm-up not counted; medians of "
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
    axis.axhline(share, color="tab:red", linewidth=1, linestyle="--", label="all that the MTU lets through")
    axis.set_xticks(list(places), [one.title.replace(", ", "\n") for one in outcomes], fontsize=8)
    axis.set_ylabel("share of the potential")
    axis.set_ylim(0, 1)
    axis.legend(fontsize=8, loc="lower right")

"""What `multinic bench overlay` came to: containers against hosts, before and after the cure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from multinic.measure.iperf import Result
from multinic.measure.mtu.cures import Finding
from multinic.measure.report import Report, spread

PUBLISHED = ("published by reference 2", "about 1000", "about 340", "0.34", "full speed", "")
BEFORE_AT_MOST = 0.6
AFTER_AT_LEAST = 0.97


@dataclass
class Comparison:
    """One set-up under one limit, one direction, one number of streams.

    Attributes:
        set_up: Its title.
        limit: Its title.
        direction: Who sends to whom.
        streams: Number of streams.
        host: Host to host, Mbit/s and the rest, of both phases.
        before: Container to container with Docker's defaults.
        after: Container to container after the cure.
        before_ratios: Container to host, each pair measured one after the other.
        after_ratios: Likewise after the cure.
    """

    set_up: str
    limit: str
    direction: str
    streams: int
    host: list[Result] = field(default_factory=list)
    before: list[Result] = field(default_factory=list)
    after: list[Result] = field(default_factory=list)
    before_ratios: list[float] = field(default_factory=list)
    after_ratios: list[float] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether the cure does what it should."""
        return median(self.before_ratios) <= BEFORE_AT_MOST and median(self.after_ratios) >= AFTER_AT_LEAST

    @property
    def label(self) -> str:
        """Limit, direction and streams."""
        return f"{self.limit}; {self.direction}, {self.streams} stream{'s' if self.streams > 1 else ''}"

    def row(self) -> tuple[str, ...]:
        """For the table, once all has been measured."""
        return (
            self.label,
            *(spread([one.megabits for one in results]) for results in (self.host, self.before)),
            f"{median(self.before_ratios):.2f}",
            spread([one.megabits for one in self.after]),
            f"{median(self.after_ratios):.2f}",
        )


def tell(
    report: Report,
    name: str,
    comparisons: Sequence[Comparison],
    mismatch: Finding,
    others: Sequence[Finding],
    engine: str,
    scale: float,
) -> None:
    """Adds one set-up's tables and figures.

    Args:
        report: What they are added to.
        name: Of the set-up.
        comparisons: What was measured.
        mismatch: What was wrong with the overlay that was measured.
        others: What else was found.
        engine: Version of the Docker Engine.
        scale: Factor on all limits.
    """
    header = (
        "limit of each host; direction",
        "host to host, Mbit/s",
        "containers, Docker's defaults",
        "ratio",
        "containers, after the cure",
        "ratio",
    )
    title = comparisons[0].set_up
    report.table(
        title[0].upper() + title[1:],
        [header, *(one.row() for one in comparisons), PUBLISHED],
        f"Found: {mismatch.where}: {mismatch.text}.",
        f"Cure: `{mismatch.cures[0]}` (Docker subtracts 50 from the option itself).",
        *(f"Also found: {one.where}: {one.text}." for one in others),
        *([f"All limits are scaled by {scale:g}; reference 2's figures are not."] if scale != 1 else []),
    )
    report.table(
        "Engine's figures for the same runs",
        [
            (
                header[0],
                "",
                "segment, bytes",
                "sent again",
                "window, KiB",
                "sender's CPU",
                "receiver's CPU",
            ),
            *(
                (one.label, what, *_engine(results))
                for one in comparisons
                for what, results in (("hosts", one.host), ("before", one.before), ("after", one.after))
            ),
        ],
        f"Docker Engine {engine}, iperf3, {comparisons[0].host[0].congestion}, medians of "
        f"{len(comparisons[0].before)} runs; least and greatest in brackets. Segmentation offload is off, so that a "
        "packet is a packet. Each ratio is of two runs, one after the other.",
    )
    report.data.setdefault("set_ups", []).append(
        {
            "name": name,
            "title": title,
            "engine": engine,
            "findings": [{**asdict(one), "severity": one.severity.value} for one in (mismatch, *others)],
            "comparisons": [asdict(one) for one in comparisons],
        }
    )


def _engine(results: Sequence[Result]) -> tuple[str, ...]:
    return (
        f"{median(one.mss for one in results):.0f}",
        spread([one.retransmits for one in results]),
        spread([one.cwnd_kib for one in results]),
        f"{median(one.sender_cpu for one in results):.0f} %",
        f"{median(one.receiver_cpu for one in results):.0f} %",
    )


def draw(figure: Any, report: Report) -> None:
    """Bars of one stream: hosts, containers before, containers after."""
    set_ups = report.data["set_ups"]
    axes = figure.subplots(1, len(set_ups), sharey=True, squeeze=False)[0]
    for axis, one in zip(axes, set_ups, strict=True):
        shown = [each for each in one["comparisons"] if each["streams"] == 1]
        bars = (("host", "host to host"), ("before", "containers, Docker's defaults"), ("after", "containers, cured"))
        for offset, ((what, label), colour) in enumerate(zip(bars, ("tab:gray", "tab:red", "tab:green"), strict=True)):
            heights = [median(result["megabits"] for result in each[what]) for each in shown]
            places = [index + (offset - 1) * 0.27 for index in range(len(shown))]
            axis.bar(places, heights, 0.25, color=colour, label=label)
        ticks = [f"{each['limit'].split(', ')[1]}\n{each['direction']}" for each in shown]
        axis.set_xticks(range(len(shown)), ticks, fontsize=6)
        axis.set_title(one["title"], fontsize=9)
    axes[0].set_ylabel("Mbit/s, one stream")
    axes[0].legend(fontsize=7)

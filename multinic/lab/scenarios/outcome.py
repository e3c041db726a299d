"""What scenarios came to: a row for each, in the form of the demo's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from statistics import median

from multinic.lab.scenarios import plot, report
from multinic.lab.scenarios.figures import Figures, Mark

PROMISED_GAP_SECONDS = 0.2
"""What a planned event may cost a stream: less than the first retransmission of TCP (Linux), so that none is needed."""
COLOURS = ("tab:red", "tab:purple", "tab:green", "tab:brown", "tab:olive")


@dataclass(kw_only=True)
class Outcome(Figures):
    """One run of one scenario.

    Attributes:
        scenario: Its name.
        planned: Whether somebody does it on purpose.
        kept: Whether the promise for planned events was kept; None for others.
        marks_s: What happened when.
        costs_s: What the longest gap is made of; empty where there is none to speak of.
        why: What the connections notice of it, and why.
        label: What happens, for people.
    """

    scenario: str
    planned: bool
    kept: bool | None
    marks_s: dict[str, float] = field(default_factory=dict)
    costs_s: dict[str, float] = field(default_factory=dict)
    why: str
    label: str

    @property
    def title(self) -> str:
        """For the plot."""
        return self.label

    @property
    def marks(self) -> list[Mark]:
        """For the plot."""
        found = {"event": 0.0, **self.marks_s}
        return [(what, moment, colour) for (what, moment), colour in zip(found.items(), cycle(COLOURS), strict=False)]


def promise(gap: float, failed: int, lost: int) -> bool:
    """Whether a planned event cost nothing: gap that it caused in seconds, failed new connections, lost streams."""
    return gap <= PROMISED_GAP_SECONDS and not failed and not lost


RETRANSMISSION = "TCP's next retransmission"


def costs(span: tuple[float, float], steps: Sequence[tuple[str, str]], marks: Mapping[str, float]) -> dict[str, float]:
    """What a gap is made of, in seconds, in order.

    Args:
        span: When the gap began and ended.
        steps: Name of each step, and the mark with which it ends.
        marks: What happened when.
    """
    began, ended = span
    if not steps or ended - began <= PROMISED_GAP_SECONDS:
        return {}
    moments = [began, *(min(max(marks[mark], began), ended) for _, mark in steps), ended]
    names = [*(name for name, _ in steps), RETRANSMISSION]
    return {name: round(to - at, 3) for name, at, to in zip(names, moments, moments[1:], strict=False)}


def by_scenario(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    """The runs of each scenario, in the order of the first ones."""
    names = dict.fromkeys(one.scenario for one in outcomes)
    return [[one for one in outcomes if one.scenario == name] for name in names]


def table(outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """Header and a row for each scenario: medians, and sums of what was lost."""
    rows: list[tuple[str, ...]] = [
        (
            "scenario",
            "event",
            "longest gap",
            "less the machine's own",
            "streams lost",
            "new connections failed",
            "slower than 0.5 s",
            "fleet whole",
            "promise",
            "what the gap is made of",
        )
    ]
    for runs in by_scenario(outcomes):
        gaps = [f"{median(gap):.2f} s" for gap in ([r.longest_gap_s for r in runs], [r.caused_gap_s for r in runs])]
        failed = f"{sum(r.failed_connections for r in runs)} of {sum(r.new_connections for r in runs)}"
        slow = f"{median(r.slow_connections for r in runs):.0f}"
        whole = f"{median(r.ready_s for r in runs):.1f} s"
        lost = str(sum(r.lost_streams for r in runs))
        name = (runs[0].scenario, _label(runs))
        rows.append((*name, *gaps, lost, failed, slow, whole, _kept(runs), _made_of(runs)))
    return rows


def _label(runs: Sequence[Outcome]) -> str:
    return runs[0].label if len(runs) == 1 else f"{runs[0].label} ({len(runs)} runs)"


def _kept(runs: Sequence[Outcome]) -> str:
    kept = sum(run.kept is True for run in runs)
    if runs[0].kept is None:
        return ""
    return "kept" if kept == len(runs) else "broken" if not kept else f"kept {kept} of {len(runs)}"


def _made_of(runs: Sequence[Outcome]) -> str:
    """Of the run whose gap is the median one, since medians of the parts do not add up."""
    middle = sorted(runs, key=lambda run: run.longest_gap_s)[(len(runs) - 1) // 2]
    return ", ".join(f"{what} {seconds:.2f} s" for what, seconds in middle.costs_s.items())


def notes(outcomes: Sequence[Outcome]) -> list[str]:
    """What a reader must know to read the table."""
    first = outcomes[0]
    lines = [
        f"Promise for what is planned: gap of a stream, less the machine's own, ≤ {PROMISED_GAP_SECONDS:g} s, no new "
        "connection failed, no stream lost. The machine's own: pauses at that moment of streams that pass no router.",
        f"Pulumi program run by: {first.engine}. Boot delay {first.boot_delay_s:g} s.",
    ]
    for runs in by_scenario(outcomes):
        marks = dict.fromkeys(what for run in runs for what in run.marks_s)
        middle = {what: median(run.marks_s[what] for run in runs if what in run.marks_s) for what in marks}
        steps = ", ".join(f"{what} {moment:.1f} s" for what, moment in middle.items())
        lines.append(f"{runs[0].label}: {runs[0].why} ({steps}).{_lost_packets(runs)}")
    return lines


def _lost_packets(runs: Sequence[Outcome]) -> str:
    spans = [span for run in runs for span in run.lost_packets_s]
    if not spans:
        return ""
    told = ", ".join(f"{end - start:.2f} s at {start:.1f} s" for start, end in spans)
    return f" Not counted, since nothing changed before it and one retransmission ended it: {told}."


def write(outcomes: Sequence[Outcome], folder: Path) -> list[Path]:
    """Writes `report.json`, `report.md` and the plot, and returns the files."""
    below = [line for note in notes(outcomes) for line in (note, "")]
    report.write_files(outcomes, report.markdown_table(table(outcomes), below[:-1]), folder)
    drawn = plot.draw(outcomes, folder, name="scenarios", event="the event")
    return [folder / "report.json", folder / "report.md", *drawn]


def as_text(outcomes: Sequence[Outcome]) -> list[str]:
    """The table and its notes as lines for a terminal."""
    return report.text_table(table(outcomes), notes(outcomes))

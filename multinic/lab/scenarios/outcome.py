"""What scenarios came to: a row for each, in the form of the demo's report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

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
        why: What the connections notice of it, and why.
        label: What happens, for people.
    """

    scenario: str
    planned: bool
    kept: bool | None
    marks_s: dict[str, float] = field(default_factory=dict)
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
    """Whether a planned event cost nothing: longest gap in seconds, failed new connections, lost streams."""
    return gap <= PROMISED_GAP_SECONDS and not failed and not lost


def table(outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """Header and a row for each outcome."""
    rows: list[tuple[str, ...]] = [
        (
            "event",
            "longest gap",
            "streams lost",
            "new connections failed",
            "slower than 0.5 s",
            "fleet whole",
            "promise",
        )
    ]
    for one in outcomes:
        failed = f"{one.failed_connections} of {one.new_connections}"
        kept = "" if one.kept is None else "kept" if one.kept else "broken"
        figures = (f"{one.longest_gap_s:.2f} s", str(one.lost_streams), failed, str(one.slow_connections))
        rows.append((one.label, *figures, f"{one.ready_s:.1f} s", kept))
    return rows


def notes(outcomes: Sequence[Outcome]) -> list[str]:
    """What a reader must know to read the table."""
    first = outcomes[0]
    lines = [
        f"Promise for what is planned: longest gap of a stream ≤ {PROMISED_GAP_SECONDS:g} s, no new connection failed, "
        "no stream lost.",
        f"Pulumi program run by: {first.engine}. Boot delay {first.boot_delay_s:g} s.",
    ]
    for one in outcomes:
        steps = ", ".join(f"{what} {moment:.1f} s" for what, moment in one.marks_s.items())
        lines.append(f"{one.label}: {one.why} ({steps}).")
    return lines


def write(outcomes: Sequence[Outcome], folder: Path) -> list[Path]:
    """Writes `report.json`, `report.md` and the plot, and returns the files."""
    below = [line for note in notes(outcomes) for line in (note, "")]
    report.write_files(outcomes, report.markdown_table(table(outcomes), below[:-1]), folder)
    drawn = plot.draw(outcomes, folder, name="scenarios", event="the event")
    return [folder / "report.json", folder / "report.md", *drawn]


def as_text(outcomes: Sequence[Outcome]) -> list[str]:
    """The table and its notes as lines for a terminal."""
    return report.text_table(table(outcomes), notes(outcomes))

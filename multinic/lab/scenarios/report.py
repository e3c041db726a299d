"""What the runs of a scenario came to: `report.json`, a Markdown table, and the same table for a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from multinic.lab.scenarios.figures import Figures, Mark

LADDER_SECONDS = (0.2, 0.6, 1.4, 3.1, 6.5, 13.2, 26.5, 53.7)
"""A silent path is noticed at the next retransmission: 0.2 s, doubling, plus about 5 % (Linux; RFC 6298)."""

PUBLISHED_SECONDS = 45
"""The pause that reference 1 published for a kernel panic, on Google Cloud."""


@dataclass(kw_only=True)
class Run(Figures):
    """One kill of one fleet.

    Attributes:
        settings: ``ours`` or ``reference``.
        detect_s: Until each load balancer had stopped sending new connections to the router.
        heal_s: Until the router's VM ran again, rebooted or recreated; `healed_by` says which.
    """

    settings: str
    detect_s: float
    heal_s: float
    healed_by: str

    @property
    def title(self) -> str:
        """For the plot."""
        return TITLES[self.settings]

    @property
    def marks(self) -> list[Mark]:
        """For the plot."""
        return [
            ("kill", 0.0, "tab:red"),
            ("detected", self.detect_s, "tab:purple"),
            (self.healed_by, self.heal_s, "tab:green"),
        ]


TITLES = {"ours": "multinic", "reference": "reference 1's settings"}
ROWS: tuple[tuple[str, Callable[[Run], float], str], ...] = (
    ("longest gap of a stream", lambda run: run.longest_gap_s, "{:.1f} s"),
    ("streams lost", lambda run: run.lost_streams, "{:.0f}"),
    ("new connections failed", lambda run: run.failed_connections, "{:.0f}"),
    ("new connections slower than 0.5 s", lambda run: run.slow_connections, "{:.0f}"),
    ("time to detect", lambda run: run.detect_s, "{:.1f} s"),
    ("time until the router runs again", lambda run: run.heal_s, "{:.1f} s"),
    ("time until the fleet is whole", lambda run: run.ready_s, "{:.1f} s"),
)


def table(runs: Sequence[Run]) -> list[tuple[str, ...]]:
    """Header and rows: a column of medians for each kind of settings, and what reference 1 published."""
    kinds = [kind for kind in ("ours", "reference") if any(run.settings == kind for run in runs)]
    header = ["after a router's kernel panic"]
    for kind in kinds:
        count = sum(run.settings == kind for run in runs)
        header.append(f"{TITLES[kind]} (median of {count})" if count > 1 else TITLES[kind])
    rows = [(*header, "published by reference 1")]
    for title, value, form in ROWS:
        cells = [form.format(median(value(run) for run in runs if run.settings == kind)) for kind in kinds]
        published = f"about {PUBLISHED_SECONDS} s" if title == ROWS[0][0] else ""
        rows.append((title, *cells, published))
    return rows


def notes(runs: Sequence[Run]) -> list[str]:
    """What a reader must know to read the table."""
    run = runs[0]
    ladder = ", ".join(f"{step:g}" for step in LADDER_SECONDS)
    lines = [
        f"Pulumi program run by: {run.engine}. Boot delay {run.boot_delay_s:g} s, added since guests boot faster here "
        "than VMs of a cloud.",
        f"A TCP sender notices that its path works again at its next retransmission, so a gap ends on a step of this "
        f"ladder: {ladder} s.",
    ]
    lines.append(
        f"Memory: {max(r.lab_mb for r in runs):.0f} MB for the lab itself, "
        f"{max(r.guest_mb for r in runs):.0f} MB for the largest guest. "
        f"From the program's start until all routers served: {median(r.up_s for r in runs):.1f} s."
    )
    kinds = {kind: [r.longest_gap_s for r in runs if r.settings == kind] for kind in ("ours", "reference")}
    if kinds["ours"] and kinds["reference"]:
        ratio = median(kinds["reference"]) / median(kinds["ours"])
        lines.append(f"The longest gap is {ratio:.1f} times shorter than with reference 1's settings.")
    return lines


def markdown(runs: Sequence[Run]) -> str:
    """The table and its notes as Markdown."""
    return markdown_table(table(runs), notes(runs))


def as_text(runs: Sequence[Run]) -> list[str]:
    """The table and its notes as lines for a terminal."""
    return text_table(table(runs), notes(runs))


def markdown_table(rows: Sequence[Sequence[str]], below: Sequence[str]) -> str:
    """Header, rows and lines below them as Markdown."""
    head, *body = rows
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in body)]
    return "\n".join([*lines, "", *below]) + "\n"


def text_table(rows: Sequence[Sequence[str]], below: Sequence[str]) -> list[str]:
    """Header, rows and lines below them for a terminal."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [lines[0], "─" * len(lines[0]), *lines[1:], "", *below]


def write(runs: Sequence[Run], folder: Path) -> None:
    """Writes `report.json` and `report.md`."""
    write_files(runs, markdown(runs), folder)


def write_files(runs: Sequence[Figures], text: str, folder: Path) -> None:
    """Writes `report.json`, a list `runs` of what `Figures.as_json` says, and `report.md`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps({"runs": [run.as_json() for run in runs]}, indent=2) + "\n")
    (folder / "report.md").write_text(text)

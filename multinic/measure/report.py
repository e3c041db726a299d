"""What a benchmark came to: tables for a terminal and for documents, JSON, a plot."""

from __future__ import annotations

import json
import os
import platform
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from multinic.lab.scenarios.report import markdown_table, text_table

Rows = Sequence[Sequence[str]]


@dataclass
class Report:
    """The results of one command.

    Attributes:
        name: Of the files.
        title: In a sentence.
        command: What made it, as a user types it.
        tables: Heading, header and rows, lines below.
        data: All figures, for other programs.
        files: What was written.
    """

    name: str
    title: str
    command: str
    tables: list[tuple[str, Rows, Sequence[str]]] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)

    def table(self, heading: str, rows: Rows, *below: str) -> None:
        """Adds a table: its header is the first of `rows`."""
        self.tables.append((heading, rows, below))

    def text(self) -> list[str]:
        """All tables for a terminal."""
        lines: list[str] = []
        for heading, rows, below in self.tables:
            lines += ["", heading, "", *text_table(rows, below)]
        return lines

    def markdown(self) -> str:
        """All tables as a block for a document, with the command that made it."""
        parts = [f"{self.title}\n\n```sh\n{self.command}\n```\n"]
        for heading, rows, below in self.tables:
            spaced = [line for note in below for line in (note, "")][:-1]
            parts.append(f"**{heading}**\n\n{markdown_table(rows, spaced)}")
        return "\n".join(parts)

    def write(self, folder: Path, draw: Callable[[Any], None] | None = None) -> list[Path]:
        """Writes NAME.json, NAME.md and, with `draw`, NAME.svg and NAME.png; returns the files.

        Args:
            folder: Where to.
            draw: Gets matplotlib's figure and draws on it.
        """
        folder.mkdir(parents=True, exist_ok=True)
        written = [folder / f"{self.name}.json", folder / f"{self.name}.md"]
        document = {"title": self.title, "command": self.command, "host": host(), **self.data}
        written[0].write_text(json.dumps(document, indent=2) + "\n")
        written[1].write_text(self.markdown())
        if draw is not None:
            written += plot(folder / self.name, draw)
        self.files = written
        return written


def plot(path: Path, draw: Callable[[Any], None]) -> list[Path]:
    """Draws an SVG and a PNG."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams["svg.hashsalt"] = "multinic"
    figure = plt.figure(figsize=(10, 5))
    draw(figure)
    figure.tight_layout()
    files = [path.with_suffix(".svg"), path.with_suffix(".png")]
    figure.savefig(files[0], metadata={"Date": None})
    figure.savefig(files[1], dpi=120)
    plt.close(figure)
    return files


def host() -> dict[str, Any]:
    """What the figures were measured on."""
    return {"kernel": platform.release(), "cpus": os.cpu_count(), "machine": platform.machine()}


def spread(values: Sequence[float], form: str = "{:.0f}") -> str:
    """The median, with the smallest and the largest where there are several."""
    if len(values) == 1:
        return form.format(values[0])
    return f"{form.format(median(values))} ({form.format(min(values))} to {form.format(max(values))})"


class Overhead:
    """What the benchmark itself costs: CPU of this process, and the time in which nothing was sent."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._cpu = self._own()
        self._traffic = 0.0

    @staticmethod
    def _own() -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime

    def sent(self, seconds: float) -> None:
        """Counts time in which traffic ran."""
        self._traffic += seconds

    def line(self) -> str:
        """A sentence for the report."""
        seconds = time.monotonic() - self._began
        share = (self._own() - self._cpu) / seconds
        if not self._traffic:
            return f"The benchmark's own cost: {share:.1%} of one CPU on average, over {seconds:.0f} s."
        return (
            f"The benchmark's own cost: {share:.1%} of one CPU on average; of its {seconds:.0f} s traffic ran for "
            f"{self._traffic:.0f} s, the rest was bringing up, starting iperf3 and tearing down."
        )

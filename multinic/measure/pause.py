"""`multinic bench pause`: what connections notice of each event, with our settings and with reference 1's.

The scenarios and what they measure are the lab's own (`multinic lab run`); here they are repeated, each time on a fresh
fleet, and compared.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from multinic.lab.errors import LabError
from multinic.lab.scenarios import run as scenarios
from multinic.lab.scenarios.settings import OURS, REFERENCE
from multinic.measure.errors import WordError
from multinic.measure.report import Overhead, Report, spread
from multinic.measure.topology import Say

SETTINGS = {"ours": OURS, "reference": REFERENCE}
TITLES = {"ours": "multinic", "reference": "reference 1's settings"}
PUBLISHED = {"panic": "about 45", "heal": "30 to 45 (auto-healing)"}
"""Seconds that reference 1's README names, on Google Cloud."""
EVENTS = ("drain", "heal", "panic", "power-cut")
"""Those that need no second run of the Pulumi program."""


@dataclass(frozen=True)
class Options:
    """What the command may be told.

    Attributes:
        folder: The lab's folder meanwhile; removed at the end.
        port: Of its front door.
        report: Where the results go.
        events: Names of scenarios.
        settings: ``ours``, ``reference`` or both.
        repeat: Fleets for each settings; every one sees each event once.
        boot_delay: Seconds added to each boot.
        engine: ``auto``, ``pulumi`` or ``in-process``.
        command: What the user typed.
    """

    folder: Path
    port: int
    report: Path
    events: tuple[str, ...] = EVENTS
    settings: tuple[str, ...] = tuple(SETTINGS)
    repeat: int = 3
    boot_delay: float = 0.0
    engine: str = "auto"
    command: str = "multinic bench pause"


def run(options: Options, say: Say) -> Report:
    """Runs all of it and writes the report.

    Raises:
        MeasureError: There are no such settings.
        LabError: A scenario could not be run.
    """
    if unknown := set(options.settings) - set(SETTINGS):
        raise WordError(f"no settings {', '.join(sorted(unknown))}; there are {', '.join(SETTINGS)}")
    wanted = len(scenarios.pick(options.events))
    overhead = Overhead()
    found: list[dict[str, Any]] = []
    # In turn, so that what else this machine does meets both alike.
    for number in range(1, options.repeat + 1):
        for kind in options.settings:
            say(f"\n══ {TITLES[kind]}, fleet {number} of {options.repeat} ══")
            found += [{**one, "settings": kind} for one in _once(kind, wanted, options, say)]
    return _tell(found, options, overhead)


def _once(kind: str, wanted: int, options: Options, say: Say) -> list[dict[str, Any]]:
    folder = options.report / f"{kind}-last"
    shutil.rmtree(folder, ignore_errors=True)
    given = scenarios.Options(
        folder=options.folder,
        report=folder,
        boot_delay=options.boot_delay,
        port=options.port,
        engine=options.engine,
        router=SETTINGS[kind],
    )
    try:
        scenarios.run(options.events, given, say)
    except LabError:
        # A planned event that costs something is a figure here, not a failure; whatever else ended it is one.
        if len(_read(folder)) != wanted:
            raise
    return _read(folder)


def _read(folder: Path) -> list[dict[str, Any]]:
    try:
        runs: list[dict[str, Any]] = json.loads((folder / "report.json").read_text())["runs"]
    except FileNotFoundError:
        return []
    return runs


def _tell(found: Sequence[dict[str, Any]], options: Options, overhead: Overhead) -> Report:
    report = Report("pause", "What connections notice of each event.", options.command)
    rows = [
        (
            "event",
            "settings",
            "longest gap, s",
            "lost streams",
            "failed new",
            "slow new",
            "whole again, s",
            "published, s",
        )
    ]
    for name, label in {one["scenario"]: one["label"] for one in found}.items():
        for kind in options.settings:
            runs = [one for one in found if (one["scenario"], one["settings"]) == (name, kind)]
            rows.append(
                (
                    label,
                    TITLES[kind],
                    spread([one["longest_gap_s"] for one in runs], "{:.2f}"),
                    str(sum(one["lost_streams"] for one in runs)),
                    " of ".join(
                        str(sum(one[key] for one in runs)) for key in ("failed_connections", "new_connections")
                    ),
                    spread([one["slow_connections"] for one in runs]),
                    spread([one["ready_s"] for one in runs], "{:.1f}"),
                    PUBLISHED.get(name, "") if kind == "reference" else "",
                )
            )
    report.table(
        "Longest gap of live TCP streams",
        rows,
        f"Medians of {options.repeat} fleets, least and greatest in brackets; lost and failed are sums. Boot delay "
        f"{options.boot_delay:g} s. Reference 1's figures are from the cloud.",
        overhead.line(),
    )
    report.data["runs"] = list(found)
    report.write(options.report, lambda figure: _draw(figure, found, options.settings))
    return report


def _draw(figure: Any, found: Sequence[dict[str, Any]], kinds: Sequence[str]) -> None:
    axis = figure.subplots()
    labels = {one["scenario"]: one["label"] for one in found}
    for offset, kind in enumerate(kinds):
        gaps = [
            [o["longest_gap_s"] for o in found if (o["scenario"], o["settings"]) == (name, kind)] for name in labels
        ]
        heights = [median(each) for each in gaps]
        places = [index + offset * 0.4 for index in range(len(labels))]
        below = [height - min(each) for height, each in zip(heights, gaps, strict=True)]
        above = [max(each) - height for height, each in zip(heights, gaps, strict=True)]
        axis.barh(places, heights, 0.38, xerr=[below, above], label=TITLES[kind])
    axis.set_yticks([index + 0.2 for index in range(len(labels))], list(labels.values()), fontsize=8)
    axis.set_xlabel("longest gap of a stream, seconds (bars: least to greatest)")
    axis.legend(fontsize=8)

"""Repeated scenarios and their comparison, with the lab's part replaced by its report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from multinic.lab.errors import LabError
from multinic.lab.scenarios import run as scenarios
from multinic.lab.scenarios.settings import REFERENCE
from multinic.measure import pause
from multinic.measure.errors import MeasureError


class Lab:
    """Stands in for `multinic lab run`: writes the report that it writes, then fails as it does, if told so."""

    def __init__(self, *, broken: bool = False, half: bool = False) -> None:
        self.routers: list[Any] = []
        self._broken, self._half = broken, half

    def run(self, names: Sequence[str], options: Any, say: Any) -> list[Any]:
        self.routers.append(options.router)
        gap = 4.0 if options.router == REFERENCE else 0.1 * len(self.routers)
        runs = [
            {
                "scenario": name,
                "label": f"a {name}",
                "longest_gap_s": gap,
                "lost_streams": 0,
                "failed_connections": 1,
                "new_connections": 10,
                "slow_connections": 2,
                "ready_s": 5.0,
            }
            for name in (names[:1] if self._half else names)
        ]
        options.report.mkdir(parents=True, exist_ok=True)
        (options.report / "report.json").write_text(json.dumps({"runs": runs}))
        if self._broken or self._half:
            raise LabError("planned events that cost something")
        return []


def options(folder: Path, **more: Any) -> pause.Options:
    return pause.Options(folder / "lab", 1, folder / "out", ("drain", "power-cut"), repeat=3, **more)


@pytest.mark.parametrize("broken", [False, True])
def test_settings_take_turns_and_medians_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    lab = Lab(broken=broken)
    monkeypatch.setattr(scenarios, "run", lab.run)
    report = pause.run(options(tmp_path), lambda _: None)
    assert [router == REFERENCE for router in lab.routers] == [False, True] * 3
    [(_, rows, _)] = report.tables
    assert [row[:3] for row in rows[1:]] == [
        ("a drain", "multinic", "0.30 (0.10 to 0.50)"),
        ("a drain", "reference 1's settings", "4.00 (4.00 to 4.00)"),
        ("a power-cut", "multinic", "0.30 (0.10 to 0.50)"),
        ("a power-cut", "reference 1's settings", "4.00 (4.00 to 4.00)"),
    ]
    assert rows[1][3:5] == ("0", "3 of 30")
    assert len(json.loads((tmp_path / "out/pause.json").read_text())["runs"]) == 12
    assert (tmp_path / "out/pause.svg").exists()


def test_half_a_run_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "run", Lab(half=True).run)
    with pytest.raises(LabError, match="cost something"):
        pause.run(options(tmp_path), lambda _: None)
    assert not (tmp_path / "out/pause.json").exists()


def test_settings_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="no settings theirs"):
        pause.run(options(tmp_path, settings=("theirs",)), lambda _: None)

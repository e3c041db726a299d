"""Scenarios on a real fleet: what is planned costs the connections nothing, and the report says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from multinic.lab.errors import LabError
from multinic.lab.scenarios import run
from multinic.lab.scenarios.outcome import PROMISED_GAP_SECONDS
from multinic.lab.scenarios.run import SCENARIOS, Options

from .conftest import ROOT

SHORT = {
    "next_hop": {"draining_sec": 5},
    "health": {"heal": {"interval_sec": 3, "timeout_sec": 3}},
}
"""Draining is waited for with every VM that goes, and two heal checks with every VM that comes: short ones show the
same as the defaults, 30 and 10 seconds."""


def play(names: list[str], folder: Path, port: int, engine: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Runs scenarios and returns what `report.json` says of each."""
    monkeypatch.chdir(ROOT)
    options = Options(
        folder=folder / "lab", report=folder / "report", boot_delay=0.0, port=port, engine=engine, router=SHORT
    )
    lines: list[str] = []
    run.run(names, options, lines.append)
    assert not (folder / "lab").exists()
    text = (folder / "report" / "report.md").read_text()
    for name in names:
        assert SCENARIOS[name].title in text
    assert (folder / "report" / "scenarios.svg").stat().st_size > 0
    return {one["scenario"]: one for one in json.loads((folder / "report" / "report.json").read_text())["runs"]}


def assert_unharmed(one: dict[str, Any]) -> None:
    assert one["longest_gap_s"] <= PROMISED_GAP_SECONDS, one
    assert one["failed_connections"] == one["lost_streams"] == 0, one
    assert one["new_connections"] > 0


@pytest.mark.guests
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_happens_to_a_fleet(tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name for name, scenario in SCENARIOS.items() if not scenario.changes_program]
    found = play(names, tmp_path, free_port, "in-process", monkeypatch)
    for name in ("drain", "heal", "route-replaced"):
        assert_unharmed(found[name])
        assert found[name]["kept"] is True
    for name in names:
        assert found[name]["lost_streams"] == found[name]["failed_connections"] == 0
    # Both wait for the next retransmission, and the route's absence counts in full.
    assert found["route-withdrawn"]["longest_gap_s"] >= 3
    assert found["zone-outage"]["longest_gap_s"] >= 1, "nobody told the load balancers: only their checks did"
    assert found["zone-outage"]["marks_s"]["detected"] < found["zone-outage"]["marks_s"]["zone is back"]


@pytest.mark.engine
@pytest.mark.guests
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_another_template(tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = play(["rolling-update", "bad-template"], tmp_path, free_port, "pulumi", monkeypatch)
    for one in found.values():
        assert_unharmed(one)
        assert one["kept"] is True


def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(LabError, match=r"no scenario 'drian'; there are drain, .*bad-template, and all"):
        run.pick(["drain", "drian"])


def test_all_is_every_one_once() -> None:
    assert run.pick(["drain", "all"]) == list(SCENARIOS.values())


def test_a_second_run_of_the_program_needs_the_engine(
    tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(LabError, match=r"rolling-update: needs the real Pulumi engine.*make pulumi"):
        play(["rolling-update"], tmp_path, free_port, "in-process", monkeypatch)
    assert not (tmp_path / "lab").exists()

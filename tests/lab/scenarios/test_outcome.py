"""The report of scenarios: a row for each, and for what is planned whether the promise was kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from multinic.lab.scenarios import events, outcome
from multinic.lab.scenarios.fleet import RouterState
from multinic.lab.scenarios.outcome import Outcome
from multinic.lab.scenarios.traffic import Sample

DRAIN = Outcome(
    scenario="drain",
    label="drain of one router",
    planned=True,
    kept=True,
    why="its flows move while it still forwards",
    marks_s={"drained": 1.5, "fleet whole": 6.7},
    engine="the real engine",
    boot_delay_s=0.0,
    up_s=7.0,
    longest_gap_s=0.04,
    caused_gap_s=0.04,
    gap_span_s=(1.51, 1.55),
    gaps_s={"client → server": 0.04, "server → client": 0.02},
    lost_streams=0,
    failed_connections=0,
    slow_connections=0,
    new_connections=139,
    ready_s=6.7,
    lab_mb=120.0,
    guest_mb=30.0,
    samples={"client → server": [Sample(step * 0.05, step * 0.05 + 0.04, 100_000) for step in range(-100, 120)]},
)
CUT = replace(DRAIN, scenario="power-cut", label="power cut", planned=False, kept=None, longest_gap_s=0.22)


def test_a_promise_is_about_gap_connections_and_streams() -> None:
    assert outcome.promise(0.2, 0, 0)
    assert not outcome.promise(0.21, 0, 0)
    assert not outcome.promise(0.0, 1, 0)
    assert not outcome.promise(0.0, 0, 1)


def test_a_gap_is_made_of_its_steps_and_of_tcps_wait() -> None:
    steps = (("detection", "detected"), ("rules", "rules changed"))
    found = outcome.costs((-0.01, 3.14), steps, {"detected": 2.5, "rules changed": 2.6, "fleet whole": 9.0})
    assert found == {"detection": 2.51, "rules": 0.1, outcome.RETRANSMISSION: 0.54}
    assert sum(found.values()) == pytest.approx(3.15)
    assert outcome.costs((1.0, 1.1), steps, {}) == {}, "no gap to speak of"
    assert outcome.costs((0.0, 3.0), (), {}) == {}, "nothing says of what"
    cut_short = outcome.costs((0.0, 2.4), steps, {"detected": 2.5, "rules changed": 2.6})
    assert list(cut_short.values()) == [2.4, 0.0, 0.0]


def test_table_says_kept_or_broken_of_what_is_planned_only() -> None:
    broken = replace(DRAIN, scenario="heal", kept=False, failed_connections=3)
    _, *rows = outcome.table([DRAIN, broken, CUT])
    assert [row[-2] for row in rows] == ["kept", "broken", ""]
    assert rows[1][5] == "3 of 139"


def test_runs_of_one_scenario_are_a_row_of_medians_and_sums() -> None:
    slow = replace(CUT, longest_gap_s=0.7, costs_s={"detection": 0.5, outcome.RETRANSMISSION: 0.2}, lost_streams=1)
    runs = [CUT, DRAIN, slow, replace(slow, longest_gap_s=3.1, costs_s={"detection": 3.1})]
    _, cut, drain = outcome.table(runs)
    assert cut[:3] == ("power-cut", "power cut (3 runs)", "0.70 s")
    assert cut[4:6] == ("2", "0 of 417")
    assert cut[-1] == "detection 0.50 s, TCP's next retransmission 0.20 s", "of the run in the middle"
    assert drain[1] == DRAIN.label
    _, mixed = outcome.table([DRAIN, replace(DRAIN, kept=False)])
    assert mixed[-2] == "kept 1 of 2"


def test_notes_say_when_each_step_was_and_why() -> None:
    text = "\n".join(outcome.notes([DRAIN, CUT]))
    assert "drain of one router: its flows move while it still forwards (drained 1.5 s, fleet whole 6.7 s)." in text
    assert "≤ 0.2 s" in text


def test_files_have_the_demos_form(tmp_path: Path) -> None:
    files = outcome.write([DRAIN, CUT], tmp_path)
    assert sorted(file.name for file in files) == ["report.json", "report.md", "scenarios.png", "scenarios.svg"]
    assert all(file.stat().st_size > 0 for file in files)
    first, second = json.loads((tmp_path / "report.json").read_text())["runs"]
    assert (first["scenario"], first["kept"], second["kept"]) == ("drain", True, None)
    assert first["marks_s"] == {"drained": 1.5, "fleet whole": 6.7}
    assert "samples" not in first


def test_a_router_is_known_to_be_down_by_its_checks_or_by_its_stop() -> None:
    router = RouterState("r", "projects/lab/zones/z/instances/r", {"left": "HEALTHY", "right": "HEALTHY"})

    def told(when: float, what: str, user: str = "", subject: str = router.key) -> events.Event:
        return {"time": when, "subject": subject, "detail": {"what": what, "purpose": "traffic", "user": user}}

    left, right, stop = told(1, "UNHEALTHY", "left"), told(2, "UNHEALTHY", "right"), told(3, "stopped")
    assert (
        events.known_down([left, told(1.5, "UNHEALTHY", "left"), told(1.7, "stopped", subject="other")], router) is None
    )
    assert events.known_down([left, right, stop], router) == 2
    # Stopped before its second load balancer had asked often enough: that one never calls it unhealthy.
    assert events.known_down([left, stop], router) == 3
    assert events.known_down([stop], router) == 3

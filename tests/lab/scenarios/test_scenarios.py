"""Scenarios on real fleets: what is planned costs the connections nothing, and the report says so."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from multinic.lab.errors import LabError
from multinic.lab.scenarios import path_mtu, run, scale_out, stopped_vm
from multinic.lab.scenarios.outcome import PROMISED_GAP_SECONDS
from multinic.lab.scenarios.program import merged
from multinic.lab.scenarios.run import SCENARIOS, Options

from .conftest import ROOT

SHORT = {
    "next_hop": {"draining_sec": 5},
    "health": {"heal": {"interval_sec": 3, "timeout_sec": 3}},
}
"""Draining is waited for with every VM that goes, and two heal checks with every VM that comes: short ones show the
same as the defaults, 30 and 10 seconds."""
ONE_FLEET = merged(
    merged(SHORT, stopped_vm.PREEMPTION.config["multinic:router"]), scale_out.SCENARIO.config["multinic:router"]
)
"""What single scenarios need of their fleet, together, so that one fleet does for all."""
ON_ONE_FLEET = [
    name
    for name, scenario in SCENARIOS.items()
    if not scenario.needs_engine and scenario not in (path_mtu.NARROW_SERVER, path_mtu.NARROW_CLIENT)
]


def play(
    names: list[str],
    folder: Path,
    port: int,
    engine: str,
    monkeypatch: pytest.MonkeyPatch,
    router: dict[str, Any] = SHORT,
    egress_scale: float = 1.0,
) -> dict[str, Any]:
    """Runs scenarios and returns what `report.json` says of each."""
    monkeypatch.chdir(ROOT)
    options = Options(
        folder=folder / "lab",
        report=folder / "report",
        boot_delay=0.0,
        port=port,
        engine=engine,
        router=router,
        egress_scale=egress_scale,
    )
    lines: list[str] = []
    try:
        run.run(names, options, lines.append)
    finally:
        print("\n".join(lines))
    assert not (folder / "lab").exists()
    text = (folder / "report" / "report.md").read_text()
    for name in names:
        assert SCENARIOS[name].title in text
    assert (folder / "report" / "scenarios.svg").stat().st_size > 0
    return {one["scenario"]: one for one in json.loads((folder / "report" / "report.json").read_text())["runs"]}


def assert_nothing_lost(one: dict[str, Any]) -> None:
    assert one["failed_connections"] == one["lost_streams"] == 0, one
    assert one["new_connections"] > 0
    if one["planned"]:
        # Less what a stream that passes no router noticed at that time: a machine under load makes gaps of its own.
        assert one["caused_gap_s"] <= PROMISED_GAP_SECONDS, one
        assert one["kept"] is True
    if one["costs_s"]:
        assert sum(one["costs_s"].values()) == pytest.approx(one["longest_gap_s"], abs=0.01)


@pytest.mark.guests
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_what_happens_to_a_fleet(tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = play(ON_ONE_FLEET, tmp_path, free_port, "in-process", monkeypatch, ONE_FLEET, scale_out.EGRESS_SCALE)
    assert {one["up_s"] for one in found.values()} == {found["drain"]["up_s"]}, "more than one fleet was brought up"
    for one in found.values():
        assert_nothing_lost(one)
    assert {name for name, one in found.items() if one["planned"]} == {
        *("drain", "heal", "route-replaced", "asymmetric", "scale-out", "scale-in"),
    }
    # Both wait for the next retransmission, and the route's absence counts in full.
    assert found["route-withdrawn"]["costs_s"]["no route"] >= 2.9
    for silent in ("panic", "zone-outage"):
        assert found[silent]["costs_s"]["detection"] >= 1, "nobody told the load balancers: only their checks did"
    assert found["power-cut"]["marks_s"]["detected"] < found["panic"]["marks_s"]["detected"]
    assert found["zone-outage"]["marks_s"]["detected"] < found["zone-outage"]["marks_s"]["zone is back"]
    assert found["preemption"]["caused_gap_s"] <= PROMISED_GAP_SECONDS, "its shutdown script drains it first"


@pytest.mark.guests
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("side", ["client", "server"])
def test_networks_of_different_mtu(tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch, side: str) -> None:
    (one,) = play([f"narrow-{side}"], tmp_path, free_port, "in-process", monkeypatch).values()
    assert_nothing_lost(one)
    # The scenario itself ends with an error where a sender was not told.
    assert {"sender has forgotten the MTU", "sender was told again"} <= one["marks_s"].keys()
    assert one["caused_gap_s"] <= 1, "TCP sends again at once, or a retransmission later"


@pytest.mark.engine
@pytest.mark.guests
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_another_template(tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = play(["rolling-update", "bad-template"], tmp_path, free_port, "pulumi", monkeypatch)
    for one in found.values():
        assert_nothing_lost(one)


@pytest.mark.engine
@pytest.mark.guests
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_two_regions(tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = play(["multi-region", "upgrade"], tmp_path, free_port, "pulumi", monkeypatch)
    for one in found.values():
        assert_nothing_lost(one)
        assert len(one["gaps_s"]) == 4, "a stream each way between both pairs"
    steps = list(found["upgrade"]["marks_s"])
    assert steps[:3] == ["second generation serves", "cut over", "first generation destroyed"]


def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(
        LabError, match=r"no scenario 'drian'; did you mean drain\?; .* 'x'\. There are drain, .*, and all"
    ):
        run.pick(["drain", "drian", "x"])


def test_all_is_every_one_once() -> None:
    assert run.pick(["drain", "all"]) == list(SCENARIOS.values())


def test_the_list_has_a_line_for_each() -> None:
    lines = run.listed()
    assert [line.split()[0] for line in lines] == list(SCENARIOS)
    assert any(line.startswith("upgrade ") and line.endswith("(needs the real Pulumi engine)") for line in lines)


def test_the_document_has_all_of_them_and_says_which_are_planned() -> None:
    text = (ROOT / "docs" / "scenarios.md").read_text()
    rows = re.findall(r"^\| (`[^|]*`) \| (yes|no) \|", text, re.MULTILINE)
    told = {name: planned == "yes" for names, planned in rows for name in re.findall(r"`([^`]+)`", names)}
    assert told == {name: scenario.planned for name, scenario in SCENARIOS.items()}


@pytest.mark.parametrize("name", ["rolling-update", "upgrade"])
def test_a_second_run_of_the_program_needs_the_engine(
    tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with pytest.raises(LabError, match=rf"{name}: needs the real Pulumi engine.*make pulumi"):
        play([name], tmp_path, free_port, "in-process", monkeypatch)
    assert not (tmp_path / "lab").exists()

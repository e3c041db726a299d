"""The report says what the runs came to, in the form that other programs read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from multinic.lab.scenarios import plot, report
from multinic.lab.scenarios.report import Run
from multinic.lab.scenarios.traffic import Sample

STREAM = [Sample(first, first + 0.04, 100_000) for first in [step * 0.05 for step in range(-100, 100)]]
OURS = Run(
    settings="ours",
    engine="in-process",
    boot_delay_s=20.0,
    up_s=25.0,
    longest_gap_s=3.1,
    caused_gap_s=3.1,
    gap_span_s=(0.0, 3.1),
    gaps_s={"client → server": 3.1, "server → client": 1.4},
    lost_streams=0,
    failed_connections=0,
    slow_connections=12,
    new_connections=400,
    detect_s=2.6,
    heal_s=30.5,
    healed_by="rebooted",
    ready_s=33.0,
    lab_mb=120.0,
    guest_mb=30.0,
    samples={"client → server": STREAM},
)
REFERENCE = replace(OURS, settings="reference", longest_gap_s=31.0, detect_s=8.0)


def test_json_has_the_promised_fields_of_every_run_and_no_samples(tmp_path: Path) -> None:
    report.write([OURS, REFERENCE], tmp_path)
    runs = json.loads((tmp_path / "report.json").read_text())["runs"]
    assert [run["settings"] for run in runs] == ["ours", "reference"]
    promised = {
        *("settings", "engine", "boot_delay_s", "longest_gap_s", "lost_streams"),
        *("failed_connections", "detect_s", "heal_s", "ready_s"),
    }
    for run in runs:
        assert promised <= run.keys()
        assert "samples" not in run


def test_table_has_medians_of_both_columns_and_the_published_figure() -> None:
    runs = [OURS, replace(OURS, longest_gap_s=6.5), replace(OURS, longest_gap_s=3.2), REFERENCE]
    head, gap, *_ = report.table(runs)
    assert head == (
        "after a router's kernel panic",
        "multinic (median of 3)",
        "reference 1's settings",
        "published by reference 1",
    )
    assert gap == ("longest gap of a stream", "3.2 s", "31.0 s", "about 45 s")


def test_notes_name_the_ladder_the_boot_delay_and_the_ratio() -> None:
    text = "\n".join(report.notes([OURS, REFERENCE]))
    assert "0.2, 0.6, 1.4, 3.1, 6.5" in text
    assert "Boot delay 20 s" in text
    assert "10.0 times shorter" in text


def test_a_report_of_one_column_claims_no_ratio() -> None:
    assert "times shorter" not in "\n".join(report.as_text([OURS]))


def test_throughput_counts_every_byte_once_and_shows_a_gap_as_zero() -> None:
    samples = [sample for sample in STREAM if not 0 <= sample.first < 3]
    times, rates = plot.throughput(samples, until=5.0)
    total = sum(rates) * plot.BUCKET_SECONDS * 1e6 / 8
    assert total == pytest.approx(sum(sample.bytes for sample in samples), rel=1e-6)
    silent = [rate for time, rate in zip(times, rates, strict=True) if 0.25 <= time < 2.75]
    assert silent
    assert not any(silent)


@pytest.mark.filterwarnings("ignore")
def test_plot_draws_both_columns(tmp_path: Path) -> None:
    files = plot.draw([OURS, REFERENCE], tmp_path)
    assert [file.name for file in files] == ["pause.svg", "pause.png"]
    assert "reference 1" in files[0].read_text()
    assert files[1].read_bytes().startswith(b"\x89PNG")

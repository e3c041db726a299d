"""What becomes of figures: tables, JSON, plots, and the promises that make a benchmark fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from multinic.measure import iperf, overlay, routers, routers_report
from multinic.measure.errors import MeasureError
from multinic.measure.iperf import Result
from multinic.measure.limit import Limit
from multinic.measure.overlay_report import Comparison
from multinic.measure.report import Overhead, Report, spread
from multinic.measure.routers import TESTS
from multinic.measure.routers_report import Outcome
from multinic.measure.shell import Shell


def result(megabits: float) -> Result:
    return Result(megabits, 1, 1, (megabits,), 5, 100.0, 1408, 10.0, 20.0, "cubic")


def test_spread_is_the_median_with_its_ends() -> None:
    assert spread([3, 1, 2]) == "2 (1 to 3)"
    assert spread([7.26], "{:.1f}") == "7.3"


def test_report_writes_all_four_files(tmp_path: Path) -> None:
    report = Report("some", "Something.", "multinic bench some")
    report.table("Rates", [("a", "b"), ("1", "2")], "below", Overhead().line())
    report.data["rates"] = [1, 2]
    files = report.write(tmp_path / "out", lambda figure: figure.subplots().plot([1, 2]))
    assert [file.name for file in files] == ["some.json", "some.md", "some.svg", "some.png"]
    assert all(file.stat().st_size for file in files)
    document = json.loads(files[0].read_text())
    assert (document["command"], document["rates"]) == ("multinic bench some", [1, 2])
    assert "```sh\nmultinic bench some\n```" in files[1].read_text()
    assert "| 1 | 2 |" in files[1].read_text()


@pytest.mark.parametrize(
    ("before", "after", "holds"), [(0.34, 0.99, True), (0.61, 0.99, False), (0.34, 0.96, False), (0.6, 0.97, True)]
)
def test_the_overlays_promise(before: float, after: float, holds: bool) -> None:
    one = Comparison("s", "l", "a → b", 1, before_ratios=[before] * 3, after_ratios=[after] * 3)
    assert one.holds is holds


def test_limits_scale_bytes_and_packets_alike() -> None:
    limit = Limit(1000, 34000, 200).scaled(0.1)
    assert limit.title == "100 Mbit/s, 3400 packets/s"
    limit.apply(Shell("nowhere", ("true",)), "eth0")


def test_potential_is_the_cap_and_the_share_that_the_mtu_leaves() -> None:
    one = Outcome(TESTS[0].title, 375, 1460, TESTS[0].published, [result(350), result(356), result(357)])
    assert one.payload == pytest.approx(358.2, abs=0.1)
    assert one.reached == pytest.approx(0.994, abs=0.001)
    assert one.row()[3:] == ("356.0 (350.0 to 357.0)", "0.994", "0.949", "48", "46.8", "0.975")


def test_a_benchmark_below_its_promise_fails_and_shows_what_it_measured(tmp_path: Path) -> None:
    low = Outcome(TESTS[3].title, 125, 1460, TESTS[3].published, [result(100)])
    with pytest.raises(MeasureError, match=r"1 router of 8 vCPU, one stream: 0\.838"):
        routers_report.tell(
            [low], tmp_path, "multinic bench routers", [], Overhead(), warm_up=3, least=routers.AT_LEAST
        )
    assert "100.0" in (tmp_path / "routers.md").read_text()


def test_tests_are_reference_ones() -> None:
    assert [one.published for one in TESTS] == [(48, 46.8), (32, 30.2), (16, 14.3), (16, 13.4)]
    assert [(one.machine, one.routers, one.many) for one in TESTS] == [
        ("n2-highcpu-8", 3, True),
        ("n2-highcpu-16", 1, True),
        ("n2-highcpu-8", 1, True),
        ("n2-highcpu-8", 1, False),
    ]


def test_names_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="no set-up cloud"):
        overlay.run(overlay.Options(tmp_path, 1, tmp_path, ("cloud",)), print)
    with pytest.raises(MeasureError, match="no test five"):
        routers.run(routers.Options(tmp_path, 1, tmp_path, ("five",)), print)


def test_no_iperf3_is_said() -> None:
    with pytest.raises(MeasureError, match="iperf3 cannot be run"):
        iperf.version_at(Shell("bare", ("false",)))

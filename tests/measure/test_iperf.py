from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multinic.measure import iperf
from multinic.measure.errors import MeasureError
from multinic.measure.iperf import Traffic
from multinic.measure.shell import HERE


def document(rates: list[float], retransmits: int = 3, began: int = 0, seconds: int = 8) -> dict[str, Any]:
    """What iperf3 3.12 prints, as far as it is read: two seconds omitted, then all streams steady."""
    each = [{"start": n, "end": n + 1, "seconds": 1.0, "bytes": sum(rates) / 8} for n in range(seconds)]
    omitted = [{**one, "bytes": 1.0, "omitted": True} for one in each[:2]]
    return {
        "start": {"tcp_mss_default": 1398, "timestamp": {"timesecs": began}},
        "intervals": [{"sum": one} for one in [*omitted, *each]],
        "end": {
            "streams": [
                {"sender": {"max_snd_cwnd": 2048 * (n + 1)}, "receiver": {"bits_per_second": rate}}
                for n, rate in enumerate(rates)
            ],
            "sum_sent": {"bits_per_second": sum(rates) * 1.01, "retransmits": retransmits, "bytes": 1_000_000},
            "sum_received": {"bits_per_second": sum(rates), "bytes": 1_000_000},
            "cpu_utilization_percent": {"host_total": 12.5, "remote_total": 30.0},
            "sender_tcp_congestion": "cubic",
        },
    }


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("iperf 3.12 (cJSON 1.7.15)\nLinux x 6.1", (3, 12)),
        ("iperf 3.16 (cJSON 1.7.15)", (3, 16)),
        ("iperf 3.7 (cJSON 1.5.2)", (3, 7)),
        ("iperf 3.17.1+ (cJSON 1.7.15)", (3, 17)),
    ],
)
def test_version(text: str, wanted: tuple[int, int]) -> None:
    assert iperf.version(text) == wanted


@pytest.mark.parametrize("text", ["iperf 3.1.3", "iperf version 2.1.8 (12 Aug 2022)", ""])
def test_a_version_that_lacks_what_is_used_is_refused(text: str) -> None:
    with pytest.raises(MeasureError):
        iperf.version(text)


def test_before_threads_each_stream_is_a_process() -> None:
    assert iperf.split(4, (3, 12), (3, 17)) == [1, 1, 1, 1]
    assert iperf.split(4, (3, 17), (3, 15)) == [1, 1, 1, 1]
    assert iperf.split(4, (3, 16), (3, 17)) == [4]
    assert iperf.split(1, (3, 12), (3, 12)) == [1]
    with pytest.raises(MeasureError):
        iperf.split(0, (3, 16))


def test_result_is_what_was_received() -> None:
    result = iperf.parse(json.dumps(document([4e8, 5e8])))
    assert result.megabits == pytest.approx(900)
    assert result.per_stream == pytest.approx((400, 500))
    assert (result.retransmits, result.cwnd_kib, result.mss, result.streams) == (3, 4.0, 1398, 2)
    assert (result.sender_cpu, result.receiver_cpu, result.congestion) == (12.5, 30.0, "cubic")


def test_an_error_is_told_in_its_own_words() -> None:
    with pytest.raises(MeasureError, match="a → b: unable to connect to server"):
        iperf.parse('{"start": {}, "end": {}, "error": "unable to connect to server"}', title="a → b")
    with pytest.raises(MeasureError, match="command not found"):
        iperf.parse("", "sh: iperf3: command not found")


def test_half_a_result_is_none() -> None:
    with pytest.raises(MeasureError, match="incomplete"):
        iperf.parse('{"start": {}, "intervals": [], "end": {}}')


@given(st.lists(st.lists(st.floats(1e6, 1e10), min_size=1, max_size=4), min_size=1, max_size=8))
def test_processes_add_up(rates: list[list[float]]) -> None:
    total = iperf.add([iperf.parse(json.dumps(document(one))) for one in rates])
    assert total.megabits == pytest.approx(sum(map(sum, rates)) / 1e6)
    assert (total.processes, total.streams) == (len(rates), sum(map(len, rates)))
    assert len(total.per_stream) == total.streams
    assert total.retransmits == 3 * len(rates)


def test_only_the_time_that_all_processes_share_counts() -> None:
    """The second begins three seconds later, when the first had less; alone at its end it has more."""
    early, late = document([1e8], began=100), document([0.0], began=103)
    for one in late["intervals"][2:]:
        # 100 Mbit/s beside the first, 200 once that has ended (at 100 + 2 + 8, so after the 5th second).
        one["sum"]["bytes"] = (1e8 if one["sum"]["start"] < 5 else 2e8) / 8
    total = iperf.add([iperf.parse(json.dumps(early)), iperf.parse(json.dumps(late))])
    assert total.megabits == pytest.approx(200)


def test_what_still_waits_in_a_queue_at_the_end_has_not_arrived() -> None:
    """A sender fills the queue of a host's cap: together they would have more than the cap lets through."""
    parts = [document([5e8]), document([5e8])]
    for one in parts:
        one["end"]["sum_sent"]["bytes"] = 1_030_000
    total = iperf.add([iperf.parse(json.dumps(one)) for one in parts])
    assert total.megabits == pytest.approx(1000 / 1.03)


def test_processes_that_do_not_meet_are_no_result() -> None:
    with pytest.raises(MeasureError, match="same time"):
        iperf.add([iperf.parse(json.dumps(document([1e8], began=began))) for began in (100, 107)])


def test_commands_end_by_themselves() -> None:
    traffic = Traffic(HERE, HERE, "10.0.0.2", streams=2, seconds=5, congestion="cubic")
    for command in (iperf.client_command(traffic, [5302, 5303], 1), iperf.server_command(traffic, [5302, 5303])):
        assert 'timeout "$LIMIT"' in command[2] and command[2].startswith("LIMIT=")
        assert "PORTS='5302 5303'" in command[2]
    assert "--one-off" in iperf.server_command(traffic, [5302])
    assert iperf.client_command(traffic, [5302], 1)[-2:] == ["--congestion", "cubic"]

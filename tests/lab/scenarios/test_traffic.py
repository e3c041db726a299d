"""A stream's longest gap is the longest time without received bytes, wherever it lies."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from multinic.lab.scenarios.fleet import RouterState
from multinic.lab.scenarios.flows import Flows
from multinic.lab.scenarios.traffic import Gap, Stream

ROUTER = RouterState("r", "projects/p/zones/z/instances/r", {})


def stream(*samples: tuple[float, float], end: str | None = None) -> Stream:
    lines: list[dict[str, Any]] = [{"first": first, "last": last, "bytes": 1000} for first, last in samples]
    if end is not None:
        lines.append({"end": end})
    made = Stream.__new__(Stream)
    made._connections = 1
    made._receive = SimpleNamespace(lines=lines)  # type: ignore[assignment]
    return made


@pytest.mark.parametrize(
    ("samples", "gap"),
    [
        ([(10.0, 10.1), (10.1, 10.2), (13.3, 13.4), (13.4, 19.9)], 3.1),
        ([(12.0, 12.1), (12.1, 19.9)], 2.0),
        ([(9.0, 11.0)], 9.0),
        ([], 10.0),
        ([(9.5, 10.5), (10.5, 20.5)], 0.0),
    ],
    ids=["in the middle", "at the start", "until the end", "nothing came", "no gap"],
)
def test_longest_gap(samples: list[tuple[float, float]], gap: float) -> None:
    assert stream(*samples).gaps(10.0, 20.0)[0].seconds == pytest.approx(gap, abs=0.11)


def test_a_stream_is_lost_when_it_ended_and_not_when_it_pauses() -> None:
    assert stream((1.0, 2.0), end="Connection reset by peer").lost
    assert not stream((1.0, 2.0)).lost


def test_flows_since_looks_at_the_newest_bytes() -> None:
    assert stream((1.0, 2.0), (5.0, 6.0)).flows_since(5.5)
    assert not stream((1.0, 2.0), (5.0, 6.0)).flows_since(6.5)


def test_a_stall_that_a_control_noticed_too_is_the_machines_own() -> None:
    live = Flows(ROUTER, [], [stream((1.0, 5.0), (5.3, 9.9)), stream((1.0, 9.9))], [])
    changes = [4.5, 6.5]
    assert live._caused(Gap(5.0, 5.4), 0.0, 10.0, changes) == pytest.approx(0.1)
    assert live._caused(Gap(7.0, 7.4), 0.0, 10.0, changes) == pytest.approx(0.4), "the controls flowed at that time"
    assert live._caused(Gap(5.1, 5.14), 0.0, 10.0, changes) == pytest.approx(0.04)
    assert Flows(ROUTER, [], [], [])._caused(Gap(5.0, 5.4), 0.0, 10.0, changes) == pytest.approx(0.4)


def test_a_gap_before_which_nothing_changed_has_no_cause_in_the_event() -> None:
    live = Flows(ROUTER, [], [], [])
    assert live._caused(Gap(7.0, 7.4), 0.0, 10.0, [4.5, 8.0]) == 0
    assert live._caused(Gap(7.0, 7.4), 0.0, 10.0, [4.5, 7.1]) == pytest.approx(0.4), "it changed while it lasted"
    assert live._caused(Gap(5.0, 9.0), 0.0, 10.0, [4.5]) == pytest.approx(4.0)

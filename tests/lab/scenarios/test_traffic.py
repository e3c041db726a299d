"""A stream's longest gap is the longest time without received bytes, wherever it lies."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from multinic.lab.scenarios.gaps import Gap
from multinic.lab.scenarios.traffic import Stream


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


def test_pauses_are_over() -> None:
    assert stream((1.0, 2.0), (5.0, 6.0)).pauses() == [Gap(2.0, 5.0)], "whether it goes on after 6 nobody knows"
    assert stream().pauses() == []

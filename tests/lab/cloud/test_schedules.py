"""Scaling schedules: when a cron expression of a time zone is in force."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from multinic.lab.cloud import schedules

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
"""A Monday."""


def _schedule(text: str, seconds: int = 3600, **more: object) -> dict[str, Any]:
    return {"schedule": text, "durationSec": seconds, "minRequiredReplicas": 3, **more}


@pytest.mark.parametrize(
    ("schedule", "active"),
    [
        (_schedule("0 12 * * *"), True),
        (_schedule("30 11 * * *"), True),
        (_schedule("0 11 * * *"), False),
        (_schedule("1 12 * * *"), False),
        (_schedule("0 8 * * MON-FRI", 5 * 3600), True),
        (_schedule("0 8 * * sat,sun", 5 * 3600), False),
        (_schedule("0 8 * * 0", 29 * 3600), True),
        (_schedule("0 8 * * 7", 28 * 3600), False),
        (_schedule("0 8 30 nov *", 5 * 3600), True),
        # Of day and weekday either is enough.
        (_schedule("0 8 1 * mon", 5 * 3600), True),
        (_schedule("0 8 1 * tue", 5 * 3600), False),
        (_schedule("*/15 * * * *", 300), True),
        (_schedule("10-50/20 * * * *", 300), False),
        (_schedule("0 12 * * * 2026"), True),
        (_schedule("0 12 * * * 2027"), False),
        (_schedule("0 12 * * *", disabled=True), False),
        (_schedule("0 13 * * *", timeZone="Europe/Berlin"), True),
        (_schedule("0 12 * * *", timeZone="Europe/Berlin"), False),
        (_schedule("0 7 * * *", timeZone="America/New_York"), True),
    ],
)
def test_active(schedule: dict[str, Any], active: bool) -> None:
    assert schedules.required({"one": schedule}, NOON) == (3 if active else 0)
    state = schedules.status({"one": schedule}, NOON)["one"]["state"]
    assert state == ("DISABLED" if schedule.get("disabled") else "ACTIVE" if active else "READY")


def test_the_greatest_of_several_counts() -> None:
    more = _schedule("0 12 * * *") | {"minRequiredReplicas": 7}
    assert schedules.required({"a": _schedule("0 12 * * *"), "b": more, "c": _schedule("0 1 * * *")}, NOON) == 7
    assert schedules.required({}, NOON) == 0


@pytest.mark.parametrize(
    "text", ["", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * foo *", "5-1 * * * *", "*/0 * * * *", "²"]
)
def test_what_is_no_cron_expression(text: str) -> None:
    assert schedules.problem(_schedule(text))


def test_what_is_no_time_zone() -> None:
    assert schedules.problem(_schedule("0 0 * * *", timeZone="Europe/Atlantis"))
    assert schedules.problem(_schedule("0 0 * * *", timeZone="../etc/passwd"))
    assert schedules.problem(_schedule("0 0 * * *", timeZone="UTC")) is None

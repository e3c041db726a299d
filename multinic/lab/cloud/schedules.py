"""Scaling schedules: when a group needs how many VMs at least.

https://cloud.google.com/compute/docs/autoscaler/scaling-schedules and discovery document compute.v1, schema
``AutoscalingPolicyScalingSchedule``: minute, hour, day of the month, month, day of the week, and maybe a year, in the
schedule's time zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True)
class Cron:
    """When something begins."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    years: frozenset[int]
    any_day: bool
    any_weekday: bool

    @classmethod
    def parse(cls, text: str) -> Cron:
        """Reads ``MINUTE HOUR DAY MONTH WEEKDAY [YEAR]``.

        Raises:
            ValueError: It is not of that form.
        """
        fields = text.split()
        if len(fields) not in (5, 6):
            raise ValueError(f"a cron expression has 5 or 6 fields, not {len(fields)}")
        minute, hour, day, month, weekday, year = [*fields, "*"][:6]
        return cls(
            minutes=_field(minute, 0, 59),
            hours=_field(hour, 0, 23),
            days=_field(day, 1, 31),
            months=_field(month.lower(), 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
            # 7 is Sunday too.
            weekdays=frozenset(
                number % 7 for number in _field(weekday.lower(), 0, 7, {name: n for n, name in enumerate(_DAYS)})
            ),
            years=_field(year, 1970, 2099),
            any_day=day.startswith("*"),
            any_weekday=weekday.startswith("*"),
        )

    def on(self, day: datetime) -> bool:
        """Whether it begins some time on that day; of day and weekday either suffices where both are given."""
        if day.year not in self.years or day.month not in self.months:
            return False
        by_day, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return by_day and by_weekday
        return by_day or by_weekday

    def last(self, now: datetime, longest: timedelta) -> datetime | None:
        """The newest beginning that is not later than `now` nor older than `longest`; None without one."""
        day = now.replace(hour=0, minute=0, second=0, microsecond=0)
        while day > now - longest - timedelta(days=1):
            if self.on(day):
                for hour in sorted(self.hours, reverse=True):
                    for minute in sorted(self.minutes, reverse=True):
                        begins = day.replace(hour=hour, minute=minute)
                        if begins <= now:
                            return begins if begins > now - longest else None
            day -= timedelta(days=1)
        return None


def _field(text: str, least: int, greatest: int, names: Mapping[str, int] | None = None) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        bounds, _, step = part.partition("/")
        first, dash, last = bounds.partition("-")
        if bounds == "*":
            low, high = least, greatest
        else:
            low = _number(first, names)
            high = _number(last, names) if dash else greatest if step else low
        width = int(step) if step else 1
        if not least <= low <= high <= greatest or width < 1:
            raise ValueError(f"'{part}' is not within {least} to {greatest}")
        found.update(range(low, high + 1, width))
    return frozenset(found)


def _number(text: str, names: Mapping[str, int] | None) -> int:
    if names and text in names:
        return names[text]
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"'{text}' is not a number")
    return int(text)


def _zone(schedule: Mapping[str, Any]) -> tzinfo:
    # UTC needs no database of time zones.
    name = schedule.get("timeZone") or "UTC"
    return UTC if name in ("UTC", "Etc/UTC") else ZoneInfo(name)


def problem(schedule: Mapping[str, Any]) -> str | None:
    """What is wrong with a schedule's times; None if nothing is."""
    try:
        Cron.parse(str(schedule.get("schedule") or ""))
    except ValueError as error:
        return str(error)
    try:
        _zone(schedule)
    except (ValueError, OSError, KeyError):
        return f"there is no time zone '{schedule['timeZone']}'"
    return None


def began(schedule: Mapping[str, Any], now: datetime) -> datetime | None:
    """When the interval that a schedule is in began; None while it is in none, or disabled."""
    if schedule.get("disabled"):
        return None
    lasts = timedelta(seconds=int(schedule["durationSec"]))
    # Wall-clock time of the zone, as cron counts it: an interval may begin in an hour that is there twice.
    local = now.astimezone(_zone(schedule))
    found = Cron.parse(schedule["schedule"]).last(local, lasts)
    return found.astimezone(UTC) if found else None


def required(schedules: Mapping[str, Mapping[str, Any]], now: datetime) -> int:
    """How many VMs the schedules that are active ask for; the greatest of them."""
    active = [int(one.get("minRequiredReplicas") or 0) for one in schedules.values() if began(one, now) is not None]
    return max(active, default=0)


def status(schedules: Mapping[str, Mapping[str, Any]], now: datetime) -> dict[str, dict[str, str]]:
    """``scalingScheduleStatus`` of an autoscaler."""
    found: dict[str, dict[str, str]] = {}
    for name, schedule in schedules.items():
        start = began(schedule, now)
        state = "DISABLED" if schedule.get("disabled") else "READY" if start is None else "ACTIVE"
        found[name] = {"state": state}
        if start is not None:
            found[name]["lastStartTime"] = start.isoformat().replace("+00:00", "Z")
    return found

"""Times of an autoscaler's schedules: cron's five fields, and time zones.

https://docs.cloud.google.com/compute/docs/autoscaler/scaling-schedules
"""

import re
import zoneinfo
from functools import cache

_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    ("day of the week", 0, 7, {name: number for number, name in enumerate(_DAYS)}),
)


def wrong_with(schedule: str) -> str:
    """Returns what is wrong with a schedule in cron's form; empty if nothing is."""
    parts = schedule.split(" ")
    if len(parts) != len(_FIELDS):
        return "is not cron's five fields, such as '0 8 * * MON-FRI'"
    for part, (name, low, high, words) in zip(parts, _FIELDS, strict=True):
        for one in part.split(","):
            if not _is_span(one, low, high, words):
                return f"{one!r} is no {name}; give {low} to {high}, *, a span such as {low}-{high}, or */2"
    return ""


def is_time_zone(name: str) -> bool:
    """Whether this is a time zone of the IANA database; on a machine without one, whether it could be."""
    known = _zones()
    return name in known if known else re.fullmatch(r"[A-Za-z]+(/[A-Za-z0-9_+-]+)*", name) is not None


@cache
def _zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def _is_span(text: str, low: int, high: int, words: dict[str, int]) -> bool:
    """Whether this is one number or word, a span of them or a star, each perhaps with a step."""
    span, slash, step = text.partition("/")
    if slash and not (re.fullmatch(r"[0-9]{1,2}", step) and 1 <= int(step) <= high):
        return False
    if span == "*":
        return True
    numbers = [words.get(end.upper(), int(end) if re.fullmatch(r"[0-9]{1,2}", end) else -1) for end in span.split("-")]
    return len(numbers) <= 2 and numbers == sorted(numbers) and all(low <= number <= high for number in numbers)

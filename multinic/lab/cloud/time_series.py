"""Time series of Cloud Monitoring: alignment of one, reduction of several to one.

Discovery document monitoring.v3, ``projects.timeSeries.list``, parameters ``aggregation.*``: all points of a period are
grouped together, resulting in a single point with the end of the period as its end.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from .errors import ApiError, not_served
from .metrics import MetricType, Point

LEAST_PERIOD = 60
"""Seconds: "The value must be at least 60 seconds" (the same document)."""

_COMBINE: dict[str, Callable[[Sequence[float]], float]] = {
    "MEAN": lambda values: sum(values) / len(values),
    "MIN": min,
    "MAX": max,
    "SUM": sum,
    "COUNT": len,
}


@dataclass(frozen=True)
class Series:
    """One time series.

    Attributes:
        metric: What was measured; alignment can change kind and value type.
        labels: Labels of the metric.
        resource: Labels of the monitored resource.
        points: The newest first, as Monitoring answers them.
    """

    metric: MetricType
    labels: dict[str, str]
    resource: dict[str, str]
    points: tuple[Point, ...]

    def fields(self) -> dict[str, Any]:
        """What filters and ``groupByFields`` read; labels go by both of their spellings."""
        metric = {"type": f"compute.googleapis.com/{self.metric.name}", "labels": self.labels, "label": self.labels}
        resource = {"type": "gce_instance", "labels": self.resource, "label": self.resource}
        return {"metric": metric, "resource": resource, "project": self.resource.get("project_id")}


def align(series: Series, aligner: str, period: int, end: datetime) -> Series:
    """The series with one point a period, the last of which ends at `end`.

    Raises:
        ApiError: 400 for an aligner that the metric's kind does not take, 501 for one that the lab does not have.
    """
    word = aligner.removeprefix("ALIGN_")
    if word in ("DELTA", "RATE") and series.metric.kind != "DELTA":
        raise ApiError(
            400,
            "badRequest",
            f'Field aggregation.perSeriesAligner had an invalid value of "{aligner}": The aligner cannot be applied '
            f"to metrics with kind {series.metric.kind} and value type {series.metric.value_type}.",
        )
    combine = _COMBINE.get("SUM" if word in ("DELTA", "RATE") else word)
    if combine is None:
        raise not_served(f"perSeriesAligner {aligner}")
    periods: dict[int, list[float]] = defaultdict(list)
    for point in series.points:
        periods[math.floor((end - point.end).total_seconds() / period)].append(point.value)
    kind = "DELTA" if word == "DELTA" else "GAUGE"
    value_type = {"COUNT": "INT64", "MEAN": "DOUBLE", "RATE": "DOUBLE"}.get(word, series.metric.value_type)
    points = []
    for number, values in sorted(periods.items()):
        until = end - timedelta(seconds=number * period)
        value = combine(values) / (period if word == "RATE" else 1)
        points.append(Point(until - timedelta(seconds=period) if kind == "DELTA" else until, until, value))
    unit = {"COUNT": "1", "RATE": f"{series.metric.unit}/s"}.get(word, series.metric.unit)
    return replace(
        series, metric=replace(series.metric, kind=kind, value_type=value_type, unit=unit), points=tuple(points)
    )


def reduce(many: Sequence[Series], reducer: str, kept: Sequence[str]) -> list[Series]:
    """Aligned series with the same values of the kept fields made one.

    Args:
        many: The series.
        reducer: ``REDUCE_MEAN`` and so on.
        kept: Fields that stay apart, such as ``resource.labels.zone``.

    Raises:
        ApiError: 501 for a reducer that the lab does not have.
    """
    word = reducer.removeprefix("REDUCE_")
    combine = _COMBINE.get(word)
    if combine is None:
        raise not_served(f"crossSeriesReducer {reducer}")
    groups: dict[tuple[str, ...], list[Series]] = defaultdict(list)
    for series in many:
        groups[tuple(_read(series, name) for name in kept)].append(series)
    return [_reduced(group, word, combine, kept) for _, group in sorted(groups.items())]


def _reduced(
    group: list[Series], word: str, combine: Callable[[Sequence[float]], float], kept: Sequence[str]
) -> Series:
    values: dict[tuple[datetime, datetime], list[float]] = defaultdict(list)
    for series in group:
        for point in series.points:
            values[point.end, point.start].append(point.value)
    points = tuple(Point(start, end, combine(found)) for (end, start), found in sorted(values.items(), reverse=True))
    first = group[0]
    value_type = {"COUNT": "INT64", "MEAN": "DOUBLE"}.get(word, first.metric.value_type)
    names = {name.replace(".label.", ".labels.") for name in kept}
    return Series(
        replace(first.metric, value_type=value_type),
        {name: text for name, text in first.labels.items() if f"metric.labels.{name}" in names},
        # The project is a label of every resource and is always kept.
        {name: text for name, text in first.resource.items() if f"resource.labels.{name}" in names | {_PROJECT}},
        points,
    )


_PROJECT = "resource.labels.project_id"


def _read(series: Series, name: str) -> str:
    value: Any = series.fields()
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if not isinstance(value, str):
        raise ApiError(400, "badRequest", f'Field aggregation.groupByFields had an invalid value of "{name[:100]}".')
    return value

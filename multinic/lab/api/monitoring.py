"""Cloud Monitoring v3: ``projects.timeSeries.list`` for CPU and traffic of VMs.

https://cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.timeSeries/list; filters:
https://cloud.google.com/monitoring/api/v3/filters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from ..cloud import ApiError, Cloud
from ..cloud.call import Call
from ..cloud.metrics import TYPES, MetricType, Point
from ..cloud.time_series import LEAST_PERIOD, Series, align, reduce
from .filters import parse
from .lists import cut
from .requests import Service, require_project

_METRIC = re.compile(r"""metric\.type\s*=\s*["']([^"']+)["']""")
_STARTS = re.compile(r"""=\s*starts_with\(\s*"([^"]*)"\s*\)""")
_ENDS = re.compile(r"""=\s*ends_with\(\s*"([^"]*)"\s*\)""")
_BIGGEST = 100_000


def _list(cloud: Cloud, call: Call) -> dict[str, Any]:
    require_project(cloud, call.params["projectsId"])
    params = call.params
    if params.get("orderBy"):
        raise _bad("orderBy", params["orderBy"], "Ordering is not supported.")
    if any(name.startswith("secondaryAggregation.") for name in params):
        raise ApiError(501, "notImplemented", "The lab does not serve secondaryAggregation. See docs/lab.md.")
    start, end = _interval(params)
    found = list(_filtered(cloud, str(params.get("filter") or ""), start, end))
    found = _aggregated(found, params, end)
    headers = params.get("view") == "HEADERS"
    answers = [_answer(series, headers=headers) for series in found if headers or series.points]
    shown, following = cut(answers, params.get("pageSize"), params.get("pageToken"), biggest=_BIGGEST)
    return {"timeSeries": shown, "nextPageToken": following}


def _interval(params: Any) -> tuple[datetime, datetime]:
    end = _time("interval.endTime", params.get("interval.endTime"))
    start = _time("interval.startTime", params.get("interval.startTime") or params.get("interval.endTime"))
    if start > end:
        raise _bad("interval.startTime", params["interval.startTime"], "The start time must not be later than the end.")
    return start, end


def _time(name: str, text: Any) -> datetime:
    if not text:
        raise ApiError(400, "badRequest", f"Required parameter: {name}")
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise _bad(name, text, "Must be a time as RFC 3339 writes it, such as 2026-11-01T12:00:00Z.")
    return found


def _bad(name: str, value: Any, why: str) -> ApiError:
    return ApiError(400, "badRequest", f'Field {name} had an invalid value of "{str(value)[:100]}": {why}')


def _filtered(cloud: Cloud, text: str, start: datetime, end: datetime) -> Iterator[Series]:
    metric = _metric(text)
    # The functions of Monitoring's filters in terms of the lab's own: a * stands for anything.
    test = parse(_ENDS.sub(r'= "*\1"', _STARTS.sub(r'= "\1*"', text)))
    for record in cloud.metrics.records():
        labels = {"instance_name": record.key.rpartition("/")[2], **dict(metric.labels)}
        points = tuple(point for point in reversed(record.points[metric]) if start <= point.end <= end)
        series = Series(metric, labels, record.labels, points)
        if test(series.fields()):
            yield series


def _metric(text: str) -> MetricType:
    named = set(_METRIC.findall(text))
    if len(named) != 1:
        raise _bad("filter", text, 'The filter must specify a single metric type: metric.type = "…".')
    (name,) = named
    if name not in TYPES:
        raise ApiError(
            404,
            "notFound",
            f'Cannot find metric(s) that match type = "{name[:200]}"; the lab has {", ".join(sorted(TYPES))}.',
        )
    return TYPES[name]


def _aggregated(found: list[Series], params: Any, end: datetime) -> list[Series]:
    aligner = params.get("aggregation.perSeriesAligner") or "ALIGN_NONE"
    reducer = params.get("aggregation.crossSeriesReducer") or "REDUCE_NONE"
    if aligner == "ALIGN_NONE":
        if reducer != "REDUCE_NONE":
            raise _bad("aggregation.perSeriesAligner", aligner, "A reducer needs an aligner other than ALIGN_NONE.")
        return found
    text = str(params.get("aggregation.alignmentPeriod") or "")
    period = re.fullmatch(r"(\d{1,9})s", text)
    if period is None or int(period[1]) < LEAST_PERIOD:
        raise _bad("aggregation.alignmentPeriod", text, f"Must be at least {LEAST_PERIOD} seconds, such as 60s.")
    aligned = [align(series, aligner, int(period[1]), end) for series in found]
    if reducer == "REDUCE_NONE":
        return aligned
    return reduce(aligned, reducer, params.get("aggregation.groupByFields") or [])


def _answer(series: Series, *, headers: bool) -> dict[str, Any]:
    metric = series.metric
    answer: dict[str, Any] = {
        "metric": {"type": f"compute.googleapis.com/{metric.name}", "labels": series.labels},
        "resource": {"type": "gce_instance", "labels": series.resource},
        "metricKind": metric.kind,
        "valueType": metric.value_type,
        "unit": metric.unit,
    }
    if not headers:
        answer["points"] = [_point(point, metric) for point in series.points]
    return answer


def _point(point: Point, metric: MetricType) -> dict[str, Any]:
    whole = metric.value_type == "INT64"
    value: dict[str, Any] = {"int64Value": str(round(point.value))} if whole else {"doubleValue": point.value}
    return {"interval": {"startTime": _text(point.start), "endTime": _text(point.end)}, "value": value}


def _text(time: datetime) -> str:
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


SERVICE = Service("monitoring", "monitoring.v3", {"projects.timeSeries.list": _list})

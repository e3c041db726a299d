"""Cloud Monitoring's time series of CPU and traffic: the values that the autoscaler reads, in Google's form."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.lab.api.conftest import Door

PATH = "/monitoring/v3/projects/lab/timeSeries"
BEGAN = datetime(2026, 11, 1, 12, tzinfo=UTC)
CPU = "compute.googleapis.com/instance/cpu/utilization"
SENT = "compute.googleapis.com/instance/network/sent_bytes_count"
RECEIVED = "compute.googleapis.com/instance/network/received_bytes_count"
INTERVAL = {"interval.startTime": "2026-11-01T12:00:00Z", "interval.endTime": "2026-11-01T12:04:00Z"}
# 5 Gbit/s takes 0.23 vCPUs (multinic.lab.cloud.readings), of the four of an n2-highcpu-4.
BYTES_A_MINUTE = 5 * 10**9 // 8 * 60


@pytest.fixture
def busy(door: Door, monkeypatch: pytest.MonkeyPatch) -> Door:
    """VMs vm-a and vm-b in two zones: vm-a sent 5 Gbit/s for four minutes and received half of that, vm-b nothing."""
    door.ok("POST", "/compute/v1/projects/lab/global/networks", {"name": "auto", "autoCreateSubnetworks": True})
    image = "projects/debian-cloud/global/images/family/debian-12"
    for letter in "ab":
        zone = f"zones/us-central1-{letter}"
        body = {
            "name": f"vm-{letter}",
            "machineType": f"{zone}/machineTypes/n2-highcpu-4",
            "disks": [{"boot": True, "initializeParams": {"sourceImage": image}}],
            "networkInterfaces": [{"network": "global/networks/auto"}],
        }
        door.ok("POST", f"/compute/v1/projects/lab/{zone}/instances", body)
    minute = 0
    substrate = door.cloud.substrate

    def sent(key: str) -> int:
        return minute * BYTES_A_MINUTE if key.endswith("vm-a") else 0

    monkeypatch.setattr(substrate, "egress_bytes", sent)
    monkeypatch.setattr(substrate, "ingress_bytes", lambda key: sent(key) // 2)
    door.cloud.metrics._records.clear()
    for minute in range(5):
        door.cloud.metrics.sample(BEGAN + timedelta(minutes=minute))
    return door


def listed(door: Door, metric: str, more: str = "", **params: str) -> list[dict[str, Any]]:
    response = door.send("GET", PATH, params={"filter": f'metric.type = "{metric}"{more}', **INTERVAL, **params})
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json().get("timeSeries", [])
    return found


def values(series: dict[str, Any]) -> list[float]:
    return [float(next(iter(point["value"].values()))) for point in series.get("points", [])]


def test_points_are_what_the_vms_did(busy: Door) -> None:
    first, second = listed(busy, CPU)
    assert first["resource"]["labels"]["zone"] == "us-central1-a"
    assert first["metric"] == {"type": CPU, "labels": {"instance_name": "vm-a"}}
    assert (first["metricKind"], first["valueType"]) == ("GAUGE", "DOUBLE")
    assert values(first) == pytest.approx([0.0575] * 4)
    assert values(second) == [0.0] * 4
    # Newest first; a gauge's start is its end.
    assert first["points"][0]["interval"] == {
        "startTime": "2026-11-01T12:04:00.000000Z",
        "endTime": "2026-11-01T12:04:00.000000Z",
    }
    (sent,) = listed(busy, SENT, ' AND metric.labels.instance_name = "vm-a"')
    assert (sent["metricKind"], sent["valueType"], sent["unit"]) == ("DELTA", "INT64", "By")
    assert sent["points"][0]["interval"]["startTime"] == "2026-11-01T12:03:00.000000Z"
    assert sent["points"][0]["value"] == {"int64Value": str(BYTES_A_MINUTE)}
    (received,) = listed(busy, RECEIVED, ' AND resource.label.zone = starts_with("us-central1-a")')
    assert values(received) == [BYTES_A_MINUTE // 2] * 4


def test_aligned_and_reduced(busy: Door) -> None:
    two_minutes = {"aggregation.alignmentPeriod": "120s"}
    first, _ = listed(busy, SENT, **two_minutes, **{"aggregation.perSeriesAligner": "ALIGN_RATE"})
    assert values(first) == [BYTES_A_MINUTE / 60] * 2
    assert first["unit"] == "By/s"
    summed = {"aggregation.perSeriesAligner": "ALIGN_DELTA", "aggregation.crossSeriesReducer": "REDUCE_SUM"}
    (total,) = listed(busy, SENT, **two_minutes, **summed)
    assert values(total) == [2 * BYTES_A_MINUTE] * 2
    assert "labels" not in total["metric"]
    by_zone = {**summed, "aggregation.groupByFields": "resource.labels.zone"}
    assert [s["resource"]["labels"]["zone"][-1] for s in listed(busy, SENT, **two_minutes, **by_zone)] == ["a", "b"]
    mean = {"aggregation.perSeriesAligner": "ALIGN_MEAN", "aggregation.crossSeriesReducer": "REDUCE_MEAN"}
    (fleet,) = listed(busy, CPU, **two_minutes, **mean)
    assert values(fleet) == pytest.approx([0.02875] * 2)


def test_headers_and_pages(busy: Door) -> None:
    assert [s.get("points") for s in listed(busy, CPU, view="HEADERS")] == [None, None]
    query = {"filter": f'metric.type="{CPU}"', **INTERVAL, "pageSize": "1"}
    first = busy.send("GET", PATH, params=query).json()
    second = busy.send("GET", PATH, params={**query, "pageToken": first["nextPageToken"]}).json()
    names = [s["metric"]["labels"]["instance_name"] for page in (first, second) for s in page["timeSeries"]]
    assert names == ["vm-a", "vm-b"]
    assert "nextPageToken" not in second


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"filter": ""}, 400, "single metric type"),
        ({"filter": 'metric.type = "compute.googleapis.com/instance/uptime"'}, 404, "Cannot find metric"),
        ({"interval.endTime": ""}, 400, "interval.endTime"),
        ({"interval.endTime": "yesterday"}, 400, "RFC 3339"),
        ({"interval.startTime": "2026-11-02T00:00:00Z"}, 400, "not be later"),
        ({"aggregation.perSeriesAligner": "ALIGN_MEAN"}, 400, "at least 60 seconds"),
        ({"aggregation.perSeriesAligner": "ALIGN_RATE", "aggregation.alignmentPeriod": "60s"}, 400, "kind GAUGE"),
        ({"aggregation.perSeriesAligner": "ALIGN_STDDEV", "aggregation.alignmentPeriod": "60s"}, 501, "ALIGN_STDDEV"),
        ({"aggregation.crossSeriesReducer": "REDUCE_SUM"}, 400, "aligner other than"),
        ({"orderBy": "time"}, 400, "not supported"),
    ],
)
def test_refused(busy: Door, changes: dict[str, str], code: int, words: str) -> None:
    response = busy.send("GET", PATH, params={"filter": f'metric.type = "{CPU}"', **INTERVAL} | changes)
    assert response.status_code == code
    assert words in response.json()["error"]["message"]


def test_another_project_is_refused(door: Door) -> None:
    response = door.send("GET", PATH.replace("lab/time", "other/time"), params={"filter": "x", **INTERVAL})
    assert (response.status_code, response.json()["error"]["status"]) == (403, "PERMISSION_DENIED")

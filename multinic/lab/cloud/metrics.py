"""What VMs do, as Cloud Monitoring knows it: CPU utilisation and traffic, a point a minute.

Metric types, kinds, labels, and that they are sampled every 60 seconds:
https://cloud.google.com/monitoring/api/metrics_gcp_c#gcp-compute. Kept in memory, six hours of each VM.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from .links import name_of, split
from .readings import Reading, load, read
from .store import Object

if TYPE_CHECKING:
    from .cloud import Cloud

SAMPLE_SECONDS = 60.0
_KEPT_POINTS = 360
_KEPT_MACHINES = 2000


@dataclass(frozen=True)
class MetricType:
    """A metric of an instance.

    Attributes:
        name: Its type without ``compute.googleapis.com/``.
        kind: ``GAUGE`` or ``DELTA``.
        value_type: ``DOUBLE`` or ``INT64``.
        unit: Of its values.
        labels: Beside ``instance_name``.
    """

    name: str
    kind: str
    value_type: str
    unit: str
    labels: tuple[tuple[str, str], ...] = ()


# The lab's load balancer hands packets on as they are and does not count them apart from others.
_UNBALANCED = (("loadbalanced", "false"),)
CPU = MetricType("instance/cpu/utilization", "GAUGE", "DOUBLE", "10^2.%")
SENT = MetricType("instance/network/sent_bytes_count", "DELTA", "INT64", "By", _UNBALANCED)
RECEIVED = MetricType("instance/network/received_bytes_count", "DELTA", "INT64", "By", _UNBALANCED)
TYPES = {f"compute.googleapis.com/{metric.name}": metric for metric in (CPU, SENT, RECEIVED)}


@dataclass(frozen=True)
class Point:
    """A value of the time from `start` (exclusive) to `end`."""

    start: datetime
    end: datetime
    value: float


@dataclass
class Record:
    """What is known of one VM; a VM made anew under its name is another one.

    Attributes:
        number: Its id.
        key: Its key.
        points: By metric, the oldest first.
    """

    number: str
    key: str
    points: dict[MetricType, deque[Point]] = field(
        default_factory=lambda: {metric: deque(maxlen=_KEPT_POINTS) for metric in TYPES.values()}
    )
    looked: datetime | None = None
    reading: Reading | None = None

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the monitored resource ``gce_instance``.

        https://cloud.google.com/monitoring/api/resources#tag_gce_instance
        """
        parts = split(self.key)
        return {"project_id": parts.project, "instance_id": self.number, "zone": name_of(parts.scope)}


class Metrics:
    """Looks at all running VMs once a minute."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._records: OrderedDict[str, Record] = OrderedDict()

    async def run(self) -> None:
        """Goes on until cancelled."""
        while True:
            self.sample(datetime.now(UTC))
            await self._cloud.clock.sleep(SAMPLE_SECONDS)

    def sample(self, now: datetime) -> None:
        """Takes one point of each running VM that has been looked at before."""
        for key, value in self._cloud.store.everywhere("instances"):
            if value["status"] == "RUNNING":
                record = self._records.setdefault(value["id"], Record(value["id"], key))
                self._look(record, value, now)
        while len(self._records) > _KEPT_MACHINES:
            self._records.popitem(last=False)

    def _look(self, record: Record, instance: Object, now: datetime) -> None:
        at, before = record.looked, record.reading
        reading = read(self._cloud, record.key, instance)
        record.looked, record.reading = now, reading
        if at is None or before is None or at >= now:
            return
        sent, received = reading.sent - before.sent, reading.received - before.received
        # Counters that fell are those of another boot.
        if sent < 0 or received < 0:
            return
        cpu = load(self._cloud, instance, before, reading, (now - at).total_seconds()).cpu
        for metric, value in ((CPU, cpu), (SENT, float(sent)), (RECEIVED, float(received))):
            record.points[metric].append(Point(now if metric.kind == "GAUGE" else at, now, value))

    def records(self) -> list[Record]:
        """All VMs that were looked at, also those that are gone."""
        return list(self._records.values())

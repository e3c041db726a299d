"""Public inputs that say how many router VMs there are. See `args` for what holds for all inputs."""

from typing import NotRequired, TypedDict

from multinic.choices import AutoscalerMode, MetricType, PredictiveMethod


class ReplicasArgs(TypedDict):
    """How many VMs each zone has: `min` alone is a fixed number, `min` and `max` autoscaled, `min` 0 is off."""

    min: NotRequired[int]
    """Fewest VMs a zone, 0 to 1000. Default 1."""
    max: NotRequired[int]
    """Most VMs a zone, at least `min`. Default 4, but none if `min` is given."""


class StandbyArgs(TypedDict):
    """VMs that are kept ready but do not run, for scale-out that does not wait for a new VM.

    Each costs its disk, a suspended one its memory as well. https://cloud.google.com/compute/docs/instance-groups/suspended-and-stopped-vms-in-mig
    """

    stopped: NotRequired[int]
    """Stopped VMs a zone, 0 to 1000. Default 0."""
    suspended: NotRequired[int]
    """Suspended VMs a zone, 0 to 1000; back sooner than stopped ones. Default 0."""
    initial_delay_sec: NotRequired[int]
    """Seconds that such a VM runs at first, so that it is whole, 20 to 3600. Default 60."""


class ScheduleArgs(TypedDict):
    """A time span with a greater smallest size.

    https://cloud.google.com/compute/docs/autoscaler/scaling-schedules
    """

    name: str
    """Its name, a valid resource name."""
    schedule: str
    """When it begins, in cron's five fields."""
    duration_sec: int
    """How long it lasts in seconds, at least 300."""
    min_replicas: int
    """Fewest VMs a zone in that time."""
    time_zone: NotRequired[str]
    """IANA time zone. Default Etc/UTC."""


class ScaleInArgs(TypedDict):
    """How fast an autoscaler may remove VMs."""

    max_replicas: NotRequired[int]
    """Most VMs a zone removed within the window. Default 1."""
    window_sec: NotRequired[int]
    """Length of the window in seconds, 60 to 3600. Default 600."""


class MetricArgs(TypedDict):
    """A metric of Cloud Monitoring that an autoscaler follows beside the CPU; the greatest need wins.

    https://cloud.google.com/compute/docs/autoscaler/scaling-cloud-monitoring-metrics
    """

    name: str
    """Its type, such as compute.googleapis.com/instance/network/sent_bytes_count."""
    target: NotRequired[float]
    """Value aimed at for each VM. One of this and `single_instance_assignment` is required."""
    single_instance_assignment: NotRequired[float]
    """For a metric of the whole group: how much of it one VM is for."""
    type: NotRequired[MetricType]
    """What the number is. Default GAUGE."""
    filter: NotRequired[str]
    """Which time series, as Cloud Monitoring's filter. Default: those of the VMs."""


class AutoscalerArgs(TypedDict):
    """When a zone's autoscaler changes the number of VMs."""

    cpu_target: NotRequired[float]
    """CPU use aimed at, 0.05 to 1. Default: 0.04 for each Gbit/s that the machine type may send for each vCPU.

    That is 0.1 for n2-highcpu-4 (10 Gbit/s, 4 vCPUs) and 0.2 for n1-highcpu-2, of whose CPU 10 Gbit/s took 22 to 24 %
    (terraform-google-multinic); 0.2 where the cap is not known. A target that is not reached at the cap is warned of.
    """
    cooldown_sec: NotRequired[int]
    """Seconds after its start for which a VM's CPU is not counted, 15 to 600. Default 45."""
    stabilization_sec: NotRequired[int]
    """Seconds over which the greatest need decides before scale-in, 60 to 3600. Default 600."""
    scale_in: NotRequired[ScaleInArgs]
    """Limit of scale-in."""
    mode: NotRequired[AutoscalerMode]
    """What it may do. Default ON."""
    predictive: NotRequired[PredictiveMethod]
    """Whether it looks ahead. Default NONE."""
    schedules: NotRequired[list[ScheduleArgs]]
    """Time spans with more VMs, at most 128. Default none."""
    metrics: NotRequired[list[MetricArgs]]
    """Metrics followed beside the CPU. Default none: byte counts took 31 minutes to scale from one VM to six, CPU 6
    (terraform-google-multinic)."""

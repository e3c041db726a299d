"""What a router is made of, checked: frozen dataclasses with the defaults. `parsing` fills them, components read them.

Why each default is what it is stands next to it; the public inputs in `args` repeat the numbers for their readers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network

import pulumi

from multinic import machines
from multinic.choices import (
    AutoscalerMode,
    MetricType,
    MinimalAction,
    NicType,
    Persistence,
    PredictiveMethod,
    SessionAffinity,
    TrackingMode,
    UpdateType,
    ZonalAffinity,
)
from multinic.reading import UNREADABLE

DRAIN_MARGIN_SEC = 3
"""Added to the load balancer's own detection time when a router leaves: probes are not sent at once everywhere."""

SPOT_DRAIN_SEC = 25
"""A Spot VM is gone 30 s after the notice; 5 s are left for the system to stop."""

BOOT_BUDGET_SEC = 20
"""From creation to the first good verdict, generously; the heal check's initial delay is three times that."""

LOGGING_SCOPE = "https://www.googleapis.com/auth/logging.write"


@dataclass(frozen=True)
class NetworkSettings:
    """One network and its NIC."""

    network: pulumi.Input[str]
    subnetwork: pulumi.Input[str]
    cidrs: tuple[IPv4Network, ...]
    subnet_cidrs: tuple[IPv4Network, ...] = ()
    address: pulumi.Input[str] = ""
    nic_type: NicType = NicType.GVNIC
    queue_count: int | None = None
    mtu: int | None = None
    project: str = ""


@dataclass(frozen=True)
class Autoscaled:
    """A zone whose size an autoscaler decides."""

    min: int = 1  # one zone lost leaves the rest
    max: int = 4


@dataclass(frozen=True)
class Fixed:
    """A zone of a fixed size; 0 is off."""

    size: int


Replicas = Autoscaled | Fixed


@dataclass(frozen=True)
class Standby:
    """VMs of a zone that are kept ready."""

    stopped: int = 0
    suspended: int = 0
    initial_delay_sec: int = 3 * BOOT_BUDGET_SEC


@dataclass(frozen=True)
class Metric:
    """A metric that an autoscaler follows beside the CPU."""

    name: str
    target: float | None = None
    single_instance_assignment: float | None = None
    type: MetricType = MetricType.GAUGE
    filter: str = ""


@dataclass(frozen=True)
class Schedule:
    """A time span with more VMs."""

    name: str
    schedule: str
    duration_sec: int
    min_replicas: int
    time_zone: str = "Etc/UTC"


@dataclass(frozen=True)
class AutoscalerSettings:
    """Numbers of the autoscalers."""

    cpu_target: float | None = None  # None: what suits the machine type, `FleetSettings.cpu_target`
    cooldown_sec: int = 45
    stabilization_sec: int = 600
    scale_in_max_replicas: int = 1
    scale_in_window_sec: int = 600
    mode: AutoscalerMode = AutoscalerMode.ON
    predictive: PredictiveMethod = PredictiveMethod.NONE
    schedules: tuple[Schedule, ...] = ()
    metrics: tuple[Metric, ...] = ()


@dataclass(frozen=True)
class MachineSettings:
    """The VMs."""

    image: str = ""
    image_family: str = ""
    type: str = "n2-highcpu-4"
    disk_gb: int = 10
    disk_type: str = "pd-balanced"
    disk_kms_key: pulumi.Input[str] = ""
    spot: bool = False
    secure_boot: bool = True
    vtpm: bool = True
    integrity_monitoring: bool = True
    confidential: bool = False
    tier_1: bool = False
    min_cpu_platform: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    startup_script: str = ""
    clamp_mss: int | None = None

    @property
    def parsed_type(self) -> machines.Machine | None:
        """The machine type taken apart."""
        return machines.parse(self.type)

    @property
    def cpu_at_cap(self) -> float | None:
        """Share of a VM's CPU that forwarding takes when it sends all that it may; None if not known."""
        machine = self.parsed_type
        cap = machine.cap(tier_1=self.tier_1) if machine else None
        return machine.cpu(cap) if machine and cap else None


@dataclass(frozen=True)
class CheckSettings:
    """A health check. The defaults are the traffic check's."""

    interval_sec: int = 1  # the shortest that Google allows
    timeout_sec: int = 1
    healthy_threshold: int = 2
    unhealthy_threshold: int = 2  # one lost probe moves nothing
    port: int = 9001

    @property
    def detection_sec(self) -> int:
        """Seconds until a VM that answers no more counts as unhealthy, at the latest."""
        return self.interval_sec * self.unhealthy_threshold + self.timeout_sec


HEAL_CHECK = CheckSettings(interval_sec=10, timeout_sec=5, healthy_threshold=2, unhealthy_threshold=3, port=9000)


@dataclass(frozen=True)
class HealthSettings:
    """The two health checks."""

    traffic: CheckSettings = CheckSettings()
    heal: CheckSettings = HEAL_CHECK
    initial_delay_sec: int = 3 * BOOT_BUDGET_SEC
    log: bool = True
    regional: bool = False

    @property
    def drain_sec(self) -> int:
        """Seconds that a leaving router goes on forwarding after it has closed its traffic port."""
        return self.traffic.interval_sec * self.traffic.unhealthy_threshold + DRAIN_MARGIN_SEC


@dataclass(frozen=True)
class NextHopPolicy:
    """The load balancers, alike in all networks."""

    session_affinity: SessionAffinity = SessionAffinity.CLIENT_IP_PORT_PROTO
    tracking_mode: TrackingMode = TrackingMode.PER_CONNECTION
    persistence: Persistence = Persistence.NEVER_PERSIST  # routers keep no state, so flows can move at once
    idle_timeout_sec: int | None = None
    draining_sec: int = 30  # a group delays each deletion by it; the provider's own default is 300
    global_access: bool = True
    log_sample_rate: float = 0.0
    failover_zones: tuple[str, ...] = ()
    failover_ratio: float = 0.0
    drop_if_unhealthy: bool = False
    zonal_affinity: ZonalAffinity = ZonalAffinity.DISABLED
    spillover_ratio: float | None = None
    stateful: bool = False


@dataclass(frozen=True)
class RoutesSettings:
    """The routes in each network."""

    priority: int = 900  # below the default route's 1000
    tags: tuple[str, ...] = ()
    allow_nested_cidrs: bool = False


@dataclass(frozen=True)
class AccessSettings:
    """Service account and firewall."""

    service_account: pulumi.Input[str] = ""
    scopes: tuple[str, ...] = (LOGGING_SCOPE,)
    source_cidrs: tuple[IPv4Network, ...] = ()
    iap_ssh: bool = False


@dataclass(frozen=True)
class UpdatesSettings:
    """How changes reach the VMs."""

    type: UpdateType = UpdateType.PROACTIVE
    minimal_action: MinimalAction = MinimalAction.REPLACE
    max_surge: int = 1
    max_unavailable: int = 0
    min_ready_sec: int = 10  # with surge 1 a bad template stops at its first VM
    wait: bool = True


@dataclass(frozen=True)
class FleetSettings:
    """The VMs: what `RouterFleet` makes."""

    region: str
    networks: tuple[NetworkSettings, ...]
    zones: tuple[str, ...] | None  # None: look them up
    machine: MachineSettings
    project: str = ""
    replicas: Replicas = Autoscaled()
    autoscaler: AutoscalerSettings = AutoscalerSettings()
    standby: Standby = Standby()
    health: HealthSettings = HealthSettings()
    updates: UpdatesSettings = UpdatesSettings()
    labels: Mapping[str, str] = field(default_factory=dict)
    generation: str = ""
    service_account: pulumi.Input[str] = ""
    scopes: tuple[str, ...] = (LOGGING_SCOPE,)
    draining_sec: int = 30

    @property
    def cpu_target(self) -> float:
        """CPU use that the autoscalers aim at.

        Forwarding at full rate takes a small share of the CPU, the smaller the more vCPUs there are for a Gbit/s: a
        target above it is never reached, so it follows from the machine type.
        """
        given = self.autoscaler.cpu_target
        return machines.cpu_target(self.machine.cpu_at_cap) if given is None else given

    @property
    def routes_by_destination(self) -> bool:
        """Whether the guests need the ranges: with two networks a wire does, unless a range contains another's."""
        return len(self.networks) > 2 or bool(nested_cidrs(self.networks))


@dataclass(frozen=True)
class RouterSettings:
    """A whole router: what `MultinicRouter` makes."""

    fleet: FleetSettings
    next_hop: NextHopPolicy = NextHopPolicy()
    routes: RoutesSettings = RoutesSettings()
    access: AccessSettings = AccessSettings()


def nested_cidrs(networks: tuple[NetworkSettings, ...]) -> list[tuple[int, IPv4Network, int, IPv4Network]]:
    """Returns (network, range, other network, its range) for each range that contains one of another network.

    The other network's subnets count as well: the route for the wider range leads out of the network, the narrower
    addresses live inside it.
    """
    found = []
    for i, one in enumerate(networks):
        for j, other in enumerate(networks):
            if i == j:
                continue
            inside = dict.fromkeys((*other.cidrs, *other.subnet_cidrs))
            inside.pop(UNREADABLE, None)
            found += [
                (i, wide, j, near) for wide in one.cidrs for near in inside if wide != near and near.subnet_of(wide)
            ]
    return found

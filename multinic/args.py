"""Public inputs of a router. Each class becomes an object type for other languages, each docstring its text there.

No `from __future__ import annotations` here: Pulumi's schema inference reads annotations as objects. What decides
which resources there are is plain (never an Output); links, addresses and e-mails may be Outputs. Defaults live in
`settings`, next to what they become.
"""

from typing import NotRequired, TypedDict

import pulumi

from multinic.args_scaling import AutoscalerArgs, ReplicasArgs, StandbyArgs
from multinic.choices import (
    MinimalAction,
    NicType,
    Persistence,
    SessionAffinity,
    TrackingMode,
    UpdateType,
    ZonalAffinity,
)


class NetworkArgs(TypedDict):
    """One network, and the NIC that every router has in it. The first one is nic0."""

    network: pulumi.Input[str]
    """Full link of the VPC network. Its project is where routes and firewall rules are made (Shared VPC)."""
    subnetwork: pulumi.Input[str]
    """Full link of the subnetwork that the NIC is in, of the router's region."""
    cidrs: list[str]
    """IPv4 ranges reachable through this NIC. Every other network gets a route for each of them."""
    subnet_cidrs: NotRequired[list[str]]
    """Ranges of the network's own subnets, to refuse routes that they would shadow. Not used otherwise."""
    address: NotRequired[pulumi.Input[str]]
    """Existing internal IPv4 address for the load balancer, reserved in the subnetwork. Default: one is reserved."""
    nic_type: NotRequired[NicType]
    """Virtual device. Default GVNIC."""
    queue_count: NotRequired[int]
    """Receive and transmit queues of the NIC, 1 to 16 for GVNIC, 1 to 32 for virtio. Default: Google Cloud's own."""
    mtu: NotRequired[int]
    """MTU in bytes that the routers set on the NIC, 1300 to 8896. Default: what the metadata server says."""
    project: NotRequired[str]
    """Project of the network, if `network` is not a full link. Default: taken from the link."""


class ShieldedArgs(TypedDict):
    """Shielded VM. All on by default; turn secure boot off for kernels with unsigned modules."""

    secure_boot: NotRequired[bool]
    """Run signed boot components only. Default true."""
    vtpm: NotRequired[bool]
    """Virtual trusted platform module. Default true."""
    integrity_monitoring: NotRequired[bool]
    """Compare each boot with the first. Default true; needs the vTPM."""


class MachineArgs(TypedDict):
    """The router VMs."""

    image: NotRequired[str]
    """Exact image, such as projects/debian-cloud/global/images/debian-12-bookworm-v20260921. Required, unless
    `image_family` is given: scale-out and healing must bring up what was tested."""
    image_family: NotRequired[str]
    """Image family, such as projects/debian-cloud/global/images/family/debian-12; its newest image is looked up at
    each deployment, so a new image rolls the fleet."""
    type: NotRequired[str]
    """Machine type. Default n2-highcpu-4: 10 Gbit/s a VM, up to four networks."""
    disk_gb: NotRequired[int]
    """Size of the boot disk in GB, 10 to 65536, not less than the image. Default 10, and 20 with images of Rocky Linux
    and CentOS, which are that large; routers keep no state."""
    disk_type: NotRequired[str]
    """Type of the boot disk. Default pd-balanced, hyperdisk-balanced where the series has no Persistent Disk."""
    disk_kms_key: NotRequired[pulumi.Input[str]]
    """Cloud KMS key that encrypts the boot disk. Default: Google's own keys."""
    spot: NotRequired[bool]
    """Spot VMs: cheap, and taken away at 30 s notice. Default false."""
    shielded: NotRequired[ShieldedArgs]
    """Shielded VM options."""
    confidential: NotRequired[bool]
    """Confidential VM (AMD SEV) on N2D, C2D, C3D and C4D. Default false."""
    tier_1: NotRequired[bool]
    """Tier_1 networking: more bandwidth, on large machine types only. Default false."""
    min_cpu_platform: NotRequired[str]
    """Oldest CPU platform, such as Intel Ice Lake. Default: any."""
    tags: NotRequired[list[str]]
    """Network tags of the VMs. Default none; multinic's firewall rules go by service account."""
    metadata: NotRequired[dict[str, str]]
    """More instance metadata. Keys of multinic itself are refused."""
    startup_script: NotRequired[str]
    """A script that each VM runs last at every boot; bounded in time, and its failure harms nothing."""
    clamp_mss: NotRequired[int]
    """Clamp the MSS of forwarded TCP connections to this number of bytes, 536 to 8856. Default: not clamped."""


class CheckArgs(TypedDict):
    """Numbers of the traffic check, which decides who gets traffic."""

    interval_sec: NotRequired[int]
    """Seconds between probes, 1 to 300. Default 1."""
    timeout_sec: NotRequired[int]
    """Seconds that an answer may take, at most the interval. Default 1."""
    healthy_threshold: NotRequired[int]
    """Good answers in a row until a VM gets traffic, 1 to 10. Default 2."""
    unhealthy_threshold: NotRequired[int]
    """Bad ones in a row until it gets no more, 1 to 10. Default 2: one lost probe moves nothing."""
    port: NotRequired[int]
    """TCP port. Default 9001."""


class HealCheckArgs(TypedDict):
    """Numbers of the heal check, which decides who is re-created. It must be slower than the traffic check."""

    interval_sec: NotRequired[int]
    """Seconds between probes, 1 to 300. Default 10."""
    timeout_sec: NotRequired[int]
    """Seconds that an answer may take, at most the interval. Default 5."""
    healthy_threshold: NotRequired[int]
    """Good answers in a row until a VM counts as healthy, 1 to 10. Default 2."""
    unhealthy_threshold: NotRequired[int]
    """Bad ones in a row until it is re-created, 1 to 10. Default 3."""
    port: NotRequired[int]
    """TCP port. Default 9000."""
    initial_delay_sec: NotRequired[int]
    """Seconds after a VM's creation in which it is not healed, up to 3600. Default 60, three times the boot budget."""


class HealthArgs(TypedDict):
    """The two health checks."""

    traffic: NotRequired[CheckArgs]
    """Who gets traffic."""
    heal: NotRequired[HealCheckArgs]
    """Who is re-created."""
    log: NotRequired[bool]
    """Log each change of health to Cloud Logging. Default true."""
    regional: NotRequired[bool]
    """Make the traffic check a regional resource, for strict isolation of regions. Default false."""


class NextHopPolicyArgs(TypedDict):
    """How the load balancers spread and move connections, alike in all networks."""

    session_affinity: NotRequired[SessionAffinity]
    """What is hashed. Default CLIENT_IP_PORT_PROTO."""
    tracking_mode: NotRequired[TrackingMode]
    """What one tracked connection is. Default PER_CONNECTION."""
    persistence: NotRequired[Persistence]
    """Whether connections stay on a failing router. Default NEVER_PERSIST: routers keep no state."""
    idle_timeout_sec: NotRequired[int]
    """Seconds until an idle tracked connection is forgotten, 600 to 57600; only with PER_SESSION. Default 600."""
    draining_sec: NotRequired[int]
    """Seconds that connections stay on a VM that is being removed, up to 3600. Default 30; each deletion waits so
    long."""
    global_access: NotRequired[bool]
    """Serve clients of all regions. Default true."""
    log_sample_rate: NotRequired[float]
    """Share of connections that is logged, 0 to 1. Default 0, off."""
    failover_zones: NotRequired[list[str]]
    """Zones whose routers get traffic only when too few of the others are healthy. Default none."""
    failover_ratio: NotRequired[float]
    """Share of healthy routers below which traffic fails over, 0 to 1; only with `failover_zones`. Default 0: when
    none is left."""
    drop_if_unhealthy: NotRequired[bool]
    """Drop packets when no router is healthy, where otherwise all get traffic; only with `failover_zones`, as Google
    Cloud has it. Default false: routers may forward although probes fail."""
    zonal_affinity: NotRequired[ZonalAffinity]
    """Whether routers in the client's zone are preferred, which saves traffic between zones. Symmetric only where both
    ends of a connection are in one zone. Before general availability on Google Cloud. Default
    ZONAL_AFFINITY_DISABLED."""
    spillover_ratio: NotRequired[float]
    """Share of a zone's routers that must be healthy to serve it alone, 0 to 1; only with
    ZONAL_AFFINITY_SPILL_CROSS_ZONE. Default 0: one healthy router is enough."""
    stateful: NotRequired[bool]
    """Your own startup script keeps connection state (NAT, conntrack) on the routers. Then settings that would move
    a live connection, or hash its two directions apart, are refused. Default false."""


class RoutesArgs(TypedDict):
    """The routes in each network."""

    priority: NotRequired[int]
    """Priority of the routes, 0 to 65535, smaller wins. Default 900, below the default route's 1000."""
    tags: NotRequired[list[str]]
    """Only VMs with one of these network tags use the routes. Default: all. Tagged routes are not exchanged over VPC
    peering."""
    allow_nested_cidrs: NotRequired[bool]
    """Allow a range that contains another network's, such as 0.0.0.0/0. The routers then drop what would go back
    where it came from. Default false."""


class AccessArgs(TypedDict):
    """Who the routers are and who reaches them."""

    service_account: NotRequired[pulumi.Input[str]]
    """E-mail of an existing service account. Default: one is made, with the role of log writer only."""
    scopes: NotRequired[list[str]]
    """OAuth scopes of the VMs. Default https://www.googleapis.com/auth/logging.write."""
    source_cidrs: NotRequired[list[str]]
    """More IPv4 ranges whose packets the routers take, such as those of clients in other regions. Default none: only
    what `networks` announce."""
    iap_ssh: NotRequired[bool]
    """Allow SSH from Identity-Aware Proxy to nic0. Default false."""


class UpdatesArgs(TypedDict):
    """How a changed template reaches the VMs."""

    type: NotRequired[UpdateType]
    """Who starts it. Default PROACTIVE."""
    minimal_action: NotRequired[MinimalAction]
    """Least that is done to each VM. Default REPLACE."""
    max_surge: NotRequired[int]
    """VMs a zone that may exist above the size during an update, 0 to 100. Default 1."""
    max_unavailable: NotRequired[int]
    """VMs a zone that may be missing during an update, 0 to 100. Default 0."""
    min_ready_sec: NotRequired[int]
    """Seconds that a new VM must have been healthy before the next one is replaced, up to 3600. Default 10."""
    wait: NotRequired[bool]
    """Let `pulumi up` wait until every group runs the new template, and fail if one cannot. Default true; always
    false with OPPORTUNISTIC, where true is refused. An autoscaled group begins empty, so its first deployment waits
    for no VM. Without waiting, replaced templates are left in the project,
    since a group may still use them; `multinic templates --delete` clears them, before `pulumi destroy`, since a
    template holds the subnetworks that it names."""


class MultinicRouterArgs(TypedDict):
    """Inputs of `MultinicRouter`."""

    region: str
    """Region of the routers, such as us-central1."""
    networks: list[NetworkArgs]
    """Networks in the order of the NICs, two to eight, as many as the machine type has NICs."""
    zones: NotRequired[list[str]]
    """Zones, one group of VMs each. Default: all ordinary zones of the region that are up, looked up."""
    project: NotRequired[str]
    """Project of the VMs and load balancers. Default: the provider's."""
    machine: MachineArgs
    """The VMs."""
    replicas: NotRequired[ReplicasArgs]
    """VMs a zone. Default autoscaled from 1 to 4."""
    autoscaler: NotRequired[AutoscalerArgs]
    """Numbers of the autoscalers."""
    standby: NotRequired[StandbyArgs]
    """VMs kept ready for scale-out. Default none: a router is ready some 20 seconds after its creation."""
    health: NotRequired[HealthArgs]
    """The two health checks."""
    updates: NotRequired[UpdatesArgs]
    """How changes reach the VMs."""
    labels: NotRequired[dict[str, str]]
    """Labels of all resources that can have them."""
    generation: NotRequired[str]
    """Prefix of all names, such as v2. For an upgrade without a gap, declare a second router of another name and
    generation beside the first with a greater `routes.priority`; once its routers are healthy, give it the smaller
    one. Default none."""
    next_hop: NotRequired[NextHopPolicyArgs]
    """The load balancers."""
    routes: NotRequired[RoutesArgs]
    """The routes."""
    access: NotRequired[AccessArgs]
    """Service account and firewall."""

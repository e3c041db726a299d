"""Enumerations of the public inputs, spelt as Google Cloud spells them.

They stand apart from `args` so that the settings can use them without importing the public types.
"""

from enum import StrEnum


class SessionAffinity(StrEnum):
    """What the load balancers hash to choose a router for a new connection.

    One value holds for all networks, since hashing is symmetric only when both directions hash alike. `NONE` is not
    symmetric. https://docs.cloud.google.com/load-balancing/docs/internal/ilb-next-hop-overview
    """

    NONE = "NONE"
    """5-tuple, but not promised to be symmetric for next hops."""
    CLIENT_IP = "CLIENT_IP"
    """Source and destination address: related flows of one pair meet the same router."""
    CLIENT_IP_PROTO = "CLIENT_IP_PROTO"
    """Addresses and protocol."""
    CLIENT_IP_PORT_PROTO = "CLIENT_IP_PORT_PROTO"
    """Addresses, protocol and ports: spreads best, symmetric for TCP and UDP."""
    CLIENT_IP_NO_DESTINATION = "CLIENT_IP_NO_DESTINATION"
    """Source address only: keeps one source on one router; not symmetric."""


class TrackingMode(StrEnum):
    """What the load balancers' connection tracking takes for one connection."""

    PER_CONNECTION = "PER_CONNECTION"
    """The 5-tuple."""
    PER_SESSION = "PER_SESSION"
    """What the session affinity hashes; means something only when that is coarser than the 5-tuple."""


class Persistence(StrEnum):
    """Whether tracked connections stay on a router that fails its traffic check."""

    DEFAULT_FOR_PROTOCOL = "DEFAULT_FOR_PROTOCOL"
    """TCP and SCTP stay, UDP moves."""
    NEVER_PERSIST = "NEVER_PERSIST"
    """Everything moves at once to a healthy router, unless all are unhealthy."""
    ALWAYS_PERSIST = "ALWAYS_PERSIST"
    """Everything stays; Google advises against it."""


class UpdateType(StrEnum):
    """Who starts replacing VMs when the template changes."""

    PROACTIVE = "PROACTIVE"
    """The group, at once, within surge and unavailable."""
    OPPORTUNISTIC = "OPPORTUNISTIC"
    """Nobody: VMs get the new template when something else re-creates them."""


class ZonalAffinity(StrEnum):
    """Whether the load balancers prefer routers in the zone of the client; of clients in the same region only.

    https://docs.cloud.google.com/load-balancing/docs/internal/zonal-affinity
    """

    DISABLED = "ZONAL_AFFINITY_DISABLED"
    """All zones alike."""
    SPILL_CROSS_ZONE = "ZONAL_AFFINITY_SPILL_CROSS_ZONE"
    """The client's zone, and all zones when too few routers of it are healthy."""
    STAY_WITHIN_ZONE = "ZONAL_AFFINITY_STAY_WITHIN_ZONE"
    """The client's zone alone, even when none of its routers is healthy."""


class MinimalAction(StrEnum):
    """The least that an update does to each VM."""

    REFRESH = "REFRESH"
    """Take over what can be changed in place (metadata, labels); replace only for what cannot."""
    RESTART = "RESTART"
    """Restart the VM."""
    REPLACE = "REPLACE"
    """A new VM for each update: every VM has been built from exactly what is declared."""


class NicType(StrEnum):
    """The virtual network device that a VM sees."""

    GVNIC = "GVNIC"
    """Google's own; needed for Tier_1 bandwidth and by the newer machine series."""
    VIRTIO_NET = "VIRTIO_NET"
    """virtio; not on third generation and later series."""


class AutoscalerMode(StrEnum):
    """What an autoscaler may do."""

    ON = "ON"
    """Scale out and in."""
    ONLY_SCALE_OUT = "ONLY_SCALE_OUT"
    """Never remove a VM."""
    OFF = "OFF"
    """Keep the size as it is: none in a group that is made with it."""


class MetricType(StrEnum):
    """What the number of a metric is."""

    GAUGE = "GAUGE"
    """The value itself."""
    DELTA_PER_SECOND = "DELTA_PER_SECOND"
    """How much it grows in a second."""
    DELTA_PER_MINUTE = "DELTA_PER_MINUTE"
    """How much it grows in a minute."""


class PredictiveMethod(StrEnum):
    """Whether an autoscaler looks ahead."""

    NONE = "NONE"
    """Real-time CPU use only."""
    OPTIMIZE_AVAILABILITY = "OPTIMIZE_AVAILABILITY"
    """Scale out ahead of a load that Google predicts from the history of at least three days."""

"""Rules of health checks and load balancers. See `rules` for the columns."""

import re
from collections.abc import Iterable

from multinic.choices import Persistence, SessionAffinity, TrackingMode, ZonalAffinity
from multinic.reading import shown
from multinic.settings import BOOT_BUDGET_SEC, LOGGING_SCOPE, RouterSettings

_CHECKS = "https://docs.cloud.google.com/load-balancing/docs/health-check-concepts"
_NEXT_HOP = "https://docs.cloud.google.com/load-balancing/docs/internal/ilb-next-hop-overview"
_BACKENDS = "https://docs.cloud.google.com/load-balancing/docs/backend-service"

_ZONAL = "https://docs.cloud.google.com/load-balancing/docs/internal/zonal-affinity"

_SYMMETRIC = (SessionAffinity.CLIENT_IP, SessionAffinity.CLIENT_IP_PROTO, SessionAffinity.CLIENT_IP_PORT_PROTO)
_FINEST = (SessionAffinity.NONE, SessionAffinity.CLIENT_IP_PORT_PROTO)

Findings = Iterable[tuple[str, ...]]


def _timeouts(settings: RouterSettings) -> Findings:
    health = settings.fleet.health
    for name, check in (("traffic", health.traffic), ("heal", health.heal)):
        if check.timeout_sec > check.interval_sec:
            yield (
                f"health.{name}.timeout_sec",
                f"{check.timeout_sec} s is longer than interval_sec, {check.interval_sec} s",
                f"health.{name}.interval_sec",
            )


def _heal_slower(settings: RouterSettings) -> Findings:
    traffic, heal = settings.fleet.health.traffic, settings.fleet.health.heal
    if heal.interval_sec * heal.unhealthy_threshold <= traffic.detection_sec:
        yield (
            "health.heal",
            f"re-creates a router after {heal.interval_sec} s x {heal.unhealthy_threshold}, the traffic check takes up "
            f"to {traffic.detection_sec} s to move traffic away; give the heal check a longer interval or threshold",
            *(
                f"health.{name}.{key}"
                for name in ("traffic", "heal")
                for key in ("interval_sec", "unhealthy_threshold")
            ),
            "health.traffic.timeout_sec",
        )


def _initial_delay(settings: RouterSettings) -> Findings:
    health = settings.fleet.health
    if health.initial_delay_sec < BOOT_BUDGET_SEC + health.heal.interval_sec * health.heal.healthy_threshold:
        least = BOOT_BUDGET_SEC + health.heal.interval_sec * health.heal.healthy_threshold
        yield (
            "health.heal.initial_delay_sec",
            f"{health.initial_delay_sec} s is shorter than boot and {health.heal.healthy_threshold} good probes take; "
            f"give at least {least}, or no VM ever becomes healthy",
            "health.heal.interval_sec",
            "health.heal.healthy_threshold",
        )


def _ports(settings: RouterSettings) -> Findings:
    traffic, heal = settings.fleet.health.traffic.port, settings.fleet.health.heal.port
    if traffic == heal:
        message = f"{heal} is the traffic check's port; the two checks have different answers"
        yield "health.heal.port", message, "health.traffic.port"
    for name, port in (("traffic", traffic), ("heal", heal)):
        if port == 22:
            yield f"health.{name}.port", "22 is SSH; the check would say nothing about forwarding"


def _persistence(settings: RouterSettings) -> Findings:
    policy = settings.next_hop
    if policy.persistence is Persistence.ALWAYS_PERSIST and policy.tracking_mode is not TrackingMode.PER_CONNECTION:
        message = "ALWAYS_PERSIST goes with tracking_mode PER_CONNECTION only"
        yield "next_hop.persistence", message, "next_hop.tracking_mode"


def _tracking(settings: RouterSettings) -> Findings:
    policy = settings.next_hop
    per_session = policy.tracking_mode is TrackingMode.PER_SESSION
    if per_session and policy.session_affinity in _FINEST:
        yield (
            "next_hop.tracking_mode",
            f"PER_SESSION is the same as PER_CONNECTION with session_affinity {policy.session_affinity.value}; "
            "give a coarser one, such as CLIENT_IP",
            "next_hop.session_affinity",
        )
    if policy.idle_timeout_sec is not None and not per_session:
        yield "next_hop.idle_timeout_sec", "can be set with tracking_mode PER_SESSION only", "next_hop.tracking_mode"


def _failover(settings: RouterSettings) -> Findings:
    policy, zones = settings.next_hop, settings.fleet.zones
    if policy.failover_ratio and not policy.failover_zones:
        yield "next_hop.failover_ratio", "has no effect without failover_zones", "next_hop.failover_zones"
    if policy.drop_if_unhealthy and not policy.failover_zones:
        message = "needs failover_zones; Google Cloud has it as part of failover only"
        yield "next_hop.drop_if_unhealthy", message, "next_hop.failover_zones"
    if zones is None:
        if policy.failover_zones:
            yield "next_hop.failover_zones", "needs zones to be given, not looked up"
        return
    for i, zone in enumerate(policy.failover_zones):
        if zone not in zones:
            yield f"next_hop.failover_zones[{i}]", f"{shown(zone)} is not one of zones ({', '.join(zones)})", "zones"
        elif zone in policy.failover_zones[:i]:
            yield f"next_hop.failover_zones[{i}]", f"{zone} is given twice"
    if policy.failover_zones and set(zones) <= set(policy.failover_zones):
        yield "next_hop.failover_zones", "leaves no zone that serves first", "next_hop.failover_zones", "zones"


def _zonal(settings: RouterSettings) -> Findings:
    policy = settings.next_hop
    if policy.spillover_ratio is not None and policy.zonal_affinity is not ZonalAffinity.SPILL_CROSS_ZONE:
        message = f"has no effect without {ZonalAffinity.SPILL_CROSS_ZONE.value}"
        yield "next_hop.spillover_ratio", message, "next_hop.zonal_affinity"
    if policy.stateful and policy.zonal_affinity is not ZonalAffinity.DISABLED:
        yield (
            "next_hop.zonal_affinity",
            "sends the two directions of a connection between two zones to different routers; stateful needs "
            f"{ZonalAffinity.DISABLED.value}",
        )


def _stateful(settings: RouterSettings) -> Findings:
    policy = settings.next_hop
    if not policy.stateful:
        return
    if policy.persistence is Persistence.NEVER_PERSIST:
        yield (
            "next_hop.persistence",
            "NEVER_PERSIST moves live connections to routers that do not know them; give DEFAULT_FOR_PROTOCOL",
        )
    if policy.session_affinity not in _SYMMETRIC:
        yield (
            "next_hop.session_affinity",
            f"{policy.session_affinity.value} may hash the two directions to different routers; stateful needs one of "
            f"{', '.join(one.value for one in _SYMMETRIC)}",
        )


def _identity(settings: RouterSettings) -> Findings:
    email = settings.access.service_account
    if isinstance(email, str) and email and not re.fullmatch(r"[a-z0-9-]+@[a-z0-9.-]+\.gserviceaccount\.com", email):
        yield "access.service_account", f"{email!r} is not the e-mail of a service account"
    if not settings.access.scopes:
        yield "access.scopes", f"is empty; without {LOGGING_SCOPE} the routers cannot write their log"
    for i, scope in enumerate(settings.access.scopes):
        if not re.fullmatch(r"https://www\.googleapis\.com/auth/[a-z._-]+", scope):
            yield f"access.scopes[{i}]", f"{scope!r} is not an OAuth scope such as {LOGGING_SCOPE}"


POLICY_RULES = (
    (
        "identity",
        "https://docs.cloud.google.com/compute/docs/access/service-accounts",
        "A service account and scopes.",
        _identity,
    ),
    ("check-timeout", _CHECKS, "A probe ends before the next begins.", _timeouts),
    (
        "heal-slower",
        "healing a router that still forwards costs connections",
        "Traffic moves before a VM is re-created.",
        _heal_slower,
    ),
    (
        "initial-delay",
        "a VM healed while it boots never becomes healthy",
        "The delay covers the boot.",
        _initial_delay,
    ),
    ("check-ports", _CHECKS, "Two purpose-made ports.", _ports),
    ("persistence", _BACKENDS, "A persistence that the tracking mode allows.", _persistence),
    ("tracking", _BACKENDS, "A tracking mode that means something.", _tracking),
    ("failover", _BACKENDS, "Failover zones are some of the zones.", _failover),
    ("zonal-affinity", _ZONAL, "A spillover that is used, and no state.", _zonal),
    (
        "stateful",
        _NEXT_HOP,
        "Connection state on routers needs flows that stay and hash alike.",
        _stateful,
    ),
)

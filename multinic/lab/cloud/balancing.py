"""Which backends of an internal passthrough load balancer get new connections, and which keep the ones they have.

A pure function of configuration and health. Sources:

- traffic distribution, all unhealthy → all:
  https://cloud.google.com/load-balancing/docs/internal/int-tcp-udp-lb-concepts#traffic_distribution
- persistence on unhealthy backends: discovery document compute.v1,
  ``BackendServiceConnectionTrackingPolicy.connectionPersistenceOnUnhealthyBackends``
- failover: https://cloud.google.com/load-balancing/docs/internal/failover-overview
- draining: https://cloud.google.com/load-balancing/docs/enabling-connection-draining
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..substrate import Backend


@dataclass(frozen=True)
class Candidate:
    """A VM behind the load balancer.

    Attributes:
        machine: Key.
        healthy: By the traffic check.
        draining: On its way out of the group, in its draining time.
        failover: In a failover group.
    """

    machine: str
    healthy: bool
    draining: bool = False
    failover: bool = False


@dataclass(frozen=True)
class Policy:
    """The settings that decide. Names as in the backend service."""

    persistence: str = "DEFAULT_FOR_PROTOCOL"
    tracking: str = "PER_CONNECTION"
    affinity: str = "NONE"
    failover_ratio: float = 0.0
    drop_if_unhealthy: bool = False


def backends(policy: Policy, candidates: Sequence[Candidate]) -> tuple[Backend, ...]:
    """The backends in effect, by machine key."""
    pool, last_resort = _pool(policy, [c for c in candidates if not c.draining])
    found = []
    for candidate in sorted(candidates, key=lambda c: c.machine):
        takes_new = candidate.machine in pool
        streams, others = (takes_new or _keeps(policy, candidate, last_resort, oriented=o) for o in (True, False))
        found.append(
            Backend(candidate.machine, takes_new=takes_new, keeps_existing=streams, keeps_connectionless=others)
        )
    return tuple(found)


def _pool(policy: Policy, candidates: Sequence[Candidate]) -> tuple[set[str], bool]:
    """Machines that get new connections, and whether they are the last resort (nobody is healthy)."""
    primaries = [c for c in candidates if not c.failover]
    spares = [c for c in candidates if c.failover]
    healthy = {c.machine for c in primaries if c.healthy}
    healthy_spares = {c.machine for c in spares if c.healthy}
    if not spares:
        return (healthy, False) if healthy else ({c.machine for c in primaries}, True)
    ratio = len(healthy) / len(primaries) if primaries else 0.0
    if healthy and ratio >= policy.failover_ratio:
        return healthy, False
    if healthy_spares:
        return healthy_spares, False
    if healthy:
        return healthy, False
    if policy.drop_if_unhealthy:
        return set(), False
    return {c.machine for c in primaries}, True


def _keeps(policy: Policy, candidate: Candidate, last_resort: bool, *, oriented: bool) -> bool:
    """Whether a VM keeps its flows, of protocols with connections (TCP, SCTP) or of those without."""
    if candidate.healthy:
        # Draining, or a primary that is not in the active pool: what it has, it keeps.
        return True
    match policy.persistence:
        case "NEVER_PERSIST":
            return last_resort and not candidate.draining
        case "ALWAYS_PERSIST":
            return True
    # DEFAULT_FOR_PROTOCOL: connections stay with PER_CONNECTION tracking or 5-tuple affinity; UDP never does.
    fine = policy.tracking != "PER_SESSION" or policy.affinity in ("NONE", "CLIENT_IP_PORT_PROTO")
    return last_resort or (oriented and fine)

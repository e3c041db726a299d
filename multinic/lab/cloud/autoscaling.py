"""What an autoscaler decides: pure functions of its policy and of what was measured.

https://cloud.google.com/compute/docs/autoscaler
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .store import Object

STABILIZATION_SECONDS = 600.0
"""https://cloud.google.com/compute/docs/autoscaler/understanding-autoscaler-decisions#stabilization_period"""
SENT_BYTES = "compute.googleapis.com/instance/network/sent_bytes_count"
"""The metric of Cloud Monitoring that the lab measures beside the CPU."""


@dataclass(frozen=True)
class Policy:
    """What an autoscaler is told; times in seconds.

    Attributes:
        least: VMs at least.
        greatest: VMs at most.
        target: CPU utilisation to keep, 0 to 1; None where CPU is no signal.
        sent_bytes: Bytes a second that one VM shall send; None where that is no signal.
        cooldown: How long a new VM's load counts for nothing.
        stabilization: In only to the greatest need of so long.
        scaled_in: In by so many VMs at most in a `window`; None is no limit.
        window: See `scaled_in`.
        only_out: Never in.
        schedules: Scaling schedules by name, as the API has them.
    """

    least: int
    greatest: int
    target: float | None = 0.6
    sent_bytes: float | None = None
    cooldown: float = 60.0
    stabilization: float = STABILIZATION_SECONDS
    scaled_in: int | None = None
    window: float = 0.0
    only_out: bool = False
    schedules: Mapping[str, Mapping[str, Any]] | None = None


@dataclass(frozen=True)
class Load:
    """What one VM does. `cpu` from 0 to 1; `sent` in bytes a second."""

    cpu: float
    sent: float = 0.0


Point = tuple[float, int]
"""(lab time, number of VMs)"""


def needed(policy: Policy, loads: Sequence[Load]) -> int:
    """How many VMs bring the average down to the target; with several signals the one that asks for the most."""
    needs = [0]
    if policy.target is not None:
        needs.append(math.ceil(round(sum(load.cpu for load in loads) / policy.target, 6)))
    if policy.sent_bytes is not None:
        needs.append(math.ceil(round(sum(load.sent for load in loads) / policy.sent_bytes, 6)))
    return max(needs)


def recommend(
    policy: Policy, size: int, now: float, needs: Sequence[Point], sizes: Sequence[Point], scheduled: int = 0
) -> int:
    """The size that the group should have.

    Args:
        policy: The autoscaler's.
        size: Target size now.
        now: Lab time.
        needs: What was needed when, the newest last.
        sizes: What the target size was when, the newest last.
        scheduled: What schedules ask for at least.
    """
    current = max(needs[-1][1] if needs else size, scheduled)
    if current > size:
        wanted = current
    else:
        # In only to the greatest need of the stabilisation period.
        wanted = min(size, max((n for at, n in needs if at >= now - policy.stabilization), default=size))
    if policy.scaled_in is not None:
        # https://cloud.google.com/compute/docs/autoscaler/understanding-autoscaler-decisions#scale-in_controls
        peak = max((n for at, n in sizes if at >= now - policy.window), default=size)
        wanted = max(wanted, min(size, peak - policy.scaled_in))
    if policy.only_out:
        wanted = max(wanted, size)
    return min(max(wanted, policy.least, scheduled), policy.greatest)


def policy_of(autoscaler: Object) -> Policy | None:
    """The policy of an autoscaler that is on; else None."""
    raw = autoscaler["autoscalingPolicy"]
    if raw.get("mode") == "OFF":
        return None
    control = raw.get("scaleInControl") or {}
    scaled_in = control.get("maxScaledInReplicas") or {}
    fixed = scaled_in.get("fixed")
    if fixed is None and scaled_in.get("percent") is not None:
        fixed = math.ceil(raw["maxNumReplicas"] * scaled_in["percent"] / 100)
    stabilization = raw.get("stabilizationPeriodSec")
    return Policy(
        least=raw["minNumReplicas"],
        greatest=raw["maxNumReplicas"],
        target=float(raw["cpuUtilization"].get("utilizationTarget") or 0.6) if "cpuUtilization" in raw else None,
        sent_bytes=_sent_bytes(raw),
        cooldown=float(raw["coolDownPeriodSec"]),
        stabilization=STABILIZATION_SECONDS if stabilization is None else float(stabilization),
        scaled_in=fixed,
        window=float(control.get("timeWindowSec") or 0),
        only_out=raw.get("mode") in ("ONLY_UP", "ONLY_SCALE_OUT"),
        schedules=raw.get("scalingSchedules") or {},
    )


def _sent_bytes(raw: Object) -> float | None:
    """Bytes a second for each VM, where a metric says so."""
    seconds = {"DELTA_PER_SECOND": 1, "DELTA_PER_MINUTE": 60}
    wanted = [
        float(metric["utilizationTarget"]) / seconds[metric["utilizationTargetType"]]
        for metric in raw.get("customMetricUtilizations") or []
        if metric.get("metric") == SENT_BYTES and metric.get("utilizationTargetType") in seconds
    ]
    return min(wanted, default=None)


def unknown_metrics(autoscaler: Object) -> list[str]:
    """Metrics of a policy that the lab does not measure, and that so move nothing."""
    found = autoscaler["autoscalingPolicy"].get("customMetricUtilizations") or []
    return [metric.get("metric", "") for metric in found if metric.get("metric") != SENT_BYTES]

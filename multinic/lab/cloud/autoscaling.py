"""Moves the size of groups by their routers' CPU.

https://cloud.google.com/compute/docs/autoscaler

A guest's CPU here says nothing about a VM's, so utilisation is counted from what the guest sends: routers of this kind
were measured to use 22 to 24 % of the CPU at their machine type's greatest egress (`CPU_AT_FULL_RATE`). Schedules,
custom metrics and prediction do not move a group (docs/lab-fidelity.md).
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import catalog
from .links import key_of, name_of
from .store import Object

if TYPE_CHECKING:
    from .cloud import Cloud

CPU_AT_FULL_RATE = 0.23
SAMPLE_SECONDS = 5.0
STABILIZATION_SECONDS = 600.0
"""https://cloud.google.com/compute/docs/autoscaler/understanding-autoscaler-decisions#stabilization_period"""


@dataclass(frozen=True)
class Policy:
    """What an autoscaler is told; times in seconds."""

    least: int
    greatest: int
    target: float = 0.6
    stabilization: float = STABILIZATION_SECONDS
    scaled_in: int | None = None
    window: float = 0.0
    only_out: bool = False


Point = tuple[float, int]
"""(lab time, number of VMs)"""


def needed(policy: Policy, utilisations: Sequence[float]) -> int:
    """How many VMs bring the average down to the target."""
    return math.ceil(round(sum(utilisations) / policy.target, 6))


def recommend(policy: Policy, size: int, now: float, needs: Sequence[Point], sizes: Sequence[Point]) -> int:
    """The size that the group should have.

    Args:
        policy: The autoscaler's.
        size: Target size now.
        now: Lab time.
        needs: What was needed when, the newest last.
        sizes: What the target size was when, the newest last.
    """
    current = needs[-1][1] if needs else size
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
    return min(max(wanted, policy.least), policy.greatest)


def policy_of(autoscaler: Object) -> Policy | None:
    """The policy of an autoscaler that is on and has a CPU target; else None."""
    raw = autoscaler["autoscalingPolicy"]
    if raw.get("mode") == "OFF" or "cpuUtilization" not in raw:
        return None
    control = raw.get("scaleInControl") or {}
    scaled_in = control.get("maxScaledInReplicas") or {}
    fixed = scaled_in.get("fixed")
    if fixed is None and scaled_in.get("percent") is not None:
        fixed = math.ceil(raw["maxNumReplicas"] * scaled_in["percent"] / 100)
    return Policy(
        least=raw["minNumReplicas"],
        greatest=raw["maxNumReplicas"],
        target=float(raw["cpuUtilization"].get("utilizationTarget") or 0.6),
        stabilization=float(raw.get("stabilizationPeriodSec") or STABILIZATION_SECONDS),
        scaled_in=fixed,
        window=float(control.get("timeWindowSec") or 0),
        only_out=raw.get("mode") in ("ONLY_UP", "ONLY_SCALE_OUT"),
    )


@dataclass
class _History:
    needs: deque[Point] = field(default_factory=lambda: deque(maxlen=2000))
    sizes: deque[Point] = field(default_factory=lambda: deque(maxlen=2000))
    bytes_of: dict[str, tuple[float, int]] = field(default_factory=dict)


class Autoscaling:
    """Samples all autoscaled groups every few lab seconds and sets their sizes."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._histories: dict[str, _History] = {}

    async def run(self) -> None:
        """Goes on until cancelled."""
        while True:
            await self._cloud.clock.sleep(SAMPLE_SECONDS)
            for key, value in list(self._cloud.store.everywhere("autoscalers")):
                policy = policy_of(value)
                if policy is not None:
                    self._step(
                        key, key_of(value["target"]), policy, float(value["autoscalingPolicy"]["coolDownPeriodSec"])
                    )
            for key in set(self._histories) - {key for key, _ in self._cloud.store.everywhere("autoscalers")}:
                del self._histories[key]
            # Lets others act when the clock is fast.
            await asyncio.sleep(0)

    def _step(self, key: str, group: str, policy: Policy, cooldown: float) -> None:
        value = self._cloud.store.get(group)
        if value is None or value.get("_deleting"):
            return
        now, size = self._cloud.clock.now(), value["targetSize"]
        history = self._histories.setdefault(key, _History())
        if not history.sizes or history.sizes[-1][1] != size:
            # Somebody else chose it: that counts as a need of that moment.
            history.needs.append((now, size))
        utilisations = self._utilisations(history, group, now, cooldown)
        if utilisations:
            history.needs.append((now, needed(policy, utilisations)))
        history.sizes.append((now, size))
        wanted = recommend(policy, size, now, history.needs, history.sizes)
        if wanted != size:
            history.sizes.append((now, wanted))
            average = sum(utilisations) / len(utilisations) if utilisations else 0.0
            self._cloud.events.add("group", group, "autoscaled", size=wanted, cpu=round(average, 3))
            self._cloud.instance_group_managers.set_size(group, wanted)

    def _utilisations(self, history: _History, group: str, now: float, cooldown: float) -> list[float]:
        """CPU utilisation of the VMs that have run for longer than the initialisation period."""
        controller = self._cloud.groups.get(group)
        found = []
        for instance, since in controller.members.running_since() if controller else ():
            value = self._cloud.store.require(instance)
            sent = self._cloud.substrate.egress_bytes(instance)
            at, before = history.bytes_of.get(instance, (now, sent))
            history.bytes_of[instance] = (now, sent)
            if now - since < cooldown or now <= at:
                continue
            # Guests and packets keep real time, whatever the controllers' speed.
            gbits = max(0, sent - before) * 8 / 1e9 / ((now - at) / self._cloud.clock.speed)
            machine = catalog.MACHINE_TYPES[name_of(value["machineType"])]
            found.append(min(1.0, gbits / machine.egress * CPU_AT_FULL_RATE))
        return found

"""Autoscalers at work: measures the VMs of each group and sets the group's size.

A guest's kernel is the lab's own, so what it spends on packets is not the guest's. A VM's CPU utilisation is therefore
the CPU time of the guest's programs (its control group) over the machine type's vCPUs, plus a documented cost of each
byte that it sends: routers of this kind were measured to use 22 to 24 % of their CPU at their machine type's greatest
egress (`CPU_AT_FULL_RATE`), so a byte costs that share of the cap in force.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import catalog, schedules
from .autoscaling import Load, Point, Policy, needed, policy_of, recommend
from .links import key_of, name_of

if TYPE_CHECKING:
    from .cloud import Cloud

CPU_AT_FULL_RATE = 0.23
"""Measured by reference 1 at 10 Gbit/s; docs/lab-fidelity.md."""
SAMPLE_SECONDS = 5.0


@dataclass(frozen=True)
class _Reading:
    at: float
    identity: str
    sent: int
    cpu: float


@dataclass
class _History:
    needs: deque[Point] = field(default_factory=lambda: deque(maxlen=2000))
    sizes: deque[Point] = field(default_factory=lambda: deque(maxlen=2000))
    readings: dict[str, _Reading] = field(default_factory=dict)


class AutoscalerRuns:
    """Samples all autoscaled groups every few lab seconds and sets their sizes."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._histories: dict[str, _History] = {}

    async def run(self) -> None:
        """Goes on until cancelled."""
        while True:
            await self._cloud.clock.sleep(SAMPLE_SECONDS)
            there = dict(self._cloud.store.everywhere("autoscalers"))
            for key, value in there.items():
                policy = policy_of(value)
                if policy is not None:
                    self._step(key, key_of(value["target"]), policy)
            for key in self._histories.keys() - there.keys():
                del self._histories[key]
            # Lets others act when the clock is fast.
            await asyncio.sleep(0)

    def _step(self, key: str, group: str, policy: Policy) -> None:
        value = self._cloud.store.get(group)
        if value is None or value.get("_deleting"):
            return
        now, size = self._cloud.clock.now(), value["targetSize"]
        history = self._histories.setdefault(key, _History())
        if not history.sizes or history.sizes[-1][1] != size:
            # Somebody else chose it: that counts as a need of that moment.
            history.needs.append((now, size))
        loads = self._loads(history, group, now, policy.cooldown)
        scheduled = schedules.required(policy.schedules or {}, self._cloud.clock.wall())
        only_schedules = policy.target is None and policy.sent_bytes is None
        if loads or only_schedules:
            history.needs.append((now, max(needed(policy, loads), scheduled)))
        history.sizes.append((now, size))
        wanted = recommend(policy, size, now, history.needs, history.sizes, scheduled)
        if wanted != size:
            history.sizes.append((now, wanted))
            average = sum(load.cpu for load in loads) / len(loads) if loads else 0.0
            self._cloud.events.add("group", group, "autoscaled", size=wanted, cpu=round(average, 3))
            self._cloud.instance_group_managers.set_size(group, wanted)

    def _loads(self, history: _History, group: str, now: float, cooldown: float) -> list[Load]:
        """What the VMs do that have run for longer than the initialisation period."""
        controller = self._cloud.groups.get(group)
        found, readings = [], {}
        for instance, since in controller.members.running_since() if controller else ():
            value = self._cloud.store.require(instance)
            below = self._cloud.substrate
            reading = _Reading(now, value["id"], below.egress_bytes(instance), below.cpu_seconds(instance))
            before = history.readings.get(instance, reading)
            readings[instance] = reading
            if now - since < cooldown or now <= before.at or before.identity != reading.identity:
                continue
            # Guests and packets keep real time, whatever the controllers' speed.
            seconds = (now - before.at) / self._cloud.clock.speed
            sent = max(0, reading.sent - before.sent) / seconds
            programs = max(0.0, reading.cpu - before.cpu) / seconds
            cpus = catalog.MACHINE_TYPES[name_of(value["machineType"])].cpus
            packets = sent * 8 / self._cloud.machines.egress(value) * CPU_AT_FULL_RATE
            found.append(Load(min(1.0, programs / cpus + packets), sent))
        history.readings = readings
        return found

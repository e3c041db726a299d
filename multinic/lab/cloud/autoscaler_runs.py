"""Autoscalers at work: measures the VMs of each group (`readings`) and sets the group's size."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import schedules
from .autoscaling import Load, Point, Policy, needed, policy_of, recommend
from .errors import ApiError
from .links import key_of
from .readings import Reading, load, read

if TYPE_CHECKING:
    from .cloud import Cloud

SAMPLE_SECONDS = 5.0


@dataclass
class _History:
    needs: deque[Point] = field(default_factory=lambda: deque(maxlen=2000))
    sizes: deque[Point] = field(default_factory=lambda: deque(maxlen=2000))
    readings: dict[str, tuple[float, Reading]] = field(default_factory=dict)


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
                    try:
                        self._step(key, key_of(value["target"]), policy)
                    except ApiError as error:
                        # A full disk, for one: the next sample decides again.
                        self._cloud.events.add("group", key_of(value["target"]), "error", reason=error.message)
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
        found = []
        readings: dict[str, tuple[float, Reading]] = {}
        for instance, since in controller.members.running_since() if controller else ():
            value = self._cloud.store.require(instance)
            reading = read(self._cloud, instance, value)
            at, before = history.readings.get(instance, (now, reading))
            readings[instance] = (now, reading)
            if now - since < cooldown or now <= at or before.identity != reading.identity:
                continue
            found.append(load(self._cloud, value, before, reading, (now - at) / self._cloud.clock.speed))
        history.readings = readings
        return found

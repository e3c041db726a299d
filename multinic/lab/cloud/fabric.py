"""Keeps the packets as planned: when objects or health change, plans are made anew and those that differ applied."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from ..substrate import NetworkPlan, SubstrateError
from .plans import Situation, forwarded_addresses, network_plan

if TYPE_CHECKING:
    from .cloud import Cloud

RETRY_SECONDS = 2.0
GATHER_SECONDS = 0.005
"""How long changes are gathered before they are applied together; or twice as long as the last planning took."""
LONGEST_GATHER_SECONDS = 0.1


class Fabric:
    """Applies plans one after another; many changes in a row become one."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._dirty = asyncio.Event()
        self._wanted = 0
        self._done = 0
        self._settled = asyncio.Condition()
        self._applied: dict[str, NetworkPlan] = {}
        self._forwarded: dict[str, dict[str, list[str]]] = {}
        self._gone: set[str] = set()
        self._draining: set[str] = set()
        self._left: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins; the first pass applies all networks."""
        self.changed()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def changed(self) -> None:
        """Something that the packets depend on may have changed."""
        self._wanted += 1
        self._dirty.set()

    def network_removed(self, key: str) -> None:
        """A network's object is gone."""
        self._gone.add(key)
        self.changed()

    async def settled(self) -> None:
        """Returns once everything that was changed before this call is applied."""
        wanted = self._wanted
        async with self._settled:
            await self._settled.wait_for(lambda: self._done >= wanted)

    async def drain(self, instance: str, seconds: float) -> None:
        """Gives an instance no new connections for that many lab seconds, then takes it out of its load balancers."""
        if seconds > 0:
            self._draining.add(instance)
            self._cloud.events.add("machine", instance, "draining", seconds=seconds)
            self.changed()
            try:
                await self._cloud.clock.sleep(seconds)
            finally:
                self._draining.discard(instance)
        self._left.add(instance)
        self.changed()
        await self.settled()

    def forget(self, instance: str) -> None:
        """An instance is gone or new: it neither drains nor has left."""
        self._draining.discard(instance)
        self._left.discard(instance)
        self.changed()

    def situation(self) -> Situation:
        """What plans need beside the objects."""
        return Situation(
            instances_of=self._cloud.instance_groups.instances,
            healthy=self._healthy,
            draining=frozenset(self._draining),
            left=frozenset(self._left),
        )

    def _healthy(self, rule: str, instance: str) -> bool:
        state = self._cloud.health.traffic_state(rule, instance)
        return state is not None and state.healthy

    async def _run(self) -> None:
        planning = 0.0
        while True:
            await self._dirty.wait()
            await asyncio.sleep(min(max(GATHER_SECONDS, 2 * planning), LONGEST_GATHER_SECONDS))
            self._dirty.clear()
            wanted, began = self._wanted, time.monotonic()
            self._cloud.health.refresh()
            plans = self._plans()
            planning = time.monotonic() - began
            if await self._apply(plans):
                async with self._settled:
                    self._done = wanted
                    self._settled.notify_all()
            else:
                await asyncio.sleep(RETRY_SECONDS)
                self._dirty.set()

    def _plans(self) -> list[NetworkPlan]:
        """The plans that differ from what is applied."""
        store, situation = self._cloud.store, self.situation()
        self._tell_guests(situation)
        plans = [network_plan(store, key, situation) for key, _ in store.everywhere("networks")]
        return [plan for plan in plans if self._applied.get(plan.key) != plan]

    async def _apply(self, plans: list[NetworkPlan]) -> bool:
        """Applies plans, those of known networks side by side; True when all could be."""
        complete = True
        for plan in plans:
            if plan.key not in self._applied:
                complete &= await self._apply_one(plan)
        known = [plan for plan in plans if plan.key in self._applied and self._applied[plan.key] != plan]
        complete &= all(await asyncio.gather(*map(self._apply_one, known)))
        for key in list(self._gone):
            self._gone.discard(key)
            if self._cloud.store.get(key) is None:
                await self._remove(key)
        return complete

    async def _apply_one(self, plan: NetworkPlan) -> bool:
        try:
            await self._cloud.substrate.apply(plan)
        except SubstrateError as error:
            self._cloud.events.add("network", plan.key, "failed to apply", reason=str(error))
            return False
        self._applied[plan.key] = plan
        self._cloud.events.add("network", plan.key, "applied")
        return True

    async def _remove(self, key: str) -> None:
        if self._applied.pop(key, None) is None:
            return
        try:
            await self._cloud.substrate.remove_network(key)
        except SubstrateError as error:
            self._cloud.events.add("network", key, "failed to remove", reason=str(error))

    def forwarded(self, instance: str) -> dict[str, list[str]]:
        """Network key → addresses of the forwarding rules that lead to an instance."""
        return forwarded_addresses(self._cloud.store, self.situation()).get(instance, {})

    def _tell_guests(self, situation: Situation) -> None:
        # Forwarded addresses are part of the metadata: guests that wait for a change must hear of it.
        now = forwarded_addresses(self._cloud.store, situation)
        for instance in now.keys() | self._forwarded.keys():
            if now.get(instance) != self._forwarded.get(instance):
                self._cloud.substrate.metadata_changed(instance)
        self._forwarded = now

    async def close(self) -> None:
        """Stops; what is applied stays."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

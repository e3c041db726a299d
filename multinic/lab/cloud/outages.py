"""Outages of whole zones, for the lab's own door: Google has no call for them.

The careful reading: nobody tells the control plane that the zone's machines are silent, so that they stay RUNNING and
only checks find out; and none can be started there meanwhile (docs/lab-fidelity.md).
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from ..substrate import SubstrateError
from . import catalog
from .errors import ApiError, not_found

if TYPE_CHECKING:
    from .cloud import Cloud


class Outages:
    """Which zones are down."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._down: set[str] = set()
        self._silent: set[str] = set()

    def hides(self, key: str, zone: str) -> bool:
        """Whether nobody hears that a machine stopped, since its zone is down; it is then known as silent."""
        if zone in self._down:
            self._silent.add(key)
        return zone in self._down

    def require_up(self, zone: str) -> None:
        """Refuses to run a machine in a zone that is down, with the reason that a group notes then."""
        if zone in self._down:
            key = f"projects/{self._cloud.project}/zones/{zone}"
            raise ApiError(
                503,
                "ZONE_RESOURCE_POOL_EXHAUSTED",
                f"The zone '{key}' does not have enough resources available to fulfill the request.",
            )

    async def fail(self, zone: str) -> None:
        """Cuts the power of every machine of a zone; none starts there until `restore`."""
        self._require(zone)
        self._down.add(zone)
        self._tell(zone, "down")
        await asyncio.gather(*(self._cut(key) for key in self._machines(zone, "RUNNING")))

    async def restore(self, zone: str) -> None:
        """Gives the power back: groups make their machines anew, others start where `automaticRestart` says so."""
        self._require(zone)
        self._down.discard(zone)
        self._tell(zone, "up")
        silent = [key for key in self._machines(zone, "RUNNING") if key in self._silent]
        self._silent.difference_update(silent)
        for key in silent:
            self._cloud.instances.set_status(key, "TERMINATED")
            scheduling = self._cloud.store.require(key).get("scheduling") or {}
            if self._cloud.groups.owner(key) is not None:
                self._cloud.groups.instance_changed(key)
            elif scheduling.get("automaticRestart", True):
                self._cloud.background(self._start(key))
        self._cloud.fabric.changed()

    async def _start(self, key: str) -> None:
        # Where it fails the instance stays TERMINATED, and the event log says why.
        with contextlib.suppress(ApiError):
            await self._cloud.machines.start(key)

    async def _cut(self, key: str) -> None:
        try:
            await self._cloud.substrate.cut_power(key)
        except SubstrateError as error:
            # It went by itself meanwhile.
            self._cloud.events.add("machine", key, "failed to cut power", reason=str(error))

    def _machines(self, zone: str, status: str) -> list[str]:
        prefix = f"projects/{self._cloud.project}/zones/{zone}/"
        found = self._cloud.store.everywhere("instances")
        return [key for key, value in found if key.startswith(prefix) and value["status"] == status]

    def _require(self, zone: str) -> None:
        if zone not in catalog.ZONES:
            raise not_found(f"projects/{self._cloud.project}/zones/{zone}")

    def _tell(self, zone: str, what: str) -> None:
        self._cloud.events.add("zone", f"projects/{self._cloud.project}/zones/{zone}", what)

"""What happens to a VM when the host under it is maintained.

https://cloud.google.com/compute/docs/instances/host-maintenance-overview
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from ..substrate import SubstrateError
from .errors import ApiError
from .links import name_of, split

if TYPE_CHECKING:
    from .cloud import Cloud

NOTICE_SECONDS = 60.0
"""Between the notice in the metadata and a live migration:
https://cloud.google.com/compute/docs/metadata/getting-live-migration-notice"""
PAUSE_SECONDS = 0.5
"""Real seconds for which a VM stands still at its migration. Google: typically much less than a second,
https://cloud.google.com/compute/docs/instances/live-migration-process"""


class Maintenance:
    """Migrates or stops instances by their ``scheduling.onHostMaintenance``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._migrating: set[str] = set()

    def notice(self, key: str) -> str:
        """``instance/maintenance-event`` of an instance's metadata."""
        return "MIGRATE_ON_HOST_MAINTENANCE" if key in self._migrating else "NONE"

    def begin(self, key: str) -> Coroutine[Any, Any, None]:
        """The event of an instance that runs, as work that ends with it.

        Raises:
            ApiError: It does not run, or is being migrated.
        """
        value = self._cloud.store.require(key)
        if value["status"] != "RUNNING" or key in self._migrating:
            state = "being migrated" if key in self._migrating else f"{value['status']}, not RUNNING"
            raise ApiError(400, "resourceNotReady", f"The instance '{name_of(key)}' is {state}.")
        scheduling = value["scheduling"]
        if scheduling["onHostMaintenance"] == "MIGRATE":
            self._migrating.add(key)
            return self._migrate(key)
        return self._terminate(key, restart=bool(scheduling["automaticRestart"]))

    async def _migrate(self, key: str) -> None:
        """Notice, a short pause, and the same VM goes on."""
        self._tell(key, "migrateOnHostMaintenance")
        try:
            self._cloud.substrate.metadata_changed(key)
            await self._cloud.clock.sleep(NOTICE_SECONDS)
            await self._cloud.uninterrupted(self._pause(key))
        except SubstrateError as error:
            raise ApiError(503, "backendError", f"The instance '{name_of(key)}' is not migrated: {error}") from error
        finally:
            self._migrating.discard(key)
            self._cloud.substrate.metadata_changed(key)

    async def _pause(self, key: str) -> None:
        await self._cloud.substrate.freeze(key, True)
        try:
            await asyncio.sleep(PAUSE_SECONDS)
        finally:
            await self._cloud.substrate.freeze(key, False)

    async def _terminate(self, key: str, *, restart: bool) -> None:
        """An orderly stop without notice; the VM starts again unless it is told to stay down."""
        self._tell(key, "terminateOnHostMaintenance")
        if not restart:
            await self._cloud.machines.stop(key)
            return
        await self._cloud.machines.power_off(key, lambda: None)
        self._tell(key, "automaticRestart")
        try:
            await self._cloud.machines.start(key)
        except ApiError:
            # Now it has failed.
            self._cloud.groups.instance_changed(key)
            raise

    def _tell(self, key: str, what: str) -> None:
        """Notes it in the log of events and among the operations, as Google does with what it does by itself."""
        self._cloud.events.add("machine", key, what)
        self._cloud.operations.done(f"compute.instances.{what}", split(key).scope, key)

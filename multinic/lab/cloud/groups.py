"""The controllers of all managed instance groups."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .group_controller import GroupController

if TYPE_CHECKING:
    from .cloud import Cloud


class Groups:
    """The controllers of all groups."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._controllers: dict[str, GroupController] = {}

    def open(self, key: str) -> GroupController:
        """The controller of a group, begun when it was not."""
        controller = self._controllers.get(key)
        if controller is None:
            controller = self._controllers[key] = GroupController(self._cloud, key)
            controller.start()
        return controller

    def get(self, key: str) -> GroupController | None:
        """The controller of a group, or None."""
        return self._controllers.get(key)

    def wake(self, key: str) -> None:
        """Has a group decide again."""
        self.open(key).wake()

    def instance_changed(self, instance: str) -> None:
        """Has the group of an instance decide again."""
        controller = self.owner(instance)
        if controller is not None:
            controller.wake()

    def owner(self, instance: str) -> GroupController | None:
        """The controller of the group that an instance is a member of, or None."""
        return next((one for one in self._controllers.values() if one.members.own(instance)), None)

    async def dismantle(self, key: str) -> None:
        """Deletes a group's VMs and then the group."""
        controller = self.open(key)
        controller.wake()
        await controller.dismantle()
        self._controllers.pop(key, None)
        await controller.close()
        self._cloud.instance_group_managers.destroy(key)
        self._cloud.fabric.changed()

    async def close(self) -> None:
        """Stops all controllers."""
        await asyncio.gather(*(controller.close() for controller in self._controllers.values()))

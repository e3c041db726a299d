"""The VMs of a managed instance group: which there are, and what the group is doing to each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .errors import ApiError
from .links import name_of
from .managed import Managed
from .store import Object

if TYPE_CHECKING:
    from .cloud import Cloud


RETRY_SECONDS = 1.0
"""Between two attempts to write to a disk that is full."""


class GroupMembers:
    """The members by name; kept in the group's record, so that a lab that was killed goes on where it was."""

    def __init__(self, cloud: Cloud, key: str) -> None:
        self._cloud, self._key = cloud, key
        self._members: dict[str, Managed] = {}
        for name, zone, template, action in cloud.store.require(key).get("_members", []):
            self._members[name] = Managed(name, zone, template, action, born=cloud.clock.now())

    def __iter__(self) -> Iterator[Managed]:
        """In the order in which they joined; members may come and go meanwhile."""
        return iter(list(self._members.values()))

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, name: str) -> Managed:
        return self._members[name]

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def add(self, member: Managed) -> None:
        """Takes a member in; it is kept with its first action."""
        self._members[member.name] = member

    def drop(self, name: str) -> None:
        """Forgets a member."""
        self._members.pop(name, None)
        self.save()

    def set_action(self, member: Managed, action: str) -> None:
        """Notes what the group does to a member."""
        member.action = action
        self.save()

    def save(self) -> None:
        """Keeps the members in the group's record."""
        value = self._cloud.store.get(self._key)
        if value is not None:
            members = [[m.name, m.zone, m.template, m.action] for m in self._members.values()]
            if members != value.get("_members"):
                try:
                    self._cloud.store.put(self._key, {**value, "_members": members})
                except ApiError as error:
                    # A full disk. What the group does goes on; it is kept as soon as there is room.
                    self._cloud.events.add("group", self._key, "not noted", reason=error.message)
                    self._cloud.background(self._save_later())

    async def _save_later(self) -> None:
        await asyncio.sleep(RETRY_SECONDS)
        self.save()

    def instance_key(self, member: Managed) -> str:
        """Key of a member's instance."""
        return f"projects/{self._cloud.project}/zones/{member.zone}/instances/{member.name}"

    def instance(self, member: Managed) -> Object | None:
        """A member's instance, if it is there."""
        return self._cloud.store.get(self.instance_key(member))

    def running(self, member: Managed) -> bool:
        """Whether a member's instance is RUNNING."""
        instance = self.instance(member)
        return instance is not None and instance["status"] == "RUNNING"

    def names(self) -> list[str]:
        """Names of the members."""
        return sorted(self._members)

    def instances(self) -> list[str]:
        """Keys of the members whose instances are there."""
        return sorted(self.instance_key(member) for member in self if self.instance(member) is not None)

    def running_since(self) -> list[tuple[str, float]]:
        """(key, lab time since which it runs) of the members that run and are not on their way out."""
        settled = [m for m in self if m.action in ("NONE", "VERIFYING") and self.instance(m) is not None]
        return [(self.instance_key(m), m.since) for m in settled if m.since is not None]

    def own(self, instance: str) -> bool:
        """Whether an instance is a member."""
        member = self._members.get(name_of(instance))
        return member is not None and self.instance_key(member) == instance

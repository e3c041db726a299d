"""The controller of a managed instance group: decides, again and again, until its VMs are what was asked for.

The decisions are `group_plan.decide`, of members as `group_states` judges them; `group_work` carries them out. Sources
are beside the rules there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .errors import ApiError, invalid
from .group_members import GroupMembers
from .group_plan import Target, decide
from .group_states import GroupStates
from .group_updates import action, template_of
from .group_work import RETRY_SECONDS, GroupWork
from .store import Object

if TYPE_CHECKING:
    from .cloud import Cloud


class GroupController:
    """The controller of one group.

    Attributes:
        key: The group's.
        members: Its VMs.
    """

    def __init__(self, cloud: Cloud, key: str) -> None:
        self._cloud, self.key = cloud, key
        self.members = GroupMembers(cloud, key)
        self._states = GroupStates(cloud, key, self.members)
        self._work = GroupWork(cloud, key, self.members, self.wake)
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def errors(self) -> list[dict[str, Any]]:
        """What went wrong, newest first, as ``listErrors`` answers."""
        return self._work.errors

    def start(self) -> None:
        """Begins to act; also on what a lab that was killed had left undone."""
        for member in self.members:
            self._work.resume(member)
        self._task = self._cloud.background(self._run())

    def wake(self) -> None:
        """Something may have changed: decide again."""
        self._wake.set()

    async def close(self) -> None:
        """Stops acting; the VMs stay."""
        tasks = [task for task in (self._task, *(m.job for m in self.members)) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def dismantle(self) -> None:
        """Deletes all VMs at once, for a group that is being deleted."""
        for member in self.members:
            if member.action != "DELETING":
                self._work.remove_now(member)
        while self.members:
            jobs = [member.job for member in self.members if member.job]
            await asyncio.wait(jobs, timeout=1.0)

    async def _run(self) -> None:
        while (value := self._cloud.store.get(self.key)) is not None:
            self._wake.clear()
            if value.get("_deleting"):
                return
            try:
                wait = self.step(value)
            except ApiError as error:
                # A full disk, for one: what was not begun is decided again.
                self._cloud.events.add("group", self.key, "error", reason=error.message)
                wait = RETRY_SECONDS
            await self._cloud.clock.wait(self._wake, wait)

    def step(self, value: Object) -> float | None:
        """Decides and begins; gives the lab seconds until something is due by itself, or None."""
        due = self._states.refresh(value)
        surge, unavailable = self._cloud.instance_group_managers.amounts(self.key, value)
        policy, life = value["updatePolicy"], value["instanceLifecyclePolicy"]
        target = Target(
            size=value["targetSize"],
            surge=surge,
            unavailable=unavailable,
            keep_names=policy["replacementMethod"] == "RECREATE",
            repair=life.get("defaultActionOnFailure") != "DO_NOTHING",
        )
        decision = decide(target, [self._states.as_member(member, value) for member in self.members])
        for name in decision.repair:
            self._work.repair(self.members[name], value)
        for name in decision.recreate:
            self._work.replace(self.members[name], value)
        for name in decision.refresh:
            self._work.refresh(self.members[name], value)
        for name in decision.restart:
            self._work.restart(self.members[name], value)
        for name in decision.delete:
            self._work.delete(self.members[name])
        for _ in range(decision.create):
            self._work.create(value)
        return min(due) if due else None

    def recreate(self, names: Iterable[str]) -> None:
        """Makes the named VMs anew by the group's template, draining first."""
        value = self._cloud.store.require(self.key)
        for name in names:
            self._work.replace(self.members[name], value)

    def remove(self, names: Iterable[str]) -> None:
        """Deletes the named VMs and lowers the target size by their number."""
        chosen = [self.members[name] for name in names if self.members[name].action != "DELETING"]
        for member in chosen:
            self._work.delete(member)
        size = self._cloud.store.require(self.key)["targetSize"]
        self._cloud.instance_group_managers.set_size(self.key, max(0, size - len(chosen)))

    def abandon(self, names: Iterable[str]) -> None:
        """Takes the named VMs out of the group."""
        chosen = list(names)
        for name in chosen:
            self.members.drop(name)
        self._cloud.fabric.changed()
        size = self._cloud.store.require(self.key)["targetSize"]
        self._cloud.instance_group_managers.set_size(self.key, max(0, size - len(chosen)))

    def update(self, names: Iterable[str], least: str | None, most: str | None) -> None:
        """Brings the named VMs up to date at once, whatever the update policy says.

        https://cloud.google.com/compute/docs/instance-groups/updating-selected-instances-in-a-mig

        Args:
            names: Which ones.
            least: Done to each also where less would do: of `group_updates.ACTIONS`, nothing means NONE.
            most: What may be done; nothing means REPLACE.

        Raises:
            ApiError: One would need more than `most`; nothing has begun.
        """
        value = self._cloud.store.require(self.key)
        wanted = template_of(value)
        chosen = {n: action(self._cloud.store, self.members[n].template, wanted, least, most) for n in names}
        if forbidden := sorted(name for name, what in chosen.items() if what is None):
            raise invalid(
                "mostDisruptiveAllowedAction",
                most,
                f"The update of {', '.join(forbidden)} is more disruptive than that.",
            )
        for name, what in chosen.items():
            member = self.members[name]
            if what == "REPLACE":
                self._work.replace(member, value)
            elif what == "RESTART":
                self._work.restart(member, value)
            elif what == "REFRESH" or member.template != wanted:
                self._work.refresh(member, value)

"""The controller of a managed instance group: decides, again and again, until its VMs are what was asked for.

The decisions are `group_plan.decide`, of members as `group_states` judges them; `group_work` carries them out. Sources
are beside the rules there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .errors import ApiError
from .group_members import GroupMembers
from .group_plan import Target, decide
from .group_states import GroupStates, template_of
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
        self._refresh_in_place(value)
        surge, unavailable = self._cloud.instance_group_managers.amounts(self.key, value)
        policy, life = value["updatePolicy"], value["instanceLifecyclePolicy"]
        target = Target(
            size=value["targetSize"],
            proactive=policy["type"] == "PROACTIVE",
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
        for name in decision.delete:
            self._work.delete(self.members[name])
        for _ in range(decision.create):
            self._work.create(value)
        return min(due) if due else None

    def _refresh_in_place(self, value: Object) -> None:
        """Takes over metadata and labels without touching the VM, where the update policy lets it.

        minimalAction REFRESH (or NONE) and templates that differ in nothing else:
        https://cloud.google.com/compute/docs/instance-groups/updating-managed-instance-groups#minimal_action
        """
        policy, template = value["updatePolicy"], template_of(value)
        if policy["type"] != "PROACTIVE" or policy.get("minimalAction") not in ("NONE", "REFRESH"):
            return
        for member in self.members:
            instance = self.members.instance_key(member)
            if member.template == template or member.action != "NONE" or self._cloud.store.get(instance) is None:
                continue
            if not self._differ_in_metadata_only(member.template, template):
                continue
            member.template = template
            body = self._work.instance_body(member, value)
            self._cloud.instances.write(instance, metadata=body["metadata"], labels=body.get("labels") or {})
            self._cloud.substrate.metadata_changed(instance)
            self._cloud.events.add("group", self.key, "refreshed", instance=instance)
            self.members.save()

    def _differ_in_metadata_only(self, one: str, other: str) -> bool:
        templates = [self._cloud.store.get(key) for key in (one, other)]
        if None in templates:
            return False
        rest = [{n: c for n, c in t["properties"].items() if n not in ("metadata", "labels")} for t in templates if t]
        return rest[0] == rest[1]

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

    def update(self, names: Iterable[str]) -> None:
        """Replaces those of the named VMs that are outdated."""
        value = self._cloud.store.require(self.key)
        for name in names:
            if self.members[name].template != template_of(value):
                self._work.replace(self.members[name], value)

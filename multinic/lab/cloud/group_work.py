"""What a managed instance group does to its VMs: makes, repairs, replaces, deletes them, each in a job of its own."""

from __future__ import annotations

import asyncio
import copy
import secrets
import string
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from .clock import timestamp
from .errors import ApiError
from .group_members import GroupMembers
from .group_states import checked
from .group_updates import template_of
from .links import link
from .managed import Managed
from .store import Object

if TYPE_CHECKING:
    from .cloud import Cloud

_SUFFIX = string.ascii_lowercase + string.digits
RETRY_SECONDS = 10.0
"""How long the lab waits before it tries again to make a VM (Google's own wait is not published)."""


class GroupWork:
    """The jobs of one group.

    Attributes:
        errors: What went wrong, newest first, as ``listErrors`` answers.
    """

    def __init__(self, cloud: Cloud, key: str, members: GroupMembers, wake: Callable[[], None]) -> None:
        """Begins nothing.

        Args:
            cloud: Where the VMs are.
            key: The group's.
            members: The group's.
            wake: Called when a job has ended.
        """
        self._cloud, self._key, self._members, self._wake = cloud, key, members, wake
        self.errors: list[dict[str, Any]] = []

    def resume(self, member: Managed) -> None:
        """Begins again what a lab that was killed had left undone."""
        match member.action:
            case "CREATING" | "RECREATING":
                self._begin(member, member.action, partial(self._make, member))
            case "RESTARTING":
                self._begin(member, member.action, partial(self._restart, member))
            case "DELETING":
                self._begin(member, "DELETING", partial(self._remove, member, drain=False))
            case _:
                # Its machine is started by the cloud; it is verified anew.
                member.action = "VERIFYING"

    def remove_now(self, member: Managed) -> None:
        """Deletes a VM without draining, for a group that is being deleted."""
        self._begin(member, "DELETING", partial(self._remove, member, drain=False))

    def create(self, value: Object) -> None:
        """Makes one more VM."""
        zones = self._cloud.instance_group_managers.zones(self._key, value)
        zone = min(zones, key=lambda name: (sum(1 for m in self._members if m.zone == name), name))
        member = Managed(self._new_name(value), zone, template_of(value), born=self._cloud.clock.now())
        self._members.add(member)
        self._cloud.events.add("group", self._key, "creating", instance=self._members.instance_key(member))
        self._begin(member, "CREATING", partial(self._make, member))

    def _new_name(self, value: Object) -> str:
        while True:
            name = f"{value['baseInstanceName']}-{''.join(secrets.choice(_SUFFIX) for _ in range(4))}"
            if name not in self._members:
                return name

    def repair(self, member: Managed, value: Object) -> None:
        """Makes a failed VM anew at once."""
        # The same name and template; with forceUpdateOnRepair the newest template:
        # https://cloud.google.com/compute/docs/instance-groups/about-repair
        force = value["instanceLifecyclePolicy"].get("forceUpdateOnRepair") == "YES"
        if force or self._cloud.store.get(member.template) is None:
            member.template = template_of(value)
        instance = self._members.instance(member)
        cause = "gone" if instance is None else "stopped" if instance["status"] == "TERMINATED" else "unhealthy"
        self._cloud.events.add(
            "group", self._key, "repairing", instance=self._members.instance_key(member), cause=cause
        )
        # Whether repair drains is written nowhere; the lab does not (docs/lab-fidelity.md).
        self._begin(member, "RECREATING", partial(self._remake, member, drain=False))

    def replace(self, member: Managed, value: Object) -> None:
        """Makes a VM anew by the group's template, draining first."""
        member.template = template_of(value)
        self._cloud.events.add("group", self._key, "recreating", instance=self._members.instance_key(member))
        self._begin(member, "RECREATING", partial(self._remake, member, drain=True))

    def refresh(self, member: Managed, value: Object) -> None:
        """Brings a VM up to date while it runs."""
        key = self._members.instance_key(member)
        if self._cloud.store.get(key) is None:
            # It is being made or repaired, and refreshed after that.
            return
        member.template = template_of(value)
        self._cloud.instances.reconfigure(key, self.instance_body(member, value))
        self._cloud.events.add("group", self._key, "refreshed", instance=key)
        self._members.save()

    def restart(self, member: Managed, value: Object) -> None:
        """Stops a VM and starts it again, brought up to date meanwhile; it keeps its name, number and addresses."""
        self._cloud.events.add("group", self._key, "restarting", instance=self._members.instance_key(member))
        member.restarted = True
        self._begin(member, "RESTARTING", partial(self._restart, member))

    def delete(self, member: Managed) -> None:
        """Drains and deletes a VM."""
        self._cloud.events.add("group", self._key, "deleting", instance=self._members.instance_key(member))
        self._begin(member, "DELETING", partial(self._remove, member, drain=True))

    def _begin(self, member: Managed, action: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        before = member.job
        self._members.set_action(member, action)

        async def job() -> None:
            if before is not None and not before.done():
                before.cancel()
                await asyncio.gather(before, return_exceptions=True)
            while True:
                try:
                    await work()
                    break
                except ApiError as error:
                    # Each step may be done again: what is made already is left as it is.
                    self._note(member, error)
                    await self._cloud.clock.sleep(RETRY_SECONDS)
            self._wake()

        member.job = asyncio.get_running_loop().create_task(job())

    async def _make(self, member: Managed) -> None:
        """Makes the VM's record and runs it, until that works."""
        key = self._members.instance_key(member)
        member.since = member.available_from = None
        while True:
            value = self._cloud.store.get(self._key)
            if value is None:
                return
            try:
                if self._cloud.store.get(member.template) is None:
                    member.template = template_of(value)
                if self._cloud.store.get(key) is None:
                    self._cloud.instances.create(key, self.instance_body(member, value))
                await self._cloud.uninterrupted(self._cloud.machines.start(key))
                break
            except ApiError as error:
                self._note(member, error)
                await self._cloud.clock.sleep(RETRY_SECONDS)
        self._cloud.events.add("group", self._key, "made", instance=key)
        self._members.set_action(member, "VERIFYING" if checked(value) else "NONE")

    async def _restart(self, member: Managed) -> None:
        key, value = self._members.instance_key(member), self._cloud.store.get(self._key)
        if value is None:
            return
        member.template = template_of(value)
        if self._cloud.store.get(key) is not None:
            # Draining belongs to deletions; the shutdown script closes the traffic check first:
            # https://cloud.google.com/load-balancing/docs/enabling-connection-draining
            body = self.instance_body(member, value)
            await self._cloud.uninterrupted(
                self._cloud.machines.power_off(key, lambda: self._cloud.instances.reconfigure(key, body))
            )
        await self._make(member)

    async def _remake(self, member: Managed, *, drain: bool) -> None:
        member.restarted = False
        await self._take_down(member, drain=drain)
        await self._make(member)

    async def _remove(self, member: Managed, *, drain: bool) -> None:
        await self._take_down(member, drain=drain)
        self._members.drop(member.name)

    async def _take_down(self, member: Managed, *, drain: bool) -> None:
        key = self._members.instance_key(member)
        if drain and self._members.running(member):
            # The group delays each deletion by the largest draining timeout of the services that use it:
            # https://cloud.google.com/load-balancing/docs/enabling-connection-draining
            seconds = self._cloud.backend_services.draining_timeout(
                self._key.replace("/instanceGroupManagers/", "/instanceGroups/")
            )
            await self._cloud.fabric.drain(key, seconds)
        try:
            await self._cloud.uninterrupted(self._cloud.machines.delete(key))
        finally:
            self._cloud.fabric.forget(key)

    def instance_body(self, member: Managed, value: Object) -> Object:
        """What a member's VM is made from."""
        template = self._cloud.store.require(member.template)
        body: Object = copy.deepcopy(template["properties"])
        extra = (value.get("allInstancesConfig") or {}).get("properties") or {}
        items = {item["key"]: item.get("value", "") for item in body.get("metadata", {}).get("items", [])}
        items.update(extra.get("metadata") or {})
        number = self._cloud.projects.number
        # What Google adds to the metadata of a group's VM:
        # https://cloud.google.com/compute/docs/instance-groups/getting-info-about-migs#checking_if_a_vm_instance_is_part_of_a_mig
        items["created-by"] = f"projects/{number}/" + self._key.split("/", 2)[2]
        items["instance-template"] = f"projects/{number}/" + member.template.split("/", 2)[2]
        body["metadata"] = {"items": [{"key": name, "value": text} for name, text in items.items()]}
        if extra.get("labels"):
            body["labels"] = {**(body.get("labels") or {}), **extra["labels"]}
        description = body.pop("description", None)
        body.update(name=member.name, **({"description": description} if description else {}))
        return body

    def _note(self, member: Managed, error: ApiError) -> None:
        self._cloud.events.add(
            "group", self._key, "error", instance=self._members.instance_key(member), reason=error.message
        )
        self.errors.insert(
            0,
            {
                "timestamp": timestamp(),
                "instanceActionDetails": {
                    "action": member.action,
                    "instance": link(self._members.instance_key(member)),
                    "version": {"instanceTemplate": link(member.template)},
                },
                "error": {"code": error.reason, "message": error.message},
            },
        )
        del self.errors[100:]

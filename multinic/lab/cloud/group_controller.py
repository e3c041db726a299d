"""What a managed instance group does: makes, heals, replaces and deletes its VMs until they are what was asked for.

The decisions are `group_plan.decide`; this carries them out. Sources beside the rules, there and below.
"""

from __future__ import annotations

import asyncio
import copy
import secrets
import string
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from .clock import timestamp
from .errors import ApiError
from .group_plan import Member, Target, decide
from .links import key_of, link, name_of
from .managed import Managed
from .store import Object

if TYPE_CHECKING:
    from .cloud import Cloud

_SUFFIX = string.ascii_lowercase + string.digits
RETRY_SECONDS = 10.0
"""How long the lab waits before it tries again to make a VM (Google's own wait is not published)."""


class GroupController:
    """The controller of one group."""

    def __init__(self, cloud: Cloud, key: str) -> None:
        self._cloud, self.key = cloud, key
        self.members: dict[str, Managed] = {}
        self._wake = asyncio.Event()
        self.errors: list[dict[str, Any]] = []
        self._task: asyncio.Task[None] | None = None
        value = cloud.store.require(key)
        for name, zone, template, action in value.get("_members", []):
            self.members[name] = Managed(name, zone, template, action, born=cloud.clock.now())

    # Life

    def start(self) -> None:
        """Begins to act; also on what a lab that was killed had left undone."""
        for member in list(self.members.values()):
            match member.action:
                case "CREATING" | "RECREATING" | "RESTARTING":
                    self._begin(member, member.action, partial(self._make, member))
                case "DELETING":
                    self._begin(member, "DELETING", partial(self._remove, member, drain=False))
                case _:
                    # Its machine is started by the cloud; it is verified anew.
                    member.action = "VERIFYING"
        self._task = self._cloud.background(self._run())

    def wake(self) -> None:
        """Something may have changed: decide again."""
        self._wake.set()

    async def close(self) -> None:
        """Stops acting; the VMs stay."""
        tasks = [task for task in (self._task, *(m.job for m in self.members.values())) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def dismantle(self) -> None:
        """Deletes all VMs at once, for a group that is being deleted."""
        for member in list(self.members.values()):
            if member.action != "DELETING":
                self._begin(member, "DELETING", partial(self._remove, member, drain=False))
        while self.members:
            jobs = [member.job for member in self.members.values() if member.job]
            await asyncio.wait(jobs, timeout=1.0)

    async def _run(self) -> None:
        while (value := self._cloud.store.get(self.key)) is not None:
            self._wake.clear()
            if value.get("_deleting"):
                return
            wait = self.step(value)
            await self._cloud.clock.wait(self._wake, wait)

    # Deciding

    def step(self, value: Object) -> float | None:
        """Decides and begins; gives the lab seconds until something is due by itself, or None."""
        due = self._refresh(value)
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
        decision = decide(target, [self._as_member(member, value) for member in self.members.values()])
        for name in decision.repair:
            self._repair(self.members[name], value)
        for name in decision.recreate:
            self._replace(self.members[name], value)
        for name in decision.delete:
            self._delete(self.members[name])
        for _ in range(decision.create):
            self._create(value)
        return min(due) if due else None

    def _refresh_in_place(self, value: Object) -> None:
        """Takes over metadata and labels without touching the VM, where the update policy lets it.

        minimalAction REFRESH (or NONE) and templates that differ in nothing else:
        https://cloud.google.com/compute/docs/instance-groups/updating-managed-instance-groups#minimal_action
        """
        policy, template = value["updatePolicy"], self.template_of(value)
        if policy["type"] != "PROACTIVE" or policy.get("minimalAction") not in ("NONE", "REFRESH"):
            return
        for member in self.members.values():
            instance = self.instance_key(member)
            if member.template == template or member.action != "NONE" or self._cloud.store.get(instance) is None:
                continue
            if not self._differ_in_metadata_only(member.template, template):
                continue
            member.template = template
            body = self._instance_body(member, value)
            self._cloud.instances.write(instance, metadata=body["metadata"], labels=body.get("labels") or {})
            self._cloud.substrate.metadata_changed(instance)
            self._cloud.events.add("group", self.key, "refreshed", instance=instance)
            self._save()

    def _differ_in_metadata_only(self, one: str, other: str) -> bool:
        templates = [self._cloud.store.get(key) for key in (one, other)]
        if None in templates:
            return False
        rest = [{n: c for n, c in t["properties"].items() if n not in ("metadata", "labels")} for t in templates if t]
        return rest[0] == rest[1]

    def _refresh(self, value: Object) -> list[float]:
        """Moves VERIFYING on; gives the waits until the next thing that only time brings."""
        now, due = self._cloud.clock.now(), []
        delay, ready = self._initial_delay(value), self._min_ready(value)
        for member in self.members.values():
            if member.action not in ("NONE", "VERIFYING") or not self.running(member):
                continue
            if member.since is None:
                member.since = now
            healthy = not self.checked(value) or self.health_says(member, "ever_healthy")
            if healthy and member.available_from is None:
                member.available_from = now
            if member.action == "VERIFYING":
                left = member.since + delay - now
                if healthy or left <= 0:
                    self._set_action(member, "NONE")
                else:
                    due.append(left)
            if member.available_from is not None and member.available_from + ready > now:
                due.append(member.available_from + ready - now)
        return due

    def _as_member(self, member: Managed, value: Object) -> Member:
        now = self._cloud.clock.now()
        settled = member.action in ("NONE", "VERIFYING")
        current = member.template == self.template_of(value)
        # minReadySec is for what an update makes; an outdated VM that serves, serves.
        wait = self._min_ready(value) if current else 0.0
        failed = settled and self._failed(member, value)
        available = settled and not failed and self.running(member) and member.available_from is not None
        ready = available and now >= (member.available_from or 0.0) + wait
        return Member(
            name=member.name,
            zone=member.zone,
            current=current,
            busy=member.action in ("CREATING", "RECREATING", "RESTARTING", "REFRESHING"),
            leaving=member.action in ("DELETING", "ABANDONING"),
            ready=ready,
            failed=failed,
            age=now - member.born,
        )

    def _failed(self, member: Managed, value: Object) -> bool:
        instance = self._cloud.store.get(self.instance_key(member))
        if instance is None or instance["status"] in ("TERMINATED", "STOPPED"):
            return True
        # onFailedHealthCheck DO_NOTHING only observes: discovery, InstanceGroupManagerInstanceLifecyclePolicy
        if value["instanceLifecyclePolicy"].get("onFailedHealthCheck") == "DO_NOTHING":
            return False
        return self.checked(value) and self.health_says(member, "confirmed_unhealthy")

    def checked(self, value: Object) -> bool:
        """Whether the group heals by a health check."""
        return bool(value.get("autoHealingPolicies"))

    def _initial_delay(self, value: Object) -> float:
        policies = value.get("autoHealingPolicies") or [{}]
        return float(policies[0].get("initialDelaySec") or 0)

    def _min_ready(self, value: Object) -> float:
        return float(value["updatePolicy"].get("minReadySec") or 0)

    def template_of(self, value: Object) -> str:
        """Key of the template that the group asks for."""
        return key_of(value["instanceTemplate"])

    def running(self, member: Managed) -> bool:
        """Whether a member's instance is RUNNING."""
        instance = self._cloud.store.get(self.instance_key(member))
        return instance is not None and instance["status"] == "RUNNING"

    def health_says(self, member: Managed, what: str) -> bool:
        """A property of what the heal check says of a member; False while it says nothing."""
        state = self._cloud.health.heal_state(self.key, self.instance_key(member))
        return state is not None and bool(getattr(state, what))

    # Acting

    def _create(self, value: Object) -> None:
        zones = self._cloud.instance_group_managers.zones(self.key, value)
        zone = min(zones, key=lambda name: (sum(1 for m in self.members.values() if m.zone == name), name))
        member = Managed(self._new_name(value), zone, self.template_of(value), born=self._cloud.clock.now())
        self.members[member.name] = member
        self._cloud.events.add("group", self.key, "creating", instance=self.instance_key(member))
        self._begin(member, "CREATING", partial(self._make, member))

    def _new_name(self, value: Object) -> str:
        while True:
            name = f"{value['baseInstanceName']}-{''.join(secrets.choice(_SUFFIX) for _ in range(4))}"
            if name not in self.members:
                return name

    def _repair(self, member: Managed, value: Object) -> None:
        # The same name and template; with forceUpdateOnRepair the newest template:
        # https://cloud.google.com/compute/docs/instance-groups/about-repair
        force = value["instanceLifecyclePolicy"].get("forceUpdateOnRepair") == "YES"
        if force or self._cloud.store.get(member.template) is None:
            member.template = self.template_of(value)
        instance = self._cloud.store.get(self.instance_key(member))
        cause = "gone" if instance is None else "stopped" if instance["status"] == "TERMINATED" else "unhealthy"
        self._cloud.events.add("group", self.key, "repairing", instance=self.instance_key(member), cause=cause)
        # Whether repair drains is written nowhere; the lab does not (docs/lab-fidelity.md).
        self._begin(member, "RECREATING", partial(self._remake, member, drain=False))

    def _replace(self, member: Managed, value: Object) -> None:
        member.template = self.template_of(value)
        self._cloud.events.add("group", self.key, "recreating", instance=self.instance_key(member))
        self._begin(member, "RECREATING", partial(self._remake, member, drain=True))

    def _delete(self, member: Managed) -> None:
        self._cloud.events.add("group", self.key, "deleting", instance=self.instance_key(member))
        self._begin(member, "DELETING", partial(self._remove, member, drain=True))

    def _begin(self, member: Managed, action: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        before = member.job
        self._set_action(member, action)

        async def job() -> None:
            if before is not None and not before.done():
                before.cancel()
                await asyncio.gather(before, return_exceptions=True)
            await work()
            self.wake()

        member.job = asyncio.get_running_loop().create_task(job())

    async def _make(self, member: Managed) -> None:
        """Makes the VM's record and runs it, until that works."""
        key = self.instance_key(member)
        member.since = member.available_from = None
        while True:
            value = self._cloud.store.get(self.key)
            if value is None:
                return
            try:
                if self._cloud.store.get(member.template) is None:
                    member.template = self.template_of(value)
                if self._cloud.store.get(key) is None:
                    self._cloud.instances.create(key, self._instance_body(member, value))
                await self._cloud.uninterrupted(self._cloud.machines.start(key))
                break
            except ApiError as error:
                self._note(member, error)
                await self._cloud.clock.sleep(RETRY_SECONDS)
        self._cloud.events.add("group", self.key, "made", instance=key)
        self._set_action(member, "VERIFYING" if self.checked(value) else "NONE")

    async def _remake(self, member: Managed, *, drain: bool) -> None:
        await self._take_down(member, drain=drain)
        await self._make(member)

    async def _remove(self, member: Managed, *, drain: bool) -> None:
        await self._take_down(member, drain=drain)
        self.members.pop(member.name, None)
        self._save()

    async def _take_down(self, member: Managed, *, drain: bool) -> None:
        key = self.instance_key(member)
        if drain and self.running(member):
            # The group delays each deletion by the largest draining timeout of the services that use it:
            # https://cloud.google.com/load-balancing/docs/enabling-connection-draining
            seconds = self._cloud.backend_services.draining_timeout(self._group())
            await self._cloud.fabric.drain(key, seconds)
        try:
            await self._cloud.uninterrupted(self._cloud.machines.delete(key))
        finally:
            self._cloud.fabric.forget(key)

    def _instance_body(self, member: Managed, value: Object) -> Object:
        template = self._cloud.store.require(member.template)
        body: Object = copy.deepcopy(template["properties"])
        extra = (value.get("allInstancesConfig") or {}).get("properties") or {}
        items = {item["key"]: item.get("value", "") for item in body.get("metadata", {}).get("items", [])}
        items.update(extra.get("metadata") or {})
        number = self._cloud.projects.number
        # What Google adds to the metadata of a group's VM:
        # https://cloud.google.com/compute/docs/instance-groups/getting-info-about-migs#checking_if_a_vm_instance_is_part_of_a_mig
        items["created-by"] = f"projects/{number}/" + self.key.split("/", 2)[2]
        items["instance-template"] = f"projects/{number}/" + member.template.split("/", 2)[2]
        body["metadata"] = {"items": [{"key": name, "value": text} for name, text in items.items()]}
        if extra.get("labels"):
            body["labels"] = {**(body.get("labels") or {}), **extra["labels"]}
        description = body.pop("description", None)
        body.update(name=member.name, **({"description": description} if description else {}))
        return body

    def _note(self, member: Managed, error: ApiError) -> None:
        self._cloud.events.add("group", self.key, "error", instance=self.instance_key(member), reason=error.message)
        self.errors.insert(
            0,
            {
                "timestamp": timestamp(),
                "instanceActionDetails": {
                    "action": member.action,
                    "instance": link(self.instance_key(member)),
                    "version": {"instanceTemplate": link(member.template)},
                },
                "error": {"code": error.reason, "message": error.message},
            },
        )
        del self.errors[100:]

    def _set_action(self, member: Managed, action: str) -> None:
        member.action = action
        self._save()

    def _save(self) -> None:
        value = self._cloud.store.get(self.key)
        if value is not None:
            members = [[m.name, m.zone, m.template, m.action] for m in self.members.values()]
            if members != value.get("_members"):
                self._cloud.store.put(self.key, {**value, "_members": members})

    # What a client asks for by name

    def recreate(self, names: Iterable[str]) -> None:
        """Makes the named VMs anew by the group's template, draining first."""
        value = self._cloud.store.require(self.key)
        for name in names:
            self._replace(self.members[name], value)

    def remove(self, names: Iterable[str]) -> None:
        """Deletes the named VMs and lowers the target size by their number."""
        chosen = [self.members[name] for name in names if self.members[name].action != "DELETING"]
        for member in chosen:
            self._delete(member)
        size = self._cloud.store.require(self.key)["targetSize"]
        self._cloud.instance_group_managers.set_size(self.key, max(0, size - len(chosen)))

    def abandon(self, names: Iterable[str]) -> None:
        """Takes the named VMs out of the group."""
        chosen = list(names)
        for name in chosen:
            self.members.pop(name)
        self._save()
        self._cloud.fabric.changed()
        size = self._cloud.store.require(self.key)["targetSize"]
        self._cloud.instance_group_managers.set_size(self.key, max(0, size - len(chosen)))

    def update(self, names: Iterable[str]) -> None:
        """Replaces those of the named VMs that are outdated."""
        value = self._cloud.store.require(self.key)
        for name in names:
            if self.members[name].template != self.template_of(value):
                self._replace(self.members[name], value)

    # What a client sees

    def _group(self) -> str:
        return self.key.replace("/instanceGroupManagers/", "/instanceGroups/")

    def instance_key(self, member: Managed) -> str:
        """Key of a member's instance."""
        return f"projects/{self._cloud.project}/zones/{member.zone}/instances/{member.name}"

    def names(self) -> list[str]:
        """Names of the members."""
        return sorted(self.members)

    def instances(self) -> list[str]:
        """Keys of the members whose instances are there."""
        keys = sorted(self.instance_key(member) for member in self.members.values())
        return [key for key in keys if self._cloud.store.get(key) is not None]

    def running_since(self) -> list[tuple[str, float]]:
        """(key, lab time since which it runs) of the members that run and are not on their way out."""
        found = [(self.instance_key(m), m.since) for m in self.members.values() if m.action in ("NONE", "VERIFYING")]
        return [(key, since) for key, since in found if since is not None and self._cloud.store.get(key) is not None]

    def owns(self, instance: str) -> bool:
        """Whether an instance is a member."""
        member = self.members.get(name_of(instance))
        return member is not None and self.instance_key(member) == instance

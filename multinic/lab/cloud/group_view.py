"""What a client sees of a managed instance group: status, current actions, its VMs, what went wrong.

https://cloud.google.com/compute/docs/instance-groups/getting-info-about-migs
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .group_states import checked
from .group_updates import proactive, template_of
from .links import link
from .managed import Managed
from .store import Object

if TYPE_CHECKING:
    from .cloud import Cloud
    from .group_controller import GroupController

_ACTIONS = (
    "none",
    "creating",
    "creatingWithoutRetries",
    "recreating",
    "deleting",
    "abandoning",
    "restarting",
    "refreshing",
    "verifying",
    "suspending",
    "stopping",
    "resuming",
    "starting",
)


class GroupView:
    """Reads a group's controller; changes nothing."""

    def __init__(self, cloud: Cloud, group: GroupController) -> None:
        self._cloud, self._group = cloud, group

    def current_actions(self) -> dict[str, int]:
        """``currentActions``: how many VMs are in which action."""
        counts = dict.fromkeys(_ACTIONS, 0)
        for member in self._group.members:
            counts[member.action.lower()] += 1
        return counts

    def is_stable(self) -> bool:
        """``status.isStable``: nothing is being done and nothing is left to do."""
        value = self._cloud.store.require(self._group.key)
        if any(member.action != "NONE" for member in self._group.members):
            return False
        if len(self._group.members) != value["targetSize"] or not all(
            map(self._group.members.running, self._group.members)
        ):
            return False
        return all(proactive(self._cloud.store, member.template, value) is None for member in self._group.members)

    def version_reached(self) -> bool:
        """``status.versionTarget.isReached``: all VMs are of the version that was asked for."""
        value = self._cloud.store.require(self._group.key)
        return self._all_current(value) and len(self._group.members) == value["targetSize"]

    def _all_current(self, value: Object) -> bool:
        return all(member.template == template_of(value) for member in self._group.members)

    def managed_instances(self) -> list[dict[str, Any]]:
        """Items of ``listManagedInstances``."""
        return [self._managed_instance(member) for member in sorted(self._group.members, key=lambda m: m.name)]

    def _managed_instance(self, member: Managed) -> dict[str, Any]:
        value = self._cloud.store.require(self._group.key)
        key = self._group.members.instance_key(member)
        instance = self._cloud.store.get(key)
        answer: dict[str, Any] = {
            "name": member.name,
            "instance": link(key),
            "currentAction": member.action,
            "version": {"instanceTemplate": link(member.template)},
        }
        versions = value.get("versions", [])
        if versions and versions[0].get("name"):
            answer["version"]["name"] = versions[0]["name"]
        if instance is not None:
            answer.update(id=instance["id"], instanceStatus=instance["status"])
        errors = [e for e in self._group.errors if e["instanceActionDetails"]["instance"] == link(key)]
        if errors and member.action in ("CREATING", "RECREATING"):
            answer["lastAttempt"] = {"errors": {"errors": [errors[0]["error"]]}}
        if checked(value) and instance is not None:
            state = self._cloud.health.heal_state(self._group.key, key)
            check = value["autoHealingPolicies"][0].get("healthCheck")
            answer["instanceHealth"] = [
                {"healthCheck": check, "detailedHealthState": state.detailed if state else "UNKNOWN"}
            ]
        return answer

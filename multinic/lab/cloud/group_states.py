"""What a managed instance group makes of its VMs: which are verified, ready, failed or outdated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .group_members import GroupMembers
from .group_plan import Member
from .group_updates import proactive, template_of
from .managed import Managed
from .store import Object

if TYPE_CHECKING:
    from .cloud import Cloud


def checked(value: Object) -> bool:
    """Whether a group heals by a health check."""
    return bool(value.get("autoHealingPolicies"))


def _initial_delay(value: Object) -> float:
    policies = value.get("autoHealingPolicies") or [{}]
    return float(policies[0].get("initialDelaySec") or 0)


def _min_ready(value: Object) -> float:
    return float(value["updatePolicy"].get("minReadySec") or 0)


class GroupStates:
    """Judges the members of one group by the lab's clock and the heal check."""

    def __init__(self, cloud: Cloud, key: str, members: GroupMembers) -> None:
        self._cloud, self._key, self._members = cloud, key, members

    def refresh(self, value: Object) -> list[float]:
        """Moves VERIFYING on; gives the waits until the next thing that only time brings."""
        now, due = self._cloud.clock.now(), []
        delay, ready = _initial_delay(value), _min_ready(value)
        for member in self._members:
            if member.action not in ("NONE", "VERIFYING") or not self._members.running(member):
                continue
            if member.since is None:
                member.since = now
            healthy = not checked(value) or self._health_says(member, "ever_healthy")
            if healthy and member.available_from is None:
                member.available_from = now
            if member.action == "VERIFYING":
                left = member.since + delay - now
                if healthy or left <= 0:
                    self._members.set_action(member, "NONE")
                else:
                    due.append(left)
            if member.available_from is not None and member.available_from + ready > now:
                due.append(member.available_from + ready - now)
        return due

    def as_member(self, member: Managed, value: Object) -> Member:
        """A member as the decision sees it."""
        now = self._cloud.clock.now()
        settled = member.action in ("NONE", "VERIFYING")
        current = member.template == template_of(value)
        # minReadySec is for what an update makes; an outdated VM that serves, serves.
        wait = _min_ready(value) if current else 0.0
        failed = settled and self._failed(member, value)
        available = settled and not failed and self._members.running(member) and member.available_from is not None
        ready = available and now >= (member.available_from or 0.0) + wait
        return Member(
            name=member.name,
            zone=member.zone,
            current=current,
            update=proactive(self._cloud.store, member.template, value),
            busy=member.action in ("CREATING", "RECREATING", "RESTARTING", "REFRESHING"),
            leaving=member.action in ("DELETING", "ABANDONING"),
            ready=ready,
            returning=member.restarted and not ready and not failed,
            failed=failed,
            age=now - member.born,
        )

    def _failed(self, member: Managed, value: Object) -> bool:
        instance = self._members.instance(member)
        if instance is None or instance["status"] in ("TERMINATED", "STOPPED"):
            return True
        # onFailedHealthCheck DO_NOTHING only observes: discovery, InstanceGroupManagerInstanceLifecyclePolicy
        if value["instanceLifecyclePolicy"].get("onFailedHealthCheck") == "DO_NOTHING":
            return False
        return checked(value) and self._health_says(member, "confirmed_unhealthy")

    def _health_says(self, member: Managed, what: str) -> bool:
        """A property of what the heal check says of a member; False while it says nothing."""
        state = self._cloud.health.heal_state(self._key, self._members.instance_key(member))
        return state is not None and bool(getattr(state, what))

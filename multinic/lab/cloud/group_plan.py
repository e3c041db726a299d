"""What a managed instance group does next: a pure function of its target and its members.

Rules of updates: https://cloud.google.com/compute/docs/instance-groups/rolling-out-updates-to-managed-instance-groups
(surge, unavailable, minReadySec, replacement method; what is done to each VM: `group_updates`); of repair:
https://cloud.google.com/compute/docs/instance-groups/about-repair
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Member:
    """A VM of the group, as the decision sees it.

    Attributes:
        name: Its name.
        zone: Its zone's name.
        current: Made from the template that the group asks for.
        update: What the group does to it by itself when it is not: of `group_updates.ACTIONS`, or None for nothing.
        busy: Being created, recreated or restarted.
        leaving: Being deleted or abandoned.
        ready: RUNNING, healthy once where the group heals, and for at least minReadySec; not failed since.
        returning: Restarted by an update, and neither ready nor failed since.
        failed: Gone, stopped by itself, or confirmed unhealthy.
        age: Larger is older; breaks ties.
    """

    name: str
    zone: str = ""
    current: bool = True
    update: str | None = "REPLACE"
    busy: bool = False
    leaving: bool = False
    ready: bool = True
    returning: bool = False
    failed: bool = False
    age: float = 0.0


@dataclass(frozen=True)
class Target:
    """What the group asks for.

    Attributes:
        size: ``targetSize``.
        surge: VMs above `size` while updating.
        unavailable: VMs of `size` that may be missing or not ready while updating.
        keep_names: Replacement method RECREATE.
        repair: Whether failed VMs are recreated.
    """

    size: int
    surge: int = 1
    unavailable: int = 0
    keep_names: bool = False
    repair: bool = True


@dataclass(frozen=True)
class Decision:
    """What to begin now.

    Attributes:
        create: How many VMs to make from the current template.
        delete: Names to drain and delete.
        recreate: Names to replace by the current template under the same name (update).
        refresh: Names to bring up to date while they run.
        restart: Names to bring up to date by a stop and a start.
        repair: Names to repair at once.
    """

    create: int = 0
    delete: tuple[str, ...] = ()
    recreate: tuple[str, ...] = ()
    refresh: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    repair: tuple[str, ...] = ()


def decide(target: Target, members: Sequence[Member]) -> Decision:
    """The next steps. Beginning them and calling again converges on `target`."""
    repair = tuple(m.name for m in members if target.repair and m.failed and not m.busy and not m.leaving)
    staying = [m for m in members if not m.leaving]
    outdated = [m for m in staying if not m.current and m.update and target.size > 0]
    # These cost no capacity, so that no limit holds them back.
    refresh = tuple(m.name for m in outdated if m.update in ("NONE", "REFRESH") and not m.busy and m.name not in repair)
    replaced = [m for m in outdated if m.update == "REPLACE"]
    restarted = [m for m in outdated if m.update == "RESTART"]
    if replaced and target.keep_names:
        decision = _recreate(target, staying, replaced)
    elif replaced:
        decision = _substitute(target, members, staying, replaced)
    elif restarted:
        decision = _restart(target, members, staying, restarted)
    else:
        # What stands in for a VM that is restarted goes when that one serves again.
        surplus = 0 if any(m.returning for m in staying) else len(staying) - target.size
        create = max(0, target.size - len(staying))
        decision = Decision(create=create, delete=_surplus(staying, surplus))
    taken = (*decision.delete, *decision.recreate, *decision.restart)
    return replace(
        decision,
        refresh=tuple(name for name in refresh if name not in taken),
        repair=tuple(name for name in repair if name not in taken),
    )


def _surplus(staying: Sequence[Member], count: int) -> tuple[str, ...]:
    """Which VMs go when the group shrinks: failed, not ready, outdated ones first, then the youngest."""
    if count <= 0:
        return ()
    order = sorted(staying, key=lambda m: (not m.failed, m.ready, m.current, m.age, m.name))
    return tuple(m.name for m in order[:count])


def _recreate(target: Target, staying: Sequence[Member], outdated: Sequence[Member]) -> Decision:
    surplus = _surplus(staying, len(staying) - target.size)
    missing = max(0, target.size - len(staying))
    unready = sum(1 for m in staying if not m.ready and m.name not in surplus) + missing
    rest = [m for m in outdated if m.name not in surplus]
    return Decision(create=missing, delete=surplus, recreate=_taken_down(rest, target.unavailable - unready))


def _taken_down(outdated: Sequence[Member], room: int) -> tuple[str, ...]:
    """Those to take down now: all that do not serve anyway, and of those that serve as many as there is room for."""
    order = sorted((m for m in outdated if not m.busy), key=lambda m: (-m.age, m.name))
    serving = [m.name for m in order if m.ready]
    return (*(m.name for m in order if not m.ready), *serving[: max(0, room)])


def _restart(
    target: Target, members: Sequence[Member], staying: Sequence[Member], outdated: Sequence[Member]
) -> Decision:
    """A restart makes a VM unavailable for a while; surge VMs stand in for it, and go as surplus in the end."""
    create = max(0, target.size + min(target.surge, len(outdated)) - len(members))
    room = sum(1 for m in staying if m.ready) - (target.size - target.unavailable)
    return Decision(create=create, restart=_taken_down(outdated, room))


def _substitute(
    target: Target, members: Sequence[Member], staying: Sequence[Member], outdated: Sequence[Member]
) -> Decision:
    fresh = [m for m in staying if m not in outdated]
    # VMs that are still going count against the surge, so that quotas of addresses and CPUs hold.
    room = target.size + target.surge - len(members)
    create = max(0, min(room, target.size - len(fresh)))
    ready = sum(1 for m in staying if m.ready)
    floor = target.size - target.unavailable
    delete: list[str] = []
    for member in sorted(outdated, key=lambda m: (m.ready, -m.age, m.name)):
        if member.busy:
            continue
        if not member.ready:
            # Replaced by a surge VM or within what may be unavailable; never below the number of VMs asked for
            # unless that is allowed.
            if len(staying) - len(delete) > floor:
                delete.append(member.name)
        elif ready > floor and len(staying) - len(delete) > floor:
            delete.append(member.name)
            ready -= 1
    # Surplus of the new version, when the group was made smaller in the middle of an update.
    delete += _surplus([m for m in fresh if not m.busy], len(fresh) - target.size)
    return Decision(create=create, delete=tuple(delete))

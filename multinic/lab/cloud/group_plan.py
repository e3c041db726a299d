"""What a managed instance group does next: a pure function of its target and its members.

Rules of updates: https://cloud.google.com/compute/docs/instance-groups/rolling-out-updates-to-managed-instance-groups
(surge, unavailable, minReadySec, replacement method); of repair:
https://cloud.google.com/compute/docs/instance-groups/about-repair
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Member:
    """A VM of the group, as the decision sees it.

    Attributes:
        name: Its name.
        zone: Its zone's name.
        current: Made from the template that the group asks for.
        busy: Being created, recreated or restarted.
        leaving: Being deleted or abandoned.
        ready: RUNNING, healthy once where the group heals, and for at least minReadySec; not failed since.
        failed: Gone, stopped by itself, or confirmed unhealthy.
        age: Larger is older; breaks ties.
    """

    name: str
    zone: str = ""
    current: bool = True
    busy: bool = False
    leaving: bool = False
    ready: bool = True
    failed: bool = False
    age: float = 0.0


@dataclass(frozen=True)
class Target:
    """What the group asks for.

    Attributes:
        size: ``targetSize``.
        proactive: Update policy PROACTIVE: outdated VMs are replaced by the group itself.
        surge: VMs above `size` while updating.
        unavailable: VMs of `size` that may be missing or not ready while updating.
        keep_names: Replacement method RECREATE.
        repair: Whether failed VMs are recreated.
    """

    size: int
    proactive: bool = True
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
        repair: Names to repair at once.
    """

    create: int = 0
    delete: tuple[str, ...] = ()
    recreate: tuple[str, ...] = ()
    repair: tuple[str, ...] = ()


def decide(target: Target, members: Sequence[Member]) -> Decision:
    """The next steps. Beginning them and calling again converges on `target`."""
    repair = tuple(m.name for m in members if target.repair and m.failed and not m.busy and not m.leaving)
    staying = [m for m in members if not m.leaving]
    outdated = [m for m in staying if not m.current]
    updating = target.proactive and bool(outdated) and target.size > 0
    if not updating:
        create = max(0, target.size - len(staying))
        delete = _surplus(staying, len(staying) - target.size)
        return Decision(create=create, delete=delete, repair=tuple(name for name in repair if name not in delete))
    if target.keep_names:
        return _recreate(target, staying, outdated, repair)
    return _substitute(target, members, staying, outdated, repair)


def _surplus(staying: Sequence[Member], count: int) -> tuple[str, ...]:
    """Which VMs go when the group shrinks: failed, not ready, outdated ones first, then the youngest."""
    if count <= 0:
        return ()
    order = sorted(staying, key=lambda m: (not m.failed, m.ready, m.current, m.age, m.name))
    return tuple(m.name for m in order[:count])


def _recreate(
    target: Target, staying: Sequence[Member], outdated: Sequence[Member], repair: tuple[str, ...]
) -> Decision:
    surplus = _surplus(staying, len(staying) - target.size)
    missing = max(0, target.size - len(staying))
    unready = sum(1 for m in staying if not m.ready and m.name not in surplus) + missing
    room = target.unavailable - unready
    chosen = []
    for member in sorted(outdated, key=lambda m: (m.ready, -m.age, m.name)):
        if member.busy or member.name in surplus:
            continue
        if not member.ready:
            # It does not serve anyway: replacing it makes nothing worse.
            chosen.append(member.name)
        elif room > 0:
            chosen.append(member.name)
            room -= 1
    return Decision(
        create=missing,
        delete=surplus,
        recreate=tuple(chosen),
        repair=tuple(n for n in repair if n not in (*chosen, *surplus)),
    )


def _substitute(
    target: Target,
    members: Sequence[Member],
    staying: Sequence[Member],
    outdated: Sequence[Member],
    repair: tuple[str, ...],
) -> Decision:
    fresh = [m for m in staying if m.current]
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
    return Decision(create=create, delete=tuple(delete), repair=tuple(n for n in repair if n not in delete))

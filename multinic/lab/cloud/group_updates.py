"""What an update does to a VM of a group: nothing, refresh, restart or replace.

https://cloud.google.com/compute/docs/instance-groups/rolling-out-updates-to-managed-instance-groups#minimal_action and
the discovery document compute.v1, InstanceGroupManagerUpdatePolicy: the least disruptive action that does it, at least
``minimalAction``; where that is more than ``mostDisruptiveAllowedAction``, nothing is done at all.
"""

from __future__ import annotations

from .links import key_of
from .store import Object, Store

ACTIONS = ("NONE", "REFRESH", "RESTART", "REPLACE")
"""From the least disruptive one to the most."""
_REFRESHED = ("metadata", "labels", "tags")
_RESTARTED = (*_REFRESHED, "machineType")


def template_of(group: Object) -> str:
    """Key of the template that a group asks for."""
    return key_of(group["instanceTemplate"])


def needed(old: Object, new: Object) -> str:
    """The least that makes a VM of one template's properties one of another's."""
    differing = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    if not differing:
        return "NONE"
    if differing <= set(_REFRESHED):
        return "REFRESH"
    return "RESTART" if differing <= set(_RESTARTED) else "REPLACE"


def action(store: Store, template: str, wanted: str, least: str | None, most: str | None) -> str | None:
    """What is done to a VM, or None where it would be more than is allowed.

    Args:
        store: Where the templates are; one that is gone says nothing, so that the VM is replaced.
        template: Key of the template that the VM was made from.
        wanted: Key of the one that it shall be like.
        least: Of `ACTIONS`; nothing means NONE.
        most: Of `ACTIONS`; nothing means REPLACE.
    """
    old, new = store.get(template), store.get(wanted)
    least_needed = needed(old["properties"], new["properties"]) if old and new else "REPLACE"
    chosen = max(least_needed, least or "NONE", key=ACTIONS.index)
    return chosen if ACTIONS.index(chosen) <= ACTIONS.index(most or "REPLACE") else None


def proactive(store: Store, template: str, group: Object) -> str | None:
    """What a group does by itself to a VM of a template; None where it has the wanted one or the policy forbids it."""
    policy, wanted = group["updatePolicy"], template_of(group)
    if template == wanted or policy["type"] != "PROACTIVE":
        return None
    return action(store, template, wanted, policy.get("minimalAction"), policy.get("mostDisruptiveAllowedAction"))

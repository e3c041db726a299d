"""Instance templates that were replaced and left in the project, and that no group uses any more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from multinic.operate import links
from multinic.operate.api import Api
from multinic.operate.fleet import Fleet
from multinic.operate.plan import Plan
from multinic.operate.waiting import Say

_RANDOM = re.compile(r"-[0-9a-f]{7}$")
"""What Pulumi's auto-naming appends."""


@dataclass(frozen=True)
class Template:
    """An instance template: its name, when it was made, and who uses it."""

    name: str
    created: str
    users: tuple[str, ...] = ()


def stem(name: str) -> str:
    """A template's name without what Pulumi appended to it."""
    return _RANDOM.sub("", name)


def read(api: Api, fleet: Fleet) -> list[Template]:
    """The templates that were made for this fleet, oldest first.

    Raises:
        OperateError: An API's refusal.
    """
    stems = sorted({stem(group.template) for group in fleet.groups})
    jobs: list[Any] = [
        partial(api.items, "InstanceTemplates", project=fleet.project, filter=f"name eq '{one}-.*'") for one in stems
    ]
    jobs.append(partial(api.items, "InstanceGroupManagers", "aggregated_list", project=fleet.project))
    *found, managers = api.together(*jobs)
    users: dict[str, set[str]] = {}
    for manager in managers:
        for link in (manager.instance_template, *(version.instance_template for version in manager.versions)):
            users.setdefault(links.name(link), set()).add(f"group {manager.name}")
    for router in fleet.routers:
        # A VM that is repaired comes back with the template that it was made from.
        users.setdefault(router.template, set()).add(f"VM {router.name}")
    made = [one for answer in found for one in answer if stem(one.name) in stems]
    return sorted(
        (Template(one.name, one.creation_timestamp, tuple(sorted(users.get(one.name, ())))) for one in made),
        key=lambda one: one.created,
    )


def plan(templates: Sequence[Template]) -> Plan[Template]:
    """Deletes those that nobody uses."""
    unused = tuple(one for one in templates if not one.users)
    return Plan(
        items=unused,
        changes=tuple(f"delete instance template {one.name}, made {one.created}" for one in unused),
        idle=tuple(f"{one.name} is used by {', '.join(one.users)}" for one in templates if one.users),
        traffic=("none",) if unused else (),
    )


def apply(api: Api, fleet: Fleet, items: Sequence[Template], say: Say) -> None:
    """Deletes templates; one that a group took meanwhile is refused by Google Cloud and stays.

    Raises:
        OperateError: An API's refusal.
    """
    for one in items:
        api.do("InstanceTemplates", "delete", project=fleet.project, instance_template=one.name)
        say(f"deleted {one.name}")

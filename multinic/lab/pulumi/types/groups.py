"""Managed instance groups, zonal and regional, and waiting until they are what was asked for."""

# ruff: noqa: D102 what a method of a kind does is said once, in `kinds.Kind`
from __future__ import annotations

import time
from typing import Any

from multinic.lab.pulumi import links
from multinic.lab.pulumi.fields import Field, Fields, block, blocks
from multinic.lab.pulumi.kinds import Integer, Items, Link, One, Problem, Scope, Strings, Text
from multinic.lab.pulumi.resource_type import Change, Inputs, Outputs, ResourceType
from multinic.lab.pulumi.rest import ApiError, DeadlineError, Document
from multinic.lab.pulumi.types.common import (
    DELETION_POLICY,
    FLAG,
    NAME,
    PROJECT,
    REGION,
    ZONE,
    fixed,
    optional,
)

_FIRST_POLL_S = 0.2
_SLOWEST_POLL_S = 1.0
_SHOWN_ERRORS = 3


class TemplateLink(Link):
    """A template; ``…/NAME?uniqueId=ID`` is sent as ``…/ID`` and read back as ``…/NAME``."""

    def encode(self, value: Any, scope: Scope) -> Any:
        base, _, unique = value.partition("?uniqueId=")
        return links.full(base.rsplit("/", 1)[0] + "/" + unique if unique else base)

    def same(self, wanted: Any, live: Any) -> bool:
        ids = [str(link).partition("?uniqueId=")[2] for link in (wanted, live)]
        if all(ids):
            return ids[0] == ids[1]
        return bool(ids[0] and links.name_of(str(live)) == ids[0]) or super().same(wanted, live)


_UPDATE_POLICY = block(
    Field("type", Text(choices=("OPPORTUNISTIC", "PROACTIVE")), required=True),
    Field("minimalAction", Text(choices=("REFRESH", "RESTART", "REPLACE")), required=True),
    optional("mostDisruptiveAllowedAction", Text(choices=("NONE", "REFRESH", "RESTART", "REPLACE"))),
    # The plugin takes SUBSTITUTE for the same as nothing given.
    optional("replacementMethod", Text(choices=("RECREATE", "SUBSTITUTE"), sent=(("SUBSTITUTE", ""),))),
    optional("maxSurgeFixed", Integer(0), "maxSurge.fixed"),
    optional("maxSurgePercent", Integer(0, 100), "maxSurge.percent"),
    optional("maxUnavailableFixed", Integer(0), "maxUnavailable.fixed"),
    optional("maxUnavailablePercent", Integer(0, 100), "maxUnavailable.percent"),
    optional("minReadySec", Integer(0, 3600)),
    optional("instanceRedistributionType"),
)

_LIFECYCLE = block(
    Field("defaultActionOnFailure", Text(choices=("REPAIR", "DO_NOTHING")), default="REPAIR"),
    Field("forceUpdateOnRepair", Text(choices=("YES", "NO")), default="NO"),
    Field("onFailedHealthCheck", Text(choices=("DEFAULT_ACTION", "REPAIR", "DO_NOTHING")), default="DEFAULT_ACTION"),
)

_TARGET_SIZE = block(Field("fixed", Integer(0)), Field("percent", Integer(0, 100)))

_FIELDS = (
    NAME,
    PROJECT,
    DELETION_POLICY,
    Field("baseInstanceName", required=True, replaces=True),
    Field(
        "versions",
        blocks(
            Field("instanceTemplate", TemplateLink(), required=True),
            Field("name"),
            Field("targetSize", _TARGET_SIZE, computed=True),
        ),
        required=True,
    ),
    optional("targetSize", Integer(0)),
    Field("namedPorts", blocks(Field("name", required=True), Field("port", Integer(), required=True), is_set=True)),
    Field(
        "autoHealingPolicies",
        One(
            block(
                Field("healthCheck", Link(), required=True), Field("initialDelaySec", Integer(0, 3600), required=True)
            )
        ),
    ),
    optional("updatePolicy", _UPDATE_POLICY),
    optional("instanceLifecyclePolicy", _LIFECYCLE),
    Field(
        "allInstancesConfig",
        block(Field("metadata", Strings()), Field("labels", Strings())),
        "allInstancesConfig.properties",
    ),
    optional("listManagedInstancesResults", Text(choices=("PAGELESS", "PAGINATED"))),
    optional(
        "standbyPolicy",
        block(Field("mode", Text(choices=("MANUAL", "SCALE_OUT_POOL"))), Field("initialDelaySec", Integer(0, 3600))),
    ),
    optional("targetStoppedSize", Integer(0)),
    optional("targetSuspendedSize", Integer(0)),
    Field("waitForInstances", FLAG, sent=False, default=False),
    Field("waitForInstancesStatus", Text(choices=("STABLE", "UPDATED")), sent=False, default="STABLE"),
)


def _check(inputs: Inputs) -> list[Problem]:
    policy = inputs.get("updatePolicy")
    if not isinstance(policy, dict):
        return []
    return [
        Problem(f"updatePolicy.{what}Percent", f'"{what}Percent": conflicts with {what}Fixed')
        for what in ("maxSurge", "maxUnavailable")
        if policy.get(f"{what}Fixed") is not None and policy.get(f"{what}Percent") is not None
    ]


def _shape(body: Document, inputs: Inputs, _scope: Scope) -> Document:
    policy = body.get("updatePolicy", {})
    if policy:
        policy.setdefault("replacementMethod", "")
    for what in ("maxSurge", "maxUnavailable"):
        if what in policy:
            policy[what] = {"fixed": None, "percent": None} | policy[what]
    lifecycle = body.get("instanceLifecyclePolicy", {})
    if lifecycle:
        lifecycle["onRepair"] = {}
    for version in body["versions"]:
        version.setdefault("name", "")
        version.setdefault("targetSize", {})
    empty: Document = {
        "description": "",
        "listManagedInstancesResults": "PAGELESS",
        "params": {},
        "resourcePolicies": {"workloadPolicy": None},
        "standbyPolicy": {},
        "statefulPolicy": {"preservedState": {}},
        # Without a size of its own the group starts empty, and its autoscaler fills it.
        "targetSize": 0,
        "updatePolicy": {},
        "instanceLifecyclePolicy": {},
    }
    return empty | body


def _extra(live: Document, _scope: Scope) -> Outputs:
    status = live.get("status") or {}
    reached = bool((status.get("versionTarget") or {}).get("isReached"))
    return {
        "instanceGroup": links.as_v1(live.get("instanceGroup", "")),
        "instanceGroupManagerId": int(live.get("id", 0)),
        "statuses": [{"isStable": bool(status.get("isStable")), "versionTargets": [{"isReached": reached}]}],
    }


def _is_there(live: Document, wanted: str) -> bool:
    status = live.get("status") or {}
    if not status.get("isStable"):
        return False
    return wanted != "UPDATED" or bool((status.get("versionTarget") or {}).get("isReached"))


def wait_for_instances(path: str, inputs: Inputs, live: Document, scope: Scope, deadline: float) -> None:
    """Wait until a group is stable, or runs only what was asked for; fail with the group's own errors.

    Args:
        path: Path of the group.
        inputs: Its inputs; without `waitForInstances` nothing is waited for.
        live: The API's document.
        scope: Where it lives.
        deadline: Point of `time.monotonic` at which waiting ends.

    Raises:
        DeadlineError: If the group is not there in time.
    """
    if not inputs.get("waitForInstances"):
        return
    wanted = str(inputs.get("waitForInstancesStatus", "STABLE"))
    pause = _FIRST_POLL_S
    while not _is_there(scope.rest.get(path), wanted):
        if time.monotonic() > deadline:
            raise DeadlineError(
                f"timeout while waiting for the group {links.name_of(path)} to be {wanted}" + _errors(path, scope)
            )
        scope.rest.pause(pause)
        pause = min(pause * 1.5, _SLOWEST_POLL_S)


def _errors(path: str, scope: Scope) -> str:
    try:
        items = scope.rest.get(f"{path}/listErrors").get("items", [])
    except ApiError as error:
        return f" (its errors could not be read: {error})"
    if not items:
        return "; the group reports no error of its own"
    return "; last errors: " + "; ".join(_told(item) for item in items[-_SHOWN_ERRORS:])


def _told(item: Document) -> str:
    """Return one of a group's errors as text: which instance, and what went wrong with it."""
    error = item.get("error") or {}
    instance = links.name_of((item.get("instanceActionDetails") or {}).get("instance", ""))
    text = str(error.get("message") or error.get("code") or "no message")
    return f"{instance}: {text}" if instance else text


_PATCHED = (
    "versions",
    "updatePolicy",
    "autoHealingPolicies",
    "instanceLifecyclePolicy",
    "allInstancesConfig",
    "listManagedInstancesResults",
    "description",
)


def _update(change: Change) -> None:
    kind = REGION_INSTANCE_GROUP_MANAGER if "/regions/" in change.path else INSTANCE_GROUP_MANAGER
    body = _shape(kind.fields.encode(change.new, change.scope), change.new, change.scope)
    patch = {key: body.get(key) for key in _PATCHED if change.touches(key)}
    if "autoHealingPolicies" in patch:
        patch["autoHealingPolicies"] = patch["autoHealingPolicies"] or []
    if patch:
        change.run("PATCH", change.path, change.print_of_state | patch)
    if change.touches("namedPorts"):
        group = change.path.replace("instanceGroupManagers", "instanceGroups")
        change.run("POST", f"{group}/setNamedPorts", {"namedPorts": body.get("namedPorts", [])})
    if change.touches("targetSize") and "targetSize" in change.new:
        change.run("POST", f"{change.path}/resize", None, size=str(change.new["targetSize"]))


_COMPUTED = ("selfLink", "creationTimestamp", "fingerprint", "instanceGroup", "instanceGroupManagerId", "statuses")

INSTANCE_GROUP_MANAGER = ResourceType(
    pulumi_type="gcp:compute/instanceGroupManager:InstanceGroupManager",
    collection="projects/{project}/zones/{zone}/instanceGroupManagers",
    fields=Fields((*_FIELDS, ZONE, Field("description"))),
    computed=(*_COMPUTED, "operation"),
    check=_check,
    shape=_shape,
    more=_extra,
    after_create=wait_for_instances,
    update=_update,
    after_update=wait_for_instances,
)

REGION_INSTANCE_GROUP_MANAGER = ResourceType(
    pulumi_type="gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager",
    collection="projects/{project}/regions/{region}/instanceGroupManagers",
    fields=Fields(
        (
            *_FIELDS,
            REGION,
            fixed("description"),
            Field("distributionPolicyZones", Items(Text(), is_set=True), sent=False, replaces=True, computed=True),
            optional("distributionPolicyTargetShape", Text(), "distributionPolicy.targetShape"),
        )
    ),
    computed=_COMPUTED,
    check=_check,
    shape=lambda body, inputs, scope: _shape(_with_zones(body, inputs), inputs, scope),
    more=_extra,
    after_create=wait_for_instances,
    update=_update,
    after_update=wait_for_instances,
)


def _with_zones(body: Document, inputs: Inputs) -> Document:
    zones = sorted(inputs.get("distributionPolicyZones") or [])
    if zones:
        named = [{"zone": f"zones/{links.name_of(zone)}"} for zone in zones]
        body.setdefault("distributionPolicy", {})["zones"] = named
    return body


TYPES = (INSTANCE_GROUP_MANAGER, REGION_INSTANCE_GROUP_MANAGER)

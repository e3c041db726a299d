"""Autoscalers, zonal and regional."""

from __future__ import annotations

from typing import Any

from multinic.lab.pulumi import links
from multinic.lab.pulumi.fields import Field, Fields, block, blocks
from multinic.lab.pulumi.kinds import Integer, Link, Number, Scope, Text
from multinic.lab.pulumi.resource_type import Change, Inputs, ResourceType, regional
from multinic.lab.pulumi.rest import Document
from multinic.lab.pulumi.types.common import (
    DELETION_POLICY,
    DESCRIPTION,
    FLAG,
    NAME,
    PROJECT,
    REGION,
    ZONE,
    optional,
)


class _Target(Link):
    """A group; the plugin sends it with the base URL of the very API that it talks to."""

    def encode(self, value: Any, scope: Scope) -> Any:
        if value.startswith(("http://", "https://")):
            return value
        return scope.rest.url("compute", links.path_of(value))


def _replicas(name: str) -> Field:
    return Field(name, block(Field("fixed", Integer(0)), Field("percent", Integer(0, 100))))


_POLICY = block(
    Field("minReplicas", Integer(), "minNumReplicas", required=True),
    Field("maxReplicas", Integer(), "maxNumReplicas", required=True),
    Field("cooldownPeriod", Integer(), "coolDownPeriodSec", default=60),
    Field("stabilizationPeriod", Integer(), "stabilizationPeriodSec", computed=True),
    Field("mode", default="ON"),
    optional(
        "cpuUtilization",
        block(Field("target", Number(), "utilizationTarget", required=True), Field("predictiveMethod", default="NONE")),
    ),
    Field(
        "metrics",
        blocks(
            Field("name", to="metric", required=True),
            Field("type", Text(choices=("GAUGE", "DELTA_PER_SECOND", "DELTA_PER_MINUTE")), "utilizationTargetType"),
            Field("target", Number(), "utilizationTarget"),
            Field("singleInstanceAssignment", Number()),
            Field("filter"),
        ),
        "customMetricUtilizations",
    ),
    Field("scaleInControl", block(_replicas("maxScaledInReplicas"), Field("timeWindowSec", Integer()))),
    Field(
        "scalingSchedules",
        blocks(
            Field("name", required=True),
            Field("schedule", required=True),
            Field("durationSec", Integer(), required=True),
            Field("minRequiredReplicas", Integer(), required=True),
            Field("timeZone", default="Etc/UTC"),
            Field("description"),
            Field("disabled", FLAG),
            is_set=True,
        ),
    ),
)

_FIELDS = (
    NAME,
    PROJECT,
    DELETION_POLICY,
    DESCRIPTION,
    Field("target", _Target(), required=True),
    Field("autoscalingPolicy", _POLICY, required=True),
)


def _schedules_by_name(body: Document) -> Document:
    policy = body["autoscalingPolicy"]
    if "scalingSchedules" in policy:
        policy["scalingSchedules"] = {schedule.pop("name"): schedule for schedule in policy["scalingSchedules"]}
    return body


def _shape_zonal(body: Document, _inputs: Inputs, scope: Scope) -> Document:
    return _schedules_by_name(body) | {"zone": f"projects/{scope.project}/global/zones/{scope.zone}"}


def _shape_regional(body: Document, inputs: Inputs, scope: Scope) -> Document:
    return regional(_schedules_by_name(body), inputs, scope)


def _unshape(live: Document, _inputs: Inputs) -> Document:
    policy = dict(live.get("autoscalingPolicy") or {})
    if "scalingSchedules" in policy:
        policy["scalingSchedules"] = [{"name": name} | item for name, item in policy["scalingSchedules"].items()]
    return live | {"autoscalingPolicy": policy}


def _update(change: Change) -> None:
    kind = REGION_AUTOSCALER if "/regions/" in change.path else AUTOSCALER
    body = kind.shape(kind.fields.encode(change.new, change.scope), change.new, change.scope)
    place, _, name = change.path.rpartition("/")
    change.run("PUT", place, body, autoscaler=name)


AUTOSCALER = ResourceType(
    pulumi_type="gcp:compute/autoscaler:Autoscaler",
    collection="projects/{project}/zones/{zone}/autoscalers",
    fields=Fields((*_FIELDS, ZONE)),
    computed=("selfLink", "creationTimestamp"),
    shape=_shape_zonal,
    unshape=_unshape,
    update=_update,
)

REGION_AUTOSCALER = ResourceType(
    pulumi_type="gcp:compute/regionAutoscaler:RegionAutoscaler",
    collection="projects/{project}/regions/{region}/autoscalers",
    fields=Fields((*_FIELDS, REGION)),
    computed=("selfLink", "creationTimestamp"),
    shape=_shape_regional,
    unshape=_unshape,
    update=_update,
)

TYPES = (AUTOSCALER, REGION_AUTOSCALER)

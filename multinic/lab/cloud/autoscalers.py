"""Autoscalers.

https://cloud.google.com/compute/docs/autoscaler
"""

from __future__ import annotations

from typing import Any, ClassVar

from typing_extensions import override

from . import schedules
from .autoscaling import unknown_metrics
from .call import Answer, Call
from .errors import ApiError, required
from .links import key_of, split
from .references import Reference
from .resource import Resource
from .rules import DISCOVERY, at, between, holds, one_of
from .store import Object

_POLICY = "autoscalingPolicy."


def _schedules(value: Object) -> list[Any]:
    return list((at(value, _POLICY + "scalingSchedules") or {}).values())


RULES = (
    holds(
        _POLICY + "maxNumReplicas",
        "maxNumReplicas must not be smaller than minNumReplicas.",
        DISCOVERY + "AutoscalingPolicy.maxNumReplicas",
        lambda value: value["autoscalingPolicy"]["minNumReplicas"] <= value["autoscalingPolicy"]["maxNumReplicas"],
    ),
    between(_POLICY + "minNumReplicas", 0, 1000, DISCOVERY + "AutoscalingPolicy.minNumReplicas"),
    between(_POLICY + "maxNumReplicas", 1, 1000, DISCOVERY + "AutoscalingPolicy.maxNumReplicas"),
    between(_POLICY + "coolDownPeriodSec", 0, 3600, DISCOVERY + "AutoscalingPolicy.coolDownPeriodSec"),
    between(_POLICY + "stabilizationPeriodSec", 0, 3600, DISCOVERY + "AutoscalingPolicy.stabilizationPeriodSec"),
    holds(
        _POLICY + "cpuUtilization.utilizationTarget",
        "Must be above 0 and at most 1.",
        DISCOVERY + "AutoscalingPolicyCpuUtilization.utilizationTarget",
        lambda value: 0 < float(at(value, _POLICY + "cpuUtilization.utilizationTarget") or 0.6) <= 1,
    ),
    one_of(_POLICY + "mode", ("ON", "OFF", "ONLY_UP", "ONLY_SCALE_OUT"), DISCOVERY + "AutoscalingPolicy.mode"),
    holds(
        _POLICY + "scalingSchedules",
        "At most 128 schedules, each of at least 300 seconds.",
        DISCOVERY + "AutoscalingPolicyScalingSchedule.durationSec",
        lambda value: (
            len(_schedules(value)) <= 128
            and all(int(schedule.get("durationSec") or 0) >= 300 for schedule in _schedules(value))
        ),
    ),
    holds(
        _POLICY + "scalingSchedules",
        "schedule must be a cron expression of 5 or 6 fields, and timeZone the name of a time zone.",
        DISCOVERY + "AutoscalingPolicyScalingSchedule.schedule",
        lambda value: all(schedules.problem(schedule) is None for schedule in _schedules(value)),
    ),
    one_of(
        _POLICY + "cpuUtilization.predictiveMethod",
        ("NONE", "OPTIMIZE_AVAILABILITY"),
        DISCOVERY + "AutoscalingPolicyCpuUtilization.predictiveMethod",
    ),
)


class Autoscalers(Resource):
    """``autoscalers`` and ``regionAutoscalers``: keep a group's target size in its bounds."""

    collection = "autoscalers"
    noun = "autoscaler"
    kind = "autoscaler"
    served: ClassVar = {"zones": "autoscalers", "regions": "regionAutoscalers"}
    verbs = ("insert", "get", "list", "aggregatedList", "patch", "update", "delete", "testIamPermissions")
    references = (Reference("target", "instanceGroupManagers"),)
    rules = RULES

    @override
    def parameter_names(self) -> tuple[str, ...]:
        return ("autoscaler", "resource")

    @override
    def target(self, call: Call) -> str:
        # PUT and PATCH name the autoscaler in the query, or by the body's own name.
        if not any(name in call.params for name in self.parameter_names()):
            if not call.body.get("name"):
                raise required("name")
            self.cloud.require_place(call.scope)
            return self.key(call.scope, call.body["name"])
        return super().target(call)

    @override
    def complete(self, key: str, value: Object) -> None:
        if not value.get("target"):
            raise required("target")
        policy = value.get("autoscalingPolicy")
        if not policy:
            raise required("autoscalingPolicy")
        if policy.get("maxNumReplicas") is None:
            raise required(_POLICY + "maxNumReplicas")
        policy.setdefault("minNumReplicas", min(2, policy["maxNumReplicas"]))
        policy.setdefault("coolDownPeriodSec", 60)
        policy.setdefault("mode", "ON")
        signals = ("cpuUtilization", "customMetricUtilizations", "loadBalancingUtilization", "scalingSchedules")
        if not any(policy.get(name) for name in signals):
            policy["cpuUtilization"] = {}
        if "cpuUtilization" in policy:
            policy["cpuUtilization"].setdefault("utilizationTarget", 0.6)
            policy["cpuUtilization"].setdefault("predictiveMethod", "NONE")

    @override
    def check(self, key: str, value: Object, old: Object | None) -> None:
        group = key_of(value["target"])
        other = self.of(group)
        if other is not None and other != key:
            raise ApiError(
                400,
                "invalid",
                f"Invalid value for field 'resource.target': '{value['target']}'. The group already has the "
                f"autoscaler '{other}'.",
            )
        if split(group).scope != split(key).scope:
            raise ApiError(
                400,
                "invalid",
                f"Invalid value for field 'resource.target': '{value['target']}'. Not in '{key}'s place.",
            )

    @override
    def changed(self, key: str, value: Object, old: Object | None) -> None:
        self.apply_to(key_of(value["target"]))

    def of(self, group: str) -> str | None:
        """Key of a group's autoscaler, or None."""
        for user in self.store.users(group):
            if "/autoscalers/" in user:
                return user
        return None

    def bounds(self, group: str) -> tuple[int, int] | None:
        """Least and greatest size that a group's autoscaler allows; None without one that is on."""
        key = self.of(group)
        policy = self.store.require(key)["autoscalingPolicy"] if key else {}
        if policy.get("mode", "OFF") == "OFF":
            return None
        return policy["minNumReplicas"], policy["maxNumReplicas"]

    def apply_to(self, group: str) -> None:
        """Brings a group's target size into its autoscaler's bounds."""
        bounds = self.bounds(group)
        value = self.store.get(group)
        if bounds is None or value is None or value.get("_deleting"):
            return
        wanted = min(max(value["targetSize"], bounds[0]), bounds[1])
        if wanted != value["targetSize"]:
            self.cloud.events.add("group", group, "autoscaled", size=wanted)
            self.cloud.instance_group_managers.set_size(group, wanted)

    @override
    def view(self, key: str, value: Object) -> Answer:
        group = self.store.get(key_of(value["target"])) or {}
        answer = {**super().view(key, value), "status": "ACTIVE", "recommendedSize": group.get("targetSize", 0)}
        planned = at(value, _POLICY + "scalingSchedules")
        if planned:
            answer["scalingScheduleStatus"] = schedules.status(planned, self.cloud.clock.wall())
        unknown = unknown_metrics(value)
        if unknown:
            answer["status"] = "ERROR"
            answer["statusDetails"] = [
                {"type": "CUSTOM_METRIC_DOES_NOT_EXIST", "message": f"The lab does not measure {', '.join(unknown)}."}
            ]
        return answer

"""Rules of the number of VMs. See `rules` for the columns."""

from collections.abc import Iterable

from multinic.settings import Autoscaled, AutoscalerSettings, Fixed, RouterSettings, Standby

_BACKENDS = "https://docs.cloud.google.com/load-balancing/docs/backend-service"
_AUTOSCALER = "https://docs.cloud.google.com/compute/docs/autoscaler"
_METRICS = "https://docs.cloud.google.com/compute/docs/autoscaler/scaling-cloud-monitoring-metrics"
_GROUP_SIZE = 1000
"""VMs in a group at most: https://docs.cloud.google.com/compute/docs/reference/rest/v1/instanceGroupManagers"""
_STANDBY = "https://docs.cloud.google.com/compute/docs/instance-groups/suspended-and-stopped-vms-in-mig"

_SIZE = ("replicas.min", "replicas.max")

Findings = Iterable[tuple[str, ...]]


def _replicas(settings: RouterSettings) -> Findings:
    replicas = settings.fleet.replicas
    if isinstance(replicas, Autoscaled):
        if replicas.min < 1:
            yield "replicas.min", "0 switches the fleet off and has no max; give at least 1 to autoscale"
        if replicas.max < replicas.min:
            yield "replicas.max", f"{replicas.max} is less than replicas.min, {replicas.min}", "replicas.min"


def _backends(settings: RouterSettings) -> Findings:
    replicas = settings.fleet.replicas
    # Zones that are looked up are one at least; when they are known, the fleet is judged again.
    zones = 1 if settings.fleet.zones is None else len(settings.fleet.zones)
    most = replicas.max if isinstance(replicas, Autoscaled) else replicas.size
    if most * zones > 250:
        path = "replicas.max" if isinstance(replicas, Autoscaled) else "replicas.min"
        where = f"in each of {zones} zones" if zones > 1 else "in a zone"
        yield path, f"{most} VMs {where}; a load balancer takes at most 250 in all", *_SIZE


def _autoscaler_used(settings: RouterSettings) -> Findings:
    fixed = isinstance(settings.fleet.replicas, Fixed)
    if fixed and settings.fleet.autoscaler != AutoscalerSettings():
        message = "has no effect with a fixed number of replicas; give replicas.max, or leave it out"
        yield "autoscaler", message, *_SIZE


def _schedules(settings: RouterSettings) -> Findings:
    schedules, replicas = settings.fleet.autoscaler.schedules, settings.fleet.replicas
    names = [schedule.name for schedule in schedules]
    if len(schedules) > 128:
        yield "autoscaler.schedules", f"{len(schedules)} schedules; an autoscaler has at most 128"
    for i, schedule in enumerate(schedules):
        path = f"autoscaler.schedules[{i}]"
        if schedule.name in names[:i]:
            yield f"{path}.name", f"{schedule.name} is given twice"
        if isinstance(replicas, Autoscaled) and schedule.min_replicas > replicas.max:
            message = f"{schedule.min_replicas} is more than replicas.max, {replicas.max}"
            yield f"{path}.min_replicas", message, *_SIZE


def _metrics(settings: RouterSettings) -> Findings:
    names: list[str] = []
    for i, metric in enumerate(settings.fleet.autoscaler.metrics):
        path = f"autoscaler.metrics[{i}]"
        if (metric.target is None) == (metric.single_instance_assignment is None):
            message = "give either target or single_instance_assignment"
            yield path, message, f"{path}.target", f"{path}.single_instance_assignment"
        if metric.name in names:
            yield f"{path}.name", f"{metric.name} is given twice"
        names.append(metric.name)


def _standby(settings: RouterSettings) -> Findings:
    standby, replicas = settings.fleet.standby, settings.fleet.replicas
    kept = standby.stopped + standby.suspended
    if isinstance(replicas, Fixed):
        if standby != Standby():
            yield "standby", "has no effect with a fixed number of replicas, which never scales out", *_SIZE
    elif not kept and standby.initial_delay_sec != Standby.initial_delay_sec:
        message = "has no effect without stopped or suspended VMs"
        yield "standby.initial_delay_sec", message, "standby.stopped", "standby.suspended", *_SIZE
    elif kept and replicas.max + kept > _GROUP_SIZE:
        message = f"{kept} VMs and replicas.max, {replicas.max}, are more than a group's {_GROUP_SIZE}"
        yield "standby", message, *_SIZE
    if standby.suspended and settings.fleet.machine.confidential:
        yield "standby.suspended", "a confidential VM cannot be suspended; give stopped"


SCALING_RULES = (
    ("backends", _BACKENDS, "A backend service has at most 250 VMs.", _backends),
    ("replicas", _AUTOSCALER, "1 ≤ min ≤ max.", _replicas),
    (
        "autoscaler-used",
        "an input is never ignored",
        "Numbers for an autoscaler only where there is one.",
        _autoscaler_used,
    ),
    ("schedules", _AUTOSCALER, "Schedules are distinct and within max.", _schedules),
    ("metrics", _METRICS, "Each metric once, with one number.", _metrics),
    ("standby", _STANDBY, "VMs on standby where they are used.", _standby),
)

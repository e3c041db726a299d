"""Rules of the number of VMs. See `rules` for the columns."""

from collections.abc import Iterable

from multinic.settings import Autoscaled, AutoscalerSettings, Fixed, RouterSettings, Standby

_BACKENDS = "https://docs.cloud.google.com/load-balancing/docs/backend-service"
_AUTOSCALER = "https://docs.cloud.google.com/compute/docs/autoscaler"
_METRICS = "https://docs.cloud.google.com/compute/docs/autoscaler/scaling-cloud-monitoring-metrics"
_GROUP_SIZE = 1000
"""VMs in a group at most: https://docs.cloud.google.com/compute/docs/reference/rest/v1/instanceGroupManagers"""
_STANDBY = "https://docs.cloud.google.com/compute/docs/instance-groups/suspended-and-stopped-vms-in-mig"

Findings = Iterable[tuple[str, str]]


def _replicas(settings: RouterSettings) -> Findings:
    replicas = settings.fleet.replicas
    if isinstance(replicas, Autoscaled):
        if replicas.min < 1:
            yield "replicas.min", "0 switches the fleet off and has no max; give at least 1 to autoscale"
        if replicas.max < replicas.min:
            yield "replicas.max", f"{replicas.max} is less than replicas.min, {replicas.min}"


def _backends(settings: RouterSettings) -> Findings:
    replicas = settings.fleet.replicas
    # Zones that are looked up are one at least; when they are known, the fleet is judged again.
    zones = 1 if settings.fleet.zones is None else len(settings.fleet.zones)
    most = replicas.max if isinstance(replicas, Autoscaled) else replicas.size
    if most * zones > 250:
        path = "replicas.max" if isinstance(replicas, Autoscaled) else "replicas.min"
        where = f"in each of {zones} zones" if zones > 1 else "in a zone"
        yield path, f"{most} VMs {where}; a load balancer takes at most 250 in all"


def _autoscaler_used(settings: RouterSettings) -> Findings:
    fixed = isinstance(settings.fleet.replicas, Fixed)
    if fixed and settings.fleet.autoscaler != AutoscalerSettings():
        yield "autoscaler", "has no effect with a fixed number of replicas; give replicas.max, or leave it out"


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
            yield f"{path}.min_replicas", f"{schedule.min_replicas} is more than replicas.max, {replicas.max}"


def _metrics(settings: RouterSettings) -> Findings:
    names: list[str] = []
    for i, metric in enumerate(settings.fleet.autoscaler.metrics):
        path = f"autoscaler.metrics[{i}]"
        if (metric.target is None) == (metric.single_instance_assignment is None):
            yield path, "give either target or single_instance_assignment"
        if metric.name in names:
            yield f"{path}.name", f"{metric.name} is given twice"
        names.append(metric.name)


def _standby(settings: RouterSettings) -> Findings:
    standby, replicas = settings.fleet.standby, settings.fleet.replicas
    kept = standby.stopped + standby.suspended
    if isinstance(replicas, Fixed):
        if standby != Standby():
            yield "standby", "has no effect with a fixed number of replicas, which never scales out"
    elif not kept and standby.initial_delay_sec != Standby.initial_delay_sec:
        yield "standby.initial_delay_sec", "has no effect without stopped or suspended VMs"
    elif kept and replicas.max + kept > _GROUP_SIZE:
        yield (
            "standby",
            f"{kept} VMs and replicas.max, {replicas.max}, are more than a group's {_GROUP_SIZE}",
        )
    if standby.suspended and settings.fleet.machine.confidential:
        yield "standby.suspended", "a confidential VM cannot be suspended; give stopped"


SCALING_RULES = (
    ("backends", _BACKENDS, "A backend service has at most 250 VMs.", ("replicas", "zones"), _backends),
    ("replicas", _AUTOSCALER, "1 ≤ min ≤ max.", ("replicas",), _replicas),
    (
        "autoscaler-used",
        "an input is never ignored",
        "Numbers for an autoscaler only where there is one.",
        ("replicas", "autoscaler"),
        _autoscaler_used,
    ),
    ("schedules", _AUTOSCALER, "Schedules are distinct and within max.", ("replicas", "autoscaler"), _schedules),
    ("metrics", _METRICS, "Each metric once, with one number.", ("autoscaler",), _metrics),
    ("standby", _STANDBY, "VMs on standby where they are used.", ("standby", "replicas", "machine"), _standby),
)

"""Inputs that say how many router VMs there are → settings. See `parsing` for what holds for all inputs."""

from multinic import machines, naming, schedules
from multinic.reading import Section, shown
from multinic.settings import (
    BOOT_BUDGET_SEC,
    Autoscaled,
    AutoscalerSettings,
    Fixed,
    Metric,
    Replicas,
    Schedule,
    Standby,
)

_METRIC_FORM = "a metric's type, such as compute.googleapis.com/instance/network/sent_bytes_count"


def replicas(section: Section) -> Replicas:
    """Reads how many VMs a zone has."""
    low = section.integer("min", Autoscaled.min, 0, 1000)
    high = section.optional_integer("max", 1, 1000)
    only_min = section.has("min") and not section.has("max")
    section.done()
    if only_min:
        return Fixed(low)
    return Autoscaled(low, Autoscaled.max if high is None else high)


def standby(section: Section) -> Standby:
    """Reads how many VMs are kept ready."""
    settings = Standby(
        stopped=section.integer("stopped", Standby.stopped, 0, 1000),
        suspended=section.integer("suspended", Standby.suspended, 0, 1000),
        initial_delay_sec=section.integer("initial_delay_sec", Standby.initial_delay_sec, BOOT_BUDGET_SEC, 3600, "s"),
    )
    section.done()
    return settings


def autoscaler(section: Section) -> AutoscalerSettings:
    """Reads the numbers of the autoscalers."""
    default = AutoscalerSettings()
    scale_in = section.section("scale_in")
    settings = AutoscalerSettings(
        cpu_target=section.optional_number("cpu_target", machines.LEAST_CPU_TARGET, 1),
        cooldown_sec=section.integer("cooldown_sec", default.cooldown_sec, 15, 600, "s"),
        stabilization_sec=section.integer("stabilization_sec", default.stabilization_sec, 60, 3600, "s"),
        scale_in_max_replicas=scale_in.integer("max_replicas", default.scale_in_max_replicas, 0, 1000),
        scale_in_window_sec=scale_in.integer("window_sec", default.scale_in_window_sec, 60, 3600, "s"),
        mode=section.choice("mode", default.mode),
        predictive=section.choice("predictive", default.predictive),
        schedules=tuple(_schedule(one) for one in section.sections("schedules", required=False)),
        metrics=tuple(_metric(one) for one in section.sections("metrics", required=False)),
    )
    scale_in.done()
    section.done()
    return settings


def _schedule(section: Section) -> Schedule:
    settings = Schedule(
        name=section.text("name", pattern=naming.NAME, form=naming.NAME_FORM),
        schedule=section.text("schedule"),
        duration_sec=section.integer("duration_sec", None, 300, 7 * 24 * 3600, "s"),
        min_replicas=section.integer("min_replicas", None, 0, 1000),
        time_zone=section.text("time_zone", Schedule.time_zone),
    )
    section.done()
    if settings.schedule and (wrong := schedules.wrong_with(settings.schedule)):
        section.problems.add(section.at("schedule"), wrong)
    if not schedules.is_time_zone(settings.time_zone):
        said = f"{shown(settings.time_zone)} is not an IANA time zone such as Europe/Berlin"
        section.problems.add(section.at("time_zone"), said)
    return settings


def _metric(section: Section) -> Metric:
    settings = Metric(
        name=section.text("name", pattern=r"[a-z][\w.-]*\.[a-z]+(?:/[\w.-]+)+", form=_METRIC_FORM),
        target=_above_zero(section, "target"),
        single_instance_assignment=_above_zero(section, "single_instance_assignment"),
        type=section.choice("type", Metric.type),
        filter=section.text("filter", ""),
    )
    section.done()
    return settings


def _above_zero(section: Section, key: str) -> float | None:
    value = section.optional_number(key, 0, 1e15)
    if value == 0 and not section.problems.touch(section.at(key)):
        section.problems.add(section.at(key), "0 is never reached; give a number above it")
    return value

"""RouterFleet: the router VMs. One template, one group and autoscaler in each zone, one heal check.

A group per zone, not one for the region: every zone keeps a floor of its own, and nothing is moved between zones.
"""

from dataclasses import replace
from typing import Any, NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from multinic import checks, machines, naming, parsing, rules, template, zones
from multinic.args import HealthArgs, MachineArgs, NetworkArgs, UpdatesArgs
from multinic.args_scaling import AutoscalerArgs, ReplicasArgs, StandbyArgs
from multinic.choices import UpdateType
from multinic.problems import Problems
from multinic.settings import BOOT_BUDGET_SEC, Autoscaled, AutoscalerSettings, Fixed, FleetSettings, RouterSettings


class RouterFleetArgs(TypedDict):
    """Inputs of `RouterFleet`, the VMs alone. Written out, since schema inference sees no inherited docstrings."""

    region: str
    """Region of the VMs."""
    networks: list[NetworkArgs]
    """Networks in the order of the NICs. No routes or firewall rules are made in them."""
    zones: NotRequired[list[str]]
    """Zones, one group of VMs each. Default: looked up."""
    project: NotRequired[str]
    """Project of the VMs. Default: the provider's."""
    machine: MachineArgs
    """The VMs."""
    replicas: NotRequired[ReplicasArgs]
    """VMs a zone. Default autoscaled from 1 to 4."""
    autoscaler: NotRequired[AutoscalerArgs]
    """Numbers of the autoscalers."""
    standby: NotRequired[StandbyArgs]
    """VMs kept ready for scale-out. Default none."""
    health: NotRequired[HealthArgs]
    """The two health checks; of the traffic check, only what the VMs must know is used."""
    updates: NotRequired[UpdatesArgs]
    """How changes reach the VMs."""
    labels: NotRequired[dict[str, str]]
    """Labels of template and disks."""
    generation: NotRequired[str]
    """Prefix of all names. Default none."""
    service_account: pulumi.Input[str]
    """E-mail of the VMs' service account."""
    scopes: NotRequired[list[str]]
    """OAuth scopes of the VMs. Default https://www.googleapis.com/auth/logging.write."""
    draining_sec: NotRequired[int]
    """The load balancers' draining time, by which each deletion of a VM is delayed. Default 30."""


class RouterFleet(pulumi.ComponentResource):
    """Router VMs in several zones, healed, scaled and replaced by managed instance groups.

    Usable alone, where load balancers and routes are made by other means. Does not make: a service account, firewall
    rules, the traffic check.
    """

    template: pulumi.Output[str]
    """Link of the instance template in use, with its unique id."""
    heal_check: pulumi.Output[str]
    """Link of the health check that decides about re-creation."""
    groups: pulumi.Output[dict[str, str]]
    """Zone → link of its instance group, as a backend service wants it."""
    managers: pulumi.Output[dict[str, str]]
    """Zone → link of its instance group manager."""

    def __init__(self, name: str, args: RouterFleetArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        problems = Problems()
        settings = parsing.fleet(args, problems)
        problems.raise_if_any()
        super().__init__("multinic:index:RouterFleet", name, {}, opts)
        settings = with_zones(settings, self)
        self._settings, self.zones = settings, settings.zones or ()
        # What the component waits for, its groups wait for: an option of a component does not reach its children.
        self._after = opts.depends_on if opts else None
        self._names = naming.prefix(name, settings.generation)

        self._heal_check = checks.global_check(
            naming.child(self._names, "heal"),
            settings.health.heal,
            log=settings.health.log,
            project=settings.project or None,
            opts=self._child(),
        )
        self._template = template.declare(
            naming.child(self._names, "template"), settings, self, keep_old=not waits(settings)
        )
        self.managers_by_zone = {zone: self._manager(zone) for zone in self.zones}
        if isinstance(settings.replicas, Autoscaled):
            self._warn_if_never_reached(settings)
            for zone, manager in self.managers_by_zone.items():
                self._autoscaler(zone, manager, settings.replicas, settings.autoscaler, settings.cpu_target)

        self.template = self._template.self_link_unique
        self.heal_check = self._heal_check.self_link
        self.groups = pulumi.Output.all(**{zone: m.instance_group for zone, m in self.managers_by_zone.items()})
        self.managers = pulumi.Output.all(**{zone: m.self_link for zone, m in self.managers_by_zone.items()})
        self.register_outputs(
            {
                "template": self.template,
                "heal_check": self.heal_check,
                "groups": self.groups,
                "managers": self.managers,
            }
        )

    def _child(self, **options: Any) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, **options)

    def _manager(self, zone: str) -> gcp.compute.InstanceGroupManager:
        settings = self._settings
        updates, health = settings.updates, settings.health
        seconds = timeout_sec(settings)
        timeouts = pulumi.CustomTimeouts(create=f"{seconds}s", update=f"{seconds}s", delete=f"{seconds}s")
        return gcp.compute.InstanceGroupManager(
            naming.child(self._names, "group", zone),
            project=settings.project or None,
            zone=zone,
            base_instance_name=naming.vm_prefix(self._names, zone),
            versions=[{"instance_template": self._template.self_link_unique}],
            # An autoscaler owns the size where there is one; a size given here would fight it at every deployment.
            target_size=settings.replicas.size if isinstance(settings.replicas, Fixed) else None,
            named_ports=[
                {"name": "hc-health", "port": health.heal.port},
                {"name": "hc-traffic", "port": health.traffic.port},
            ],
            auto_healing_policies={
                "health_check": self._heal_check.self_link,
                "initial_delay_sec": health.initial_delay_sec,
            },
            update_policy={
                "type": updates.type.value,
                "minimal_action": updates.minimal_action.value,
                "most_disruptive_allowed_action": "REPLACE",
                "replacement_method": "SUBSTITUTE",
                "max_surge_fixed": updates.max_surge,
                "max_unavailable_fixed": updates.max_unavailable,
                "min_ready_sec": updates.min_ready_sec,
            },
            **standby(settings),
            # A repaired VM comes back as it was: while a bad template waits at its first VM, repairs do not spread it.
            instance_lifecycle_policy={"force_update_on_repair": "NO", "default_action_on_failure": "REPAIR"},
            wait_for_instances=waits(settings),
            wait_for_instances_status="UPDATED" if waits(settings) else None,
            opts=self._child(custom_timeouts=timeouts, depends_on=self._after),
        )

    def _warn_if_never_reached(self, settings: FleetSettings) -> None:
        """Says so when VMs are at the cap of their bandwidth before their CPU use is at the autoscalers' target."""
        machine, target = settings.machine, settings.cpu_target
        share, suited = machine.cpu_at_cap, machines.cpu_target(machine.cpu_at_cap)
        if share is None or target <= share or settings.autoscaler.metrics:
            return
        fewer = "give a machine type with fewer vCPUs, or follow the bytes that VMs send (autoscaler.metrics)"
        pulumi.log.warn(
            f"autoscaler.cpu_target: {target:g} may never be reached: forwarding all that a VM may send takes about "
            f"{share:.1%} of an {machine.type}'s CPU; {f'{suited:g} suits it' if suited < share else fewer}",
            self,
        )

    def _autoscaler(
        self,
        zone: str,
        manager: gcp.compute.InstanceGroupManager,
        replicas: Autoscaled,
        numbers: AutoscalerSettings,
        target: float,
    ) -> None:
        gcp.compute.Autoscaler(
            naming.child(self._names, "autoscaler", zone),
            project=self._settings.project or None,
            zone=zone,
            target=manager.self_link,
            autoscaling_policy={
                "min_replicas": replicas.min,
                "max_replicas": replicas.max,
                "mode": numbers.mode.value,
                "cooldown_period": numbers.cooldown_sec,
                "stabilization_period": numbers.stabilization_sec,
                "cpu_utilization": {"target": target, "predictive_method": numbers.predictive.value},
                "scale_in_control": {
                    "max_scaled_in_replicas": {"fixed": numbers.scale_in_max_replicas},
                    "time_window_sec": numbers.scale_in_window_sec,
                },
                "scaling_schedules": [
                    {
                        "name": schedule.name,
                        "schedule": schedule.schedule,
                        "duration_sec": schedule.duration_sec,
                        "min_required_replicas": schedule.min_replicas,
                        "time_zone": schedule.time_zone,
                    }
                    for schedule in numbers.schedules
                ]
                or None,
                "metrics": [
                    {
                        "name": metric.name,
                        "type": metric.type.value,
                        "target": metric.target,
                        "single_instance_assignment": metric.single_instance_assignment,
                        "filter": metric.filter or None,
                    }
                    for metric in numbers.metrics
                ]
                or None,
            },
            opts=self._child(),
        )


def with_zones(settings: FleetSettings, parent: pulumi.Resource) -> FleetSettings:
    """Returns the settings with the zones looked up where none are given.

    Raises:
        InputError: There is no zone, or with these zones there are too many VMs.
    """
    found = replace(settings, zones=zones.resolve(settings.zones, settings.region, settings.project or None, parent))
    rules.check(RouterSettings(found), problems := Problems(), only=("backends",))
    problems.raise_if_any()
    return found


def standby(settings: FleetSettings) -> dict[str, Any]:
    """Returns a group's inputs for VMs on standby. None of them is said as well: what is left out stays as it was."""
    wanted = settings.standby
    found: dict[str, Any] = {"target_stopped_size": wanted.stopped, "target_suspended_size": wanted.suspended}
    if wanted.stopped + wanted.suspended:
        found["standby_policy"] = {"mode": "SCALE_OUT_POOL", "initial_delay_sec": wanted.initial_delay_sec}
    return found


def waits(settings: FleetSettings) -> bool:
    """Whether a deployment waits for its groups.

    Where it does not, a group may still use the template that was replaced, so that one must not be deleted.
    """
    return settings.updates.wait and settings.updates.type is UpdateType.PROACTIVE


def timeout_sec(settings: FleetSettings) -> int:
    """Returns how long a group may take: each VM in turn boots, proves itself and drains, with a spare half."""
    replicas = settings.replicas
    size = replicas.max if isinstance(replicas, Autoscaled) else replicas.size
    updates, health = settings.updates, settings.health
    one = (
        BOOT_BUDGET_SEC
        + max(health.initial_delay_sec, health.heal.interval_sec * health.heal.healthy_threshold)
        + updates.min_ready_sec
        + settings.draining_sec
        + health.drain_sec
    )
    at_once = max(1, updates.max_surge + updates.max_unavailable)
    return 600 + 3 * one * -(-size // at_once) // 2

"""NextHop: the internal passthrough load balancer of one network, to be the next hop of that network's routes.

It carries every protocol, whatever its rule names: TCP with all ports. L3_DEFAULT would be accepted and its packets
dropped silently. https://docs.cloud.google.com/load-balancing/docs/internal/ilb-next-hop-overview
"""

from dataclasses import dataclass
from typing import NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from multinic import naming, parsing, rules
from multinic.args import NextHopPolicyArgs
from multinic.choices import ZonalAffinity
from multinic.problems import Problems
from multinic.reading import Section
from multinic.settings import FleetSettings, MachineSettings, NetworkSettings, NextHopPolicy, RouterSettings
from multinic.zones import REGION

_RULES = (
    *("link-form", "subnet-region", "address-fits", "zone-fits", "labels"),
    *("persistence", "tracking", "failover", "zonal-affinity", "stateful"),
)
_NAMES = {"next_hop": "policy", "zones": "groups"}


class NextHopArgs(TypedDict):
    """Inputs of `NextHop`: the load balancer of one network."""

    region: str
    """Region of the routers."""
    network: pulumi.Input[str]
    """Full link of the VPC network."""
    subnetwork: pulumi.Input[str]
    """Full link of the subnetwork that the address is in."""
    groups: dict[str, pulumi.Input[str]]
    """Zone → link of its instance group. Every network must have the same ones."""
    health_check: pulumi.Input[str]
    """Link of the traffic check."""
    policy: NotRequired[NextHopPolicyArgs]
    """How connections are spread and moved; the same in every network."""
    address: NotRequired[pulumi.Input[str]]
    """Existing internal IPv4 address. Default: one is reserved."""
    project: NotRequired[str]
    """Project of the load balancer. Default: the provider's."""
    labels: NotRequired[dict[str, str]]
    """Labels of address and forwarding rule."""


@dataclass(frozen=True)
class NextHopSettings:
    """The inputs, checked."""

    region: str
    network: pulumi.Input[str]
    subnetwork: pulumi.Input[str]
    groups: dict[str, pulumi.Input[str]]
    health_check: pulumi.Input[str]
    policy: NextHopPolicy
    address: pulumi.Input[str]
    project: str
    labels: dict[str, str]


def parse(args: object, problems: Problems) -> NextHopSettings:
    """Reads the inputs of `NextHop`; the rules of a whole router judge what it has in common with one."""
    top = Section(args, "", problems)
    groups = top.section("groups")
    settings = NextHopSettings(
        region=top.text("region", pattern=REGION, form="a region such as us-central1"),
        network=top.link("network"),
        subnetwork=top.link("subnetwork"),
        groups={zone: groups.link(zone) for zone in groups.given()},
        health_check=top.link("health_check"),
        policy=parsing.next_hop(top.section("policy")),
        address=top.link("address", required=False),
        project=top.text("project", "", pattern=naming.PROJECT, form="a project id"),
        labels=top.pairs("labels"),
    )
    top.done()
    if not settings.groups and not top.is_broken and not problems.touch("groups"):
        problems.add("groups", "is empty; give the instance group of every zone")
    network = NetworkSettings(settings.network, settings.subnetwork, (), address=settings.address)
    zones = tuple(map(str, settings.groups))
    fleet = FleetSettings(settings.region, (network,), zones, MachineSettings(), labels=settings.labels)
    if not top.is_broken:
        rules.check(RouterSettings(fleet, settings.policy), problems, called=_here, only=_RULES)
    return settings


def _here(path: str) -> str:
    """Returns what a router's input is called here."""
    head, _, rest = path.removeprefix("networks[0].").partition(".")
    return ".".join(part for part in (_NAMES.get(head.partition("[")[0], head), rest) if part)


class NextHop(pulumi.ComponentResource):
    """Address, backend service and forwarding rule in one network. Does not make: groups, checks, routes."""

    address: pulumi.Output[str]
    """Its internal IPv4 address."""
    forwarding_rule: pulumi.Output[str]
    """Link of the forwarding rule: the next hop of routes."""
    backend_service: pulumi.Output[str]
    """Link of the backend service."""

    def __init__(self, name: str, args: NextHopArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        problems = Problems()
        settings = parse(args, problems)
        problems.raise_if_any()
        super().__init__("multinic:index:NextHop", name, {}, opts)

        region, project, labels = settings.region, settings.project or None, settings.labels
        network, subnetwork, policy, given = settings.network, settings.subnetwork, settings.policy, settings.address

        failover: gcp.compute.RegionBackendServiceFailoverPolicyArgsDict = {"failover_ratio": policy.failover_ratio}
        if policy.drop_if_unhealthy:
            failover["drop_traffic_if_unhealthy"] = True
        # Off is said as well: what is left out stays as it was.
        log: gcp.compute.RegionBackendServiceLogConfigArgsDict = {"enable": policy.log_sample_rate > 0}
        if policy.log_sample_rate:
            log["sample_rate"] = policy.log_sample_rate
        service = gcp.compute.RegionBackendService(
            naming.child(name, "backend"),
            project=project,
            region=region,
            network=network,
            load_balancing_scheme="INTERNAL",
            protocol="TCP",
            health_checks=settings.health_check,
            session_affinity=policy.session_affinity.value,
            connection_tracking_policy=tracking(policy),
            connection_draining_timeout_sec=policy.draining_sec,
            # CONNECTION is the only mode that works here; the provider's default, UTILIZATION, is refused.
            backends=[
                {"group": group, "balancing_mode": "CONNECTION", "failover": zone in policy.failover_zones}
                for zone, group in sorted(settings.groups.items())
            ],
            failover_policy=failover if policy.failover_zones else None,
            network_pass_through_lb_traffic_policy=zonal_affinity(policy),
            log_config=log,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.address = (
            pulumi.Output.from_input(given) if given else self._reserve(name, region, subnetwork, project, labels)
        )
        rule = gcp.compute.ForwardingRule(
            naming.child(name, "rule"),
            project=project,
            region=region,
            network=network,
            subnetwork=subnetwork,
            load_balancing_scheme="INTERNAL",
            backend_service=service.self_link,
            ip_address=self.address,
            ip_protocol="TCP",
            all_ports=True,
            allow_global_access=policy.global_access,
            labels=labels or None,
            # The address is one: a second rule cannot have it while the first one lives.
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
        )
        self.forwarding_rule = rule.self_link
        self.backend_service = service.self_link
        self.register_outputs(
            {
                "address": self.address,
                "forwarding_rule": self.forwarding_rule,
                "backend_service": self.backend_service,
            }
        )

    def _reserve(
        self, name: str, region: str, subnetwork: pulumi.Input[str], project: str | None, labels: dict[str, str]
    ) -> pulumi.Output[str]:
        """Reserves an address, so that a replaced rule comes back with the same one."""
        reserved = gcp.compute.Address(
            naming.child(name, "address"),
            project=project,
            region=region,
            subnetwork=subnetwork,
            address_type="INTERNAL",
            purpose="GCE_ENDPOINT",
            labels=labels or None,
            opts=pulumi.ResourceOptions(parent=self),
        )
        return reserved.address


def zonal_affinity(
    policy: NextHopPolicy,
) -> gcp.compute.RegionBackendServiceNetworkPassThroughLbTrafficPolicyArgsDict | None:
    """Returns which zones' routers are preferred; None, which is Google Cloud's default, where none are."""
    if policy.zonal_affinity is ZonalAffinity.DISABLED:
        return None
    wanted: gcp.compute.RegionBackendServiceNetworkPassThroughLbTrafficPolicyZonalAffinityArgsDict = {
        "spillover": policy.zonal_affinity.value
    }
    if policy.spillover_ratio is not None:
        wanted["spillover_ratio"] = policy.spillover_ratio
    return {"zonal_affinity": wanted}


def tracking(policy: NextHopPolicy) -> gcp.compute.RegionBackendServiceConnectionTrackingPolicyArgsDict:
    """Returns the connection tracking policy, every number of it written out."""
    result: gcp.compute.RegionBackendServiceConnectionTrackingPolicyArgsDict = {
        "tracking_mode": policy.tracking_mode.value,
        "connection_persistence_on_unhealthy_backends": policy.persistence.value,
    }
    if policy.idle_timeout_sec is not None:
        result["idle_timeout_sec"] = policy.idle_timeout_sec
    return result

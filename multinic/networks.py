"""RoutedNetworks: VPC networks with one subnetwork each, to try a router on. Real networks belong to their owners."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from multinic import naming
from multinic.args import NetworkArgs
from multinic.naming import NAME, NAME_FORM, PROJECT
from multinic.problems import Problems
from multinic.reading import UNREADABLE, Section, read_cidr, shown
from multinic.rules_network import judge_subnet
from multinic.zones import REGION

DEFAULT_MTU = 1460
"""https://docs.cloud.google.com/vpc/docs/mtu"""


class RoutedNetworkArgs(TypedDict):
    """One VPC network to try the router on."""

    name: str
    """Its name within the component."""
    cidr: str
    """Range of its one subnetwork."""
    mtu: NotRequired[int]
    """MTU in bytes, 1300 to 8896. Default 1460, Google Cloud's own."""
    more_subnets: NotRequired[dict[str, str]]
    """Other regions → range of the network's subnetwork there. Default none."""
    cidrs: NotRequired[list[str]]
    """Ranges that the router announces as reachable through it. Default: `cidr`."""


class RoutedNetworksArgs(TypedDict):
    """Inputs of `RoutedNetworks`."""

    region: str
    """Region of the subnetworks."""
    networks: list[RoutedNetworkArgs]
    """The networks, in the order of the router's NICs."""
    project: NotRequired[str]
    """Project of the networks. Default: the provider's."""


@dataclass(frozen=True)
class RoutedNetwork:
    """One network to make."""

    name: str
    cidr: IPv4Network
    more_subnets: Mapping[str, IPv4Network]
    mtu: int
    cidrs: tuple[IPv4Network, ...]

    def router_network(self, network: pulumi.Input[str], subnetwork: pulumi.Input[str]) -> NetworkArgs:
        """Returns what a router must be told about it."""
        return NetworkArgs(
            network=network,
            subnetwork=subnetwork,
            cidrs=[str(cidr) for cidr in self.cidrs],
            subnet_cidrs=[str(self.cidr)],
        )


@dataclass(frozen=True)
class RoutedNetworksSettings:
    """All of them."""

    region: str
    networks: tuple[RoutedNetwork, ...]
    project: str


def parse(args: object, problems: Problems, path: str = "") -> RoutedNetworksSettings:
    """Reads the inputs of `RoutedNetworks`."""
    top = Section(args, path, problems)
    made: list[RoutedNetwork] = []
    taken: dict[str, IPv4Network] = {}
    for section in top.sections("networks"):
        cidr = _subnet(section, "cidr", taken)
        network = RoutedNetwork(
            name=section.text("name", pattern=NAME, form=NAME_FORM),
            cidr=cidr,
            more_subnets=_more_subnets(section.section("more_subnets"), taken),
            mtu=section.integer("mtu", DEFAULT_MTU, 1300, 8896, "bytes"),
            cidrs=section.cidrs("cidrs", [str(cidr)]),
        )
        section.done()
        if network.name and network.name in {other.name for other in made}:
            problems.add(section.at("name"), f"{network.name} is given twice")
        made.append(network)
    settings = RoutedNetworksSettings(
        region=top.text("region", pattern=REGION, form="a region such as us-central1"),
        networks=tuple(made),
        project=top.text("project", "", pattern=PROJECT, form="a project id"),
    )
    top.done()
    for index, network in enumerate(made):
        if settings.region in network.more_subnets:
            where = f"{top.at('networks')}[{index}].more_subnets.{settings.region}"
            problems.add(where, "is the region itself, whose range is cidr")
    return settings


def _subnet(section: Section, key: str, taken: dict[str, IPv4Network]) -> IPv4Network:
    """Reads a subnetwork's range and compares it with all before."""
    path = section.at(key)
    text = section.text(key)
    given = read_cidr(text, path, section.problems) if text else UNREADABLE
    if given == UNREADABLE:
        return given
    section.problems.add_all(judge_subnet(path, given), rule="subnet-apart")
    for where, other in taken.items():
        if given.overlaps(other):
            section.problems.add(path, f"{given} overlaps {other} ({where})")
    taken[path] = given
    return given


def _more_subnets(section: Section, taken: dict[str, IPv4Network]) -> dict[str, IPv4Network]:
    found = {}
    for region in section.given():
        if not isinstance(region, str) or not re.fullmatch(REGION, region):
            section.problems.add(section.at(region), f"{shown(region)} is not a region such as us-central1")
        found[str(region)] = _subnet(section, region, taken)
    return found


class RoutedNetworks(pulumi.ComponentResource):
    """VPC networks with a subnetwork each, or one in each of several regions.

    Does not make: firewall rules (the router and the endpoints bring their own), NAT, peering.
    """

    networks: pulumi.Output[list[str]]
    """Links of the networks, in the order given."""
    subnetworks: pulumi.Output[list[str]]
    """Links of their subnetworks in the region."""

    def __init__(self, name: str, args: RoutedNetworksArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        problems = Problems()
        settings = parse(args, problems)
        problems.raise_if_any()
        super().__init__("multinic:index:RoutedNetworks", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        if len({one.mtu for one in settings.networks}) > 1:
            mtus = ", ".join(f"{one.name} {one.mtu}" for one in settings.networks)
            pulumi.log.warn(
                f"the networks' MTUs differ ({mtus} bytes): connections between them get the smallest", self
            )
        self.router_networks: list[NetworkArgs] = []
        """The networks as a `MultinicRouter` in the region wants them."""
        self.subnetworks_by_region: dict[str, dict[str, pulumi.Output[str]]] = {}
        """Name of a network → region → link of the subnetwork."""
        for one in settings.networks:
            network = gcp.compute.Network(
                naming.child(name, one.name),
                project=settings.project or None,
                auto_create_subnetworks=False,
                mtu=one.mtu,
                routing_mode="REGIONAL",
                opts=child,
            )
            ranges = {settings.region: one.cidr, **one.more_subnets}
            made = {
                region: gcp.compute.Subnetwork(
                    naming.child(name, one.name, "subnet" if region == settings.region else f"subnet-{region}"),
                    project=settings.project or None,
                    region=region,
                    network=network.self_link,
                    ip_cidr_range=str(cidr),
                    private_ip_google_access=True,  # VMs without an external address reach Cloud Logging by it
                    opts=child,
                ).self_link
                for region, cidr in ranges.items()
            }
            self.subnetworks_by_region[one.name] = made
            self.router_networks.append(one.router_network(network.self_link, made[settings.region]))
        self.networks = pulumi.Output.all(*(one["network"] for one in self.router_networks))
        self.subnetworks = pulumi.Output.all(*(one["subnetwork"] for one in self.router_networks))
        self.register_outputs({"networks": self.networks, "subnetworks": self.subnetworks})

"""Endpoints: VMs at both sides of a router, to measure with. They are not part of the product's data path."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any, NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from multinic import images, machines, naming, rules
from multinic.parsing import check_image
from multinic.problems import Problems
from multinic.reading import Section, shown
from multinic.rules_machine import judge_labels
from multinic.rules_network import judge_link
from multinic.settings import FleetSettings, MachineSettings, NetworkSettings, RouterSettings
from multinic.zones import is_zone

STARTUP_SCRIPT = """\
#!/bin/bash
# Serves iperf3 where it is there. Nothing is installed: these VMs have no way to the internet.
set -euo pipefail
if ! command -v iperf3 >/dev/null; then
  echo "multinic: this image has no iperf3; bandwidth cannot be measured with it" >&2
  exit 1
fi
# A name of our own: Debian's package brings an iperf3.service, and a unit of that name cannot be made beside it.
exec systemd-run --unit=multinic-iperf3 --property=Restart=always iperf3 --server
"""

_NAMES = {
    "machine.type": "machine_type",
    "machine.image": "image",
    "machine.image_family": "image",
    "machine.disk_gb": "disk_gb",
    "networks[0].subnetwork": "clients.subnetwork",
    "networks[1].subnetwork": "servers.subnetwork",
}
"""Inputs of a router → what they are called here."""


class EndpointGroupArgs(TypedDict):
    """VMs of one kind in one network."""

    network: pulumi.Input[str]
    """Full link of the VPC network."""
    subnetwork: pulumi.Input[str]
    """Full link of the subnetwork."""
    count: NotRequired[int]
    """Number of VMs, 0 to 100, spread over the zones. Default 1."""


class EndpointsArgs(TypedDict):
    """Inputs of `Endpoints`: VMs at both sides of a router, to measure with."""

    zones: list[str]
    """Zones, taken in turn."""
    image: str
    """Exact image. Its system should have iperf3; nothing is installed at boot."""
    clients: EndpointGroupArgs
    """VMs that send."""
    servers: EndpointGroupArgs
    """VMs that receive."""
    cidrs: list[str]
    """IPv4 ranges that may reach the VMs: those of all routed networks."""
    machine_type: NotRequired[str]
    """Machine type. Default n2-highcpu-4."""
    disk_gb: NotRequired[int]
    """Size of the boot disk in GB. Default 10, or the image's if that is larger."""
    project: NotRequired[str]
    """Project of the VMs. Default: the provider's."""
    labels: NotRequired[dict[str, str]]
    """Labels of the VMs."""


@dataclass(frozen=True)
class EndpointGroup:
    """VMs of one kind."""

    network: pulumi.Input[str]
    subnetwork: pulumi.Input[str]
    count: int


@dataclass(frozen=True)
class EndpointsSettings:
    """All of them."""

    zones: tuple[str, ...]
    image: str
    clients: EndpointGroup
    servers: EndpointGroup
    cidrs: tuple[IPv4Network, ...]
    machine_type: str
    disk_gb: int
    project: str
    labels: dict[str, str]


def parse(args: object, problems: Problems, path: str = "") -> EndpointsSettings:
    """Reads the inputs of `Endpoints`."""
    top = Section(args, path, problems)
    image = top.text("image", "")
    settings = EndpointsSettings(
        zones=top.texts("zones", None),
        image=image,
        clients=_group(top.section("clients")),
        servers=_group(top.section("servers")),
        cidrs=top.cidrs("cidrs", None),
        machine_type=top.text("machine_type", "n2-highcpu-4"),
        disk_gb=top.integer("disk_gb", images.least_disk_gb(image), 10, 65536, "GB"),
        project=top.text("project", "", pattern=naming.PROJECT, form="a project id"),
        labels=top.pairs("labels"),
    )
    top.done()
    check_image(top, settings.image)
    for key, cure in (("zones", "give at least one zone"), ("cidrs", "give the ranges that may reach the VMs")):
        if not getattr(settings, key) and not top.is_broken and not problems.touch(top.at(key)):
            problems.add(top.at(key), f"is empty; {cure}")
    for index, zone in enumerate(settings.zones):
        if zone and not is_zone(zone):
            problems.add(f"{top.at('zones')}[{index}]", f"{shown(zone)} is not a zone such as us-central1-b")
    if len({zone.rpartition("-")[0] for zone in settings.zones if is_zone(zone)}) > 1:
        problems.add(top.at("zones"), "are of several regions, where a subnetwork is of one")
    if machines.parse(settings.machine_type) is None:
        shape = f"{shown(settings.machine_type)} is not a machine type such as n2-highcpu-4"
        problems.add(top.at("machine_type"), shape)
    _judge_like_router(settings, top)
    problems.add_all(judge_labels(settings.labels), prefix=top.at(""), rule="labels")
    for role, group in (("clients", settings.clients), ("servers", settings.servers)):
        for kind, link in (("network", group.network), ("subnetwork", group.subnetwork)):
            if isinstance(link, str) and link:
                problems.add_all(judge_link(f"{top.at(role)}.{kind}", link, kind), rule="link-form")
    return settings


def _judge_like_router(settings: EndpointsSettings, top: Section) -> None:
    """Notes what a router between the two networks would be refused for as well."""
    networks = tuple(NetworkSettings(one.network, one.subnetwork, ()) for one in (settings.clients, settings.servers))
    machine = MachineSettings(image=settings.image, type=settings.machine_type, disk_gb=settings.disk_gb)
    region = next((zone.rpartition("-")[0] for zone in settings.zones if is_zone(zone)), "")
    fleet = FleetSettings(region, networks, settings.zones, machine, labels=settings.labels)
    only = ("machine-size", "machine-image", *(["subnet-region"] if region else []))
    rules.check(RouterSettings(fleet), top.problems, called=lambda path: top.at(_NAMES.get(path, path)), only=only)


def _group(section: Section) -> EndpointGroup:
    group = EndpointGroup(section.link("network"), section.link("subnetwork"), section.integer("count", 1, 0, 100))
    section.done()
    return group


class Endpoints(pulumi.ComponentResource):
    """Clients in one network and servers in another, with the firewall rules that let the routed ranges in.

    Does not make: external addresses, a service account.
    """

    clients: pulumi.Output[list[str]]
    """Names of the clients."""
    client_addresses: pulumi.Output[list[str]]
    """Their internal addresses."""
    client_zones: pulumi.Output[list[str]]
    """Their zones."""
    servers: pulumi.Output[list[str]]
    """Names of the servers."""
    server_addresses: pulumi.Output[list[str]]
    """Their internal addresses."""
    server_zones: pulumi.Output[list[str]]
    """Their zones."""

    def __init__(self, name: str, args: EndpointsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        problems = Problems()
        settings = parse(args, problems)
        problems.raise_if_any()
        super().__init__("multinic:index:Endpoints", name, {}, opts)
        self._name = name
        clients = self._group("client", settings.clients, settings)
        servers = self._group("server", settings.servers, settings)
        self.clients, self.client_addresses, self.client_zones = _outputs(clients)
        self.servers, self.server_addresses, self.server_zones = _outputs(servers)
        self.register_outputs(
            {
                "clients": self.clients,
                "client_addresses": self.client_addresses,
                "client_zones": self.client_zones,
                "servers": self.servers,
                "server_addresses": self.server_addresses,
                "server_zones": self.server_zones,
            }
        )

    def _group(self, role: str, group: EndpointGroup, settings: EndpointsSettings) -> list[gcp.compute.Instance]:
        """Declares the VMs of one kind and the firewall rule of their network."""
        child = pulumi.ResourceOptions(parent=self)
        tag = naming.child(self._name, role)
        gcp.compute.Firewall(
            naming.child(self._name, role, "routed"),
            project=naming.project_of_link(group.network) or settings.project or None,  # Shared VPC: the network's
            network=group.network,
            direction="INGRESS",
            source_ranges=[str(cidr) for cidr in sorted(settings.cidrs)],
            target_tags=[tag],
            allows=[{"protocol": "all"}],
            opts=child,
        )
        return [
            gcp.compute.Instance(
                naming.child(self._name, role, str(index)),
                project=settings.project or None,
                zone=settings.zones[index % len(settings.zones)],
                machine_type=settings.machine_type,
                boot_disk={
                    "initialize_params": {
                        "image": settings.image,
                        "size": settings.disk_gb,
                        "type": _disk_type(settings.machine_type),
                    }
                },
                network_interfaces=[{"network": group.network, "subnetwork": group.subnetwork, "nic_type": "GVNIC"}],
                metadata={"startup-script": STARTUP_SCRIPT},
                tags=[tag],
                labels=settings.labels or None,
                shielded_instance_config={
                    "enable_secure_boot": True,
                    "enable_vtpm": True,
                    "enable_integrity_monitoring": True,
                },
                allow_stopping_for_update=True,
                opts=child,
            )
            for index in range(group.count)
        ]


def _disk_type(machine_type: str) -> str:
    machine = machines.parse(machine_type)
    return machine.disk if machine else "pd-balanced"


def _outputs(
    vms: list[gcp.compute.Instance],
) -> tuple[pulumi.Output[list[str]], pulumi.Output[list[str]], pulumi.Output[list[str]]]:
    """Returns names, addresses and zones."""
    names = pulumi.Output.all(*(vm.name for vm in vms))
    addresses = pulumi.Output.all(*(vm.network_interfaces for vm in vms)).apply(
        lambda of_all: [_address(of_one[0]) for of_one in of_all]
    )
    zones = pulumi.Output.all(*(vm.zone for vm in vms))
    return names, addresses, zones


def _address(nic: Any) -> str:
    """Returns a NIC's address, empty where a preview has none yet. The SDK hands out mappings or objects."""
    address = nic.get("network_ip") if isinstance(nic, Mapping) else nic.network_ip
    return str(address or "")

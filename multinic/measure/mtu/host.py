"""What a host says of its NICs, and of the VPC networks that they are in."""

from __future__ import annotations

import json
from dataclasses import dataclass

from multinic.measure.errors import MeasureError
from multinic.measure.mtu.probe import program
from multinic.measure.shell import Shell


@dataclass(frozen=True)
class Link:
    """A network device.

    Attributes:
        name: Its name.
        mtu: Its MTU in bytes.
        kind: ``vxlan``, ``bridge``, ``veth`` …; empty for a NIC.
        vpc: Name of the VPC network that the NIC is in, as the metadata server says; empty elsewhere.
        vpc_mtu: That network's MTU; 0 elsewhere.
        addresses: Its own addresses that others may reach.
    """

    name: str
    mtu: int
    kind: str = ""
    vpc: str = ""
    vpc_mtu: int = 0
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Host:
    """One host's view.

    Attributes:
        title: The host.
        links: By name.
        device: That the route to the other end takes; empty if there is none.
        route_mtu: MTU that the route itself has; 0 if it has none.
        sysctls: Settings of path MTU discovery; None where the kernel has none of the name.
    """

    title: str
    links: dict[str, Link]
    device: str
    route_mtu: int
    sysctls: dict[str, str | None]

    @property
    def nic(self) -> Link:
        """The device of the route.

        Raises:
            MeasureError: There is no route.
        """
        if self.device not in self.links:
            raise MeasureError(f"{self.title}: no route leads to the other end")
        return self.links[self.device]

    @property
    def sends(self) -> int:
        """Largest packet that it sends to the other end without fragments: of its NIC, or less by the route."""
        return min(self.nic.mtu, self.route_mtu or self.nic.mtu)


def look(shell: Shell, towards: str = "") -> Host:
    """Asks a host.

    Args:
        shell: The host.
        towards: Address of the other end; without it the device of the default route counts.

    Raises:
        MeasureError: It cannot be asked.
    """
    said = json.loads(shell.run(program("look", towards or "192.0.2.1")))
    links: dict[str, Link] = {}
    for name, link in said["links"].items():
        network = said["metadata"].get(link["mac"] or "", {})
        links[name] = Link(
            name,
            link["mtu"],
            link["kind"] or "",
            network.get("network", ""),
            int(network.get("mtu") or 0),
            tuple(link["addresses"]),
        )
    route = said["route"] or {}
    return Host(shell.title, links, route.get("dev") or "", int(route.get("mtu") or 0), said["sysctls"])

"""A port of the fabric: where one NIC of a machine is plugged in."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address

from multinic.lab.fabric.egress import EgressCap


@dataclass(frozen=True)
class Port:
    """One NIC, as the fabric of its network sees it.

    Attributes:
        machine: Key of the machine.
        index: Unique in the lab and never used again, so that a connection mark never means another machine. It is
            the firewall mark that leads to the NIC.
        nic: Number of the NIC in its machine, from 0.
        address: The NIC's address.
        gateway: The subnetwork's gateway.
        mtu: Bytes.
        egress: The machine's cap, shared by all of its NICs; None where it has none.
        can_ip_forward: Without it only the NIC's own addresses may be source or destination.
    """

    machine: str
    index: int
    nic: int
    address: IPv4Address
    gateway: IPv4Address
    mtu: int
    can_ip_forward: bool
    egress: EgressCap | None = None

    @property
    def device(self) -> str:
        """Name of the fabric's end of the veth."""
        return f"v{self.index}"

    @property
    def table(self) -> int:
        """Routing table that leads to this NIC alone; above the kernel's own 253 to 255."""
        return 1000 + self.index


def mac_of(address: IPv4Address) -> str:
    """MAC address as on Google Cloud: 42:01 and the IPv4 address.

    Source: https://docs.cloud.google.com/vpc/docs/create-use-multiple-interfaces (examples of instances' MAC
    addresses).
    """
    return ":".join(["42", "01", *(f"{byte:02x}" for byte in address.packed)])

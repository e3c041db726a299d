"""The metadata of a router VM as the component renders it, for tests that make VMs without the component."""

from __future__ import annotations

import json
from ipaddress import IPv4Address
from typing import Any

from multinic.guest_files import read_files
from multinic.lab.fabric.port import mac_of
from multinic.lab.substrate import Machine


def attributes(*, drain_seconds: float = 2.0, **more: str) -> dict[str, str]:
    """All files of `guest/`, and a configuration for two networks."""
    config: dict[str, Any] = {
        "version": 1,
        "heal_port": 9000,
        "traffic_port": 9001,
        "request_path": "/status.json",
        "drain_seconds": drain_seconds,
        "clamp_mss": None,
        "networks": [{"mtu": None}, {"mtu": None}],
    }
    return {**read_files(), "multinic-config": json.dumps(config, indent=2, sort_keys=True), **more}


def tree(machine: Machine, held: dict[str, str], forwarded: dict[str, str]) -> dict[str, Any]:
    """What the metadata server answers to a machine.

    Args:
        machine: With any number of NICs.
        held: Its attributes.
        forwarded: Network key → address of the forwarding rule that leads to this machine.
    """
    return {
        "instance": {
            "attributes": held,
            "id": machine.id,
            "name": machine.name,
            "networkInterfaces": [
                {
                    "forwardedIps": [forwarded[nic.network]] if nic.network in forwarded else [],
                    "gateway": str(nic.gateway),
                    "ip": str(nic.address),
                    "ipAliases": [],
                    "mac": mac_of(IPv4Address(nic.address)),
                    "mtu": nic.mtu,
                    "network": f"projects/1/networks/{nic.network.rpartition('/')[2]}",
                    "subnetmask": "255.255.255.0",
                }
                for nic in machine.interfaces
            ],
            "serviceAccounts": {},
            "zone": "projects/1/zones/z",
        },
        "project": {"attributes": {}, "numericProjectId": 1, "projectId": "lab"},
    }

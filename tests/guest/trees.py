"""Metadata trees as Google's server answers them (``?recursive=true``), for routers with any number of NICs."""

import json
from typing import Any


def mac(index: int) -> str:
    """Google's MACs are 42:01 and the address."""
    return f"42:01:0a:{index:02x}:00:02"


def interface(index: int, **changes: Any) -> dict[str, Any]:
    return {
        "accessConfigs": [],
        "dnsServers": ["169.254.169.254"],
        "forwardedIps": [f"10.{index}.0.9"],
        "gateway": f"10.{index}.0.1",
        "ip": f"10.{index}.0.2",
        "ipAliases": [],
        "mac": mac(index),
        "mtu": 1460,
        "network": f"projects/123456789/networks/net{index}",
        "subnetmask": "255.255.255.0",
        "targetInstanceIps": [],
        **changes,
    }


def tree(
    nics: int = 2, *, attributes: dict[str, Any] | None = None, interfaces: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """A whole answer. With more than two NICs each network has 172.(16+N).0.0/16 behind it."""
    held: dict[str, Any] = {
        "multinic-config": json.dumps({"version": 1, "clamp_mss": None, "networks": [{"mtu": None}] * nics})
    }
    if nics > 2:
        held["multinic-networks"] = json.dumps([{"cidrs": [f"172.{16 + index}.0.0/16"]} for index in range(nics)])
    held.update(attributes or {})
    return {
        "instance": {
            "attributes": held,
            "cpuPlatform": "Intel Cascade Lake",
            "hostname": "router-a-0001.us-central1-a.c.lab.internal",
            "id": 4567890123456789012,
            "image": "projects/debian-cloud/global/images/debian-12-bookworm-v20260609",
            "machineType": "projects/123456789/machineTypes/n2-highcpu-4",
            "maintenanceEvent": "NONE",
            "name": "router-a-0001",
            "networkInterfaces": interfaces if interfaces is not None else [interface(index) for index in range(nics)],
            "preempted": "FALSE",
            "scheduling": {"automaticRestart": "TRUE", "onHostMaintenance": "MIGRATE", "preemptible": "FALSE"},
            "serviceAccounts": {
                "default": {"aliases": ["default"], "email": "router@lab.iam.gserviceaccount.com", "scopes": []}
            },
            "tags": [],
            "virtualClock": {"driftToken": "0"},
            "zone": "projects/123456789/zones/us-central1-a",
        },
        "oslogin": {"authenticate": {"sessions": {}}},
        "project": {"attributes": {}, "numericProjectId": 123456789, "projectId": "lab"},
    }

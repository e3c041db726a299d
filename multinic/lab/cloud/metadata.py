"""What an instance's metadata server answers: a pure function of the objects.

Tree and names: https://cloud.google.com/compute/docs/metadata/predefined-metadata-keys. The JSON form has camelCase
names, lists for NICs and forwarded addresses, and the numbers as numbers.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Any

from . import addressing, guest_attributes
from .links import key_of, name_of
from .store import Object, Store


def tree(
    store: Store,
    key: str,
    *,
    project: str,
    number: int,
    forwarded: dict[str, list[str]],
    preempted: bool,
    maintenance: str,
) -> dict[str, Any] | None:
    """The whole tree of an instance, or None where there is none.

    Args:
        store: All objects.
        key: The instance's key.
        project: Project id.
        number: Project number.
        forwarded: Network key → addresses of the forwarding rules that lead to this instance.
        preempted: It has had its notice of preemption.
        maintenance: Notice of what will happen to it for its host's sake.
    """
    value = store.get(key)
    if value is None:
        return None
    written = guest_attributes.of(value)
    zone = name_of(value["zone"])
    scheduling = value.get("scheduling") or {}
    return {
        "instance": {
            "attributes": {i["key"]: i.get("value", "") for i in value["metadata"].get("items", [])},
            "cpuPlatform": value["cpuPlatform"],
            "description": value.get("description", ""),
            "disks": [
                {
                    "deviceName": disk["deviceName"],
                    "index": disk["index"],
                    "interface": disk.get("interface", "SCSI"),
                    "mode": disk["mode"],
                    "type": "PERSISTENT-BALANCED",
                }
                for disk in value.get("disks", [])
            ],
            **({} if written is None else {"guestAttributes": written}),
            "hostname": value.get("hostname") or f"{value['name']}.{zone}.c.{project}.internal",
            "id": int(value["id"]),
            "machineType": f"projects/{number}/machineTypes/{name_of(value['machineType'])}",
            "maintenanceEvent": maintenance,
            "name": value["name"],
            "networkInterfaces": [_interface(store, nic, number, forwarded) for nic in value["networkInterfaces"]],
            "preempted": str(preempted).upper(),
            "scheduling": {
                "automaticRestart": str(scheduling.get("automaticRestart", True)).upper(),
                "onHostMaintenance": scheduling.get("onHostMaintenance", "MIGRATE"),
                "preemptible": str(scheduling.get("preemptible", False)).upper(),
            },
            "serviceAccounts": _accounts(value),
            "tags": (value.get("tags") or {}).get("items") or [],
            "zone": f"projects/{number}/zones/{zone}",
        },
        "project": {"attributes": {}, "numericProjectId": number, "projectId": project},
    }


def _interface(store: Store, nic: Object, number: int, forwarded: dict[str, list[str]]) -> dict[str, Any]:
    subnet: IPv4Network = addressing.range_of(store, key_of(nic["subnetwork"]))
    network = key_of(nic["network"])
    return {
        "accessConfigs": [
            {"externalIp": access.get("natIP", ""), "type": access.get("type", "ONE_TO_ONE_NAT")}
            for access in nic.get("accessConfigs", [])
        ],
        "dnsServers": ["169.254.169.254"],
        "forwardedIps": sorted(forwarded.get(network, [])),
        "gateway": str(addressing.gateway(subnet)),
        "ip": nic["networkIP"],
        "ipAliases": [alias["ipCidrRange"] for alias in nic.get("aliasIpRanges", [])],
        "mac": addressing.mac(IPv4Address(nic["networkIP"])),
        "mtu": store.require(network)["mtu"],
        "network": f"projects/{number}/networks/{name_of(network)}",
        "subnetmask": str(subnet.netmask),
        "targetInstanceIps": [],
    }


def _accounts(value: Object) -> dict[str, Any]:
    accounts = {}
    for account in value.get("serviceAccounts", []):
        entry = {"aliases": ["default"], "email": account["email"], "scopes": account.get("scopes", [])}
        accounts["default"] = entry
        accounts[account["email"]] = entry
    return accounts

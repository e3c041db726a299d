"""Requests that the API takes as they are, for tests that change one thing of them."""

from __future__ import annotations

from typing import Any

from tests.lab.api.conftest import Door

V1 = "/compute/v1/projects/lab"
REGION, ZONE = f"{V1}/regions/us-central1", f"{V1}/zones/us-central1-a"
IMAGE = "projects/debian-cloud/global/images/debian-12-bookworm-v20260101"


def properties(**more: Any) -> dict[str, Any]:
    return {
        "machineType": "n2-highcpu-4",
        "disks": [{"boot": True, "initializeParams": {"sourceImage": IMAGE}}],
        "networkInterfaces": [
            {"subnetwork": "projects/lab/regions/us-central1/subnetworks/sub-a"},
            {"subnetwork": "projects/lab/regions/us-central1/subnetworks/sub-b"},
        ],
    } | more


def template(**more: Any) -> dict[str, Any]:
    return {"name": "t", "properties": properties(**more)}


def group(**more: Any) -> dict[str, Any]:
    return {"name": "g", "targetSize": 0, "versions": [{"instanceTemplate": "global/instanceTemplates/t1"}]} | more


def service(**more: Any) -> dict[str, Any]:
    return {
        "name": "bs",
        "loadBalancingScheme": "INTERNAL",
        "network": "global/networks/a",
        "healthChecks": ["global/healthChecks/c"],
        "backends": [{"group": "zones/us-central1-a/instanceGroups/fleet"}],
    } | more


def rule(**more: Any) -> dict[str, Any]:
    return {
        "name": "fr",
        "loadBalancingScheme": "INTERNAL",
        "backendService": "regions/us-central1/backendServices/bs-a",
        "subnetwork": "regions/us-central1/subnetworks/sub-a",
        "allPorts": True,
    } | more


def route(**more: Any) -> dict[str, Any]:
    return {
        "name": "r",
        "network": "global/networks/a",
        "destRange": "10.9.0.0/16",
        "priority": 900,
        "nextHopIlb": "regions/us-central1/forwardingRules/fr-a",
    } | more


def firewall(**more: Any) -> dict[str, Any]:
    return {"name": "fw", "network": "global/networks/a", "allowed": [{"IPProtocol": "tcp", "ports": ["80"]}]} | more


def check(**more: Any) -> dict[str, Any]:
    return {"name": "hc", "type": "HTTP", "httpHealthCheck": {"port": 80}} | more


def scaler(**policy: Any) -> dict[str, Any]:
    base = {"minNumReplicas": 1, "maxNumReplicas": 2, "cpuUtilization": {"utilizationTarget": 0.5}}
    return {
        "name": "as",
        "target": "zones/us-central1-a/instanceGroupManagers/fleet",
        "autoscalingPolicy": base | policy,
    }


def furnish(door: Door) -> Door:
    """Makes networks a and b, a fleet behind a load balancer in a, a route to it."""
    for name, cidr in (("a", "10.0.0.0/24"), ("b", "10.1.0.0/24")):
        door.ok("POST", f"{V1}/global/networks", {"name": name, "autoCreateSubnetworks": False})
        subnet = {"name": f"sub-{name}", "network": f"global/networks/{name}", "ipCidrRange": cidr}
        door.ok("POST", f"{REGION}/subnetworks", subnet)
    door.ok("POST", f"{V1}/global/healthChecks", check(name="c"))
    door.ok("POST", f"{V1}/global/instanceTemplates", {**template(), "name": "t1"})
    door.ok("POST", f"{ZONE}/instanceGroupManagers", group(name="fleet"))
    door.ok("POST", f"{REGION}/backendServices", service(name="bs-a"))
    door.ok("POST", f"{REGION}/forwardingRules", rule(name="fr-a"))
    door.ok("POST", f"{V1}/global/routes", route(name="to-b", destRange="10.8.0.0/16"))
    return door

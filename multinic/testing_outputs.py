"""What Google Cloud computes for a new resource, as far as programs read it. For `testing` only."""

import hashlib
from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Any

_COLLECTIONS: Mapping[str, tuple[str, str]] = {
    "Address": ("regions", "addresses"),
    "Autoscaler": ("zones", "autoscalers"),
    "Firewall": ("global", "firewalls"),
    "ForwardingRule": ("regions", "forwardingRules"),
    "HealthCheck": ("global", "healthChecks"),
    "Instance": ("zones", "instances"),
    "InstanceGroupManager": ("zones", "instanceGroupManagers"),
    "InstanceTemplate": ("global", "instanceTemplates"),
    "Network": ("global", "networks"),
    "RegionBackendService": ("regions", "backendServices"),
    "RegionHealthCheck": ("regions", "healthChecks"),
    "Route": ("global", "routes"),
    "Subnetwork": ("regions", "subnetworks"),
}


def computed(type_: str, inputs: Mapping[str, Any], default_project: str, default_region: str) -> dict[str, Any]:
    """Returns the outputs that are not inputs.

    Args:
        type_: Type of the resource.
        inputs: Its inputs, with its name.
        default_project: The provider's project.
        default_region: The provider's region.
    """
    kind, name = type_.rsplit(":", 1)[-1], str(inputs["name"])
    project = inputs.get("project") or default_project
    outputs: dict[str, Any] = {"project": project}
    if type_ == "gcp:serviceaccount/account:Account":
        email = f"{inputs['accountId']}@{project}.iam.gserviceaccount.com"
        return outputs | {"email": email, "member": f"serviceAccount:{email}", "uniqueId": number(name)}
    if type_ == "random:index/randomId:RandomId":
        return {"hex": digest(name)[: 2 * int(inputs["byteLength"])], "b64Url": digest(name)[:8]}
    if not type_.startswith("gcp:compute/") or kind not in _COLLECTIONS:
        return outputs
    scope, collection = _COLLECTIONS[kind]
    place = "global" if scope == "global" else f"{scope}/{inputs.get(scope[:-1]) or default_region}"
    base = f"https://www.googleapis.com/compute/v1/projects/{project}/{place}"
    link = f"{base}/{collection}/{name}"
    outputs |= {"selfLink": link, "creationTimestamp": "2026-01-01T00:00:00.000-08:00"}
    if scope == "regions":
        outputs["region"] = inputs.get("region") or default_region
    if kind == "InstanceTemplate":
        outputs["selfLinkUnique"] = f"{link}?uniqueId={number(name)}"
    elif kind == "InstanceGroupManager":
        outputs["instanceGroup"] = f"{base}/instanceGroups/{name}"
    elif kind == "Address":
        outputs["address"] = inputs.get("address") or address(name)
    elif kind == "Instance":
        nics = [{**nic, "networkIp": nic.get("networkIp") or address(name)} for nic in inputs["networkInterfaces"]]
        outputs |= {"networkInterfaces": nics, "instanceId": number(name)}
    return outputs


def digest(text: str) -> str:
    """Returns hexadecimal digits that a name always gives."""
    return hashlib.sha256(text.encode()).hexdigest()


def number(name: str) -> str:
    """Returns a numeric id as Google makes them."""
    return str(int(digest(name)[:15], 16) + 10**17)


def address(name: str) -> str:
    """Returns some address in 10.0.0.0/8."""
    return str(IPv4Address(int(IPv4Address("10.0.0.0")) + int(digest(name)[:6], 16)))

"""Functions (data sources) of pulumi-gcp that the lab serves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from multinic.lab.pulumi import links
from multinic.lab.pulumi.kinds import Scope
from multinic.lab.pulumi.rest import ApiError, Document

Arguments = dict[str, Any]
Result = dict[str, Any]

LOAD_BALANCER_RANGES = ("35.191.0.0/16", "130.211.0.0/22")
"""Where the probes of internal and HTTP load balancers come from.

Source: https://cloud.google.com/load-balancing/docs/health-check-concepts#ip-ranges."""

NETWORK_LOAD_BALANCER_RANGES = ("35.191.0.0/16", "209.85.152.0/22", "209.85.204.0/22")
"""The same of external passthrough load balancers, IPv4."""

NETBLOCKS = {
    "health-checkers": ("35.191.0.0/16", "130.211.0.0/22"),
    "legacy-health-checkers": ("35.191.0.0/16", "209.85.152.0/22", "209.85.204.0/22"),
    "iap-forwarders": ("35.235.240.0/20",),
    "private-googleapis": ("199.36.153.8/30",),
    "restricted-googleapis": ("199.36.153.4/30",),
    "dns-forwarders": ("35.199.192.0/19",),
}
"""Address ranges that need no look-up; the others the plugin reads from Google's DNS, which a lab has not."""


def get_zones(args: Arguments, scope: Scope) -> Result:
    """Return the names of a region's zones, sorted."""
    status, region = args.get("status"), args.get("region") or scope.region
    found = scope.rest.pages(f"projects/{scope.project}/zones", filter=f" (status eq {status})" if status else "")
    # The region is compared here, as the plugin does; the status once more, whatever the server made of the filter.
    names = sorted(
        zone["name"]
        for zone in found
        if links.name_of(zone.get("region", "")) == region and status in (None, zone.get("status"))
    )
    place = {"project": scope.project, "region": region, "id": f"projects/{scope.project}/regions/{region}"}
    return place | {"names": names} | ({"status": status} if status else {})


def get_image(args: Arguments, scope: Scope) -> Result:
    """Return an image by name, or the newest of a family."""
    place = f"projects/{args.get('project') or scope.project}/global/images"
    if args.get("name"):
        image = scope.rest.get(f"{place}/{args['name']}")
    elif args.get("family"):
        image = scope.rest.get(f"{place}/family/{args['family']}")
    else:
        raise ApiError(0, "", "getImage: one of name and family has to be given; the lab does not filter images")
    result: Result = {
        key: image[key] for key in ("name", "family", "status", "description", "creationTimestamp") if key in image
    }
    return result | {
        "id": links.path_of(image["selfLink"]),
        "selfLink": links.as_v1(image["selfLink"]),
        "imageId": str(image.get("id", "")),
        "project": args.get("project") or scope.project,
        "diskSizeGb": int(image.get("diskSizeGb", 0)),
        "archiveSizeBytes": int(image.get("archiveSizeBytes", 0)),
        "labels": image.get("labels", {}),
        "labelFingerprint": image.get("labelFingerprint", ""),
        "licenses": image.get("licenses", []),
    }


def _by_link_or_name(args: Arguments, scope: Scope, place: str) -> Document:
    if args.get("selfLink"):
        return scope.rest.get(links.path_of(args["selfLink"]))
    if not args.get("name"):
        raise ApiError(0, "", "one of name and selfLink has to be given")
    return scope.rest.get(f"{place}/{args['name']}")


def get_network(args: Arguments, scope: Scope) -> Result:
    """Return a VPC network."""
    live = _by_link_or_name(args, scope, f"projects/{scope.project}/global/networks")
    return {
        "id": links.path_of(live["selfLink"]),
        "name": live["name"],
        "selfLink": links.as_v1(live["selfLink"]),
        "project": scope.project,
        "description": live.get("description", ""),
        "gatewayIpv4": live.get("gatewayIPv4", ""),
        "networkId": int(live.get("id", 0)),
        "numericId": str(live.get("id", "")),
        "subnetworksSelfLinks": [links.as_v1(link) for link in live.get("subnetworks", [])],
        "internalIpv6Range": live.get("internalIpv6Range", ""),
    }


def get_subnetwork(args: Arguments, scope: Scope) -> Result:
    """Return a subnetwork."""
    live = _by_link_or_name(args, scope, f"projects/{scope.project}/regions/{scope.region}/subnetworks")
    ranges = [
        {"rangeName": item["rangeName"], "ipCidrRange": item["ipCidrRange"]}
        for item in live.get("secondaryIpRanges", [])
    ]
    return {
        "id": links.path_of(live["selfLink"]),
        "name": live["name"],
        "selfLink": links.as_v1(live["selfLink"]),
        "project": scope.project,
        "region": links.name_of(live.get("region", scope.region)),
        "network": links.as_v1(live["network"]),
        "ipCidrRange": live["ipCidrRange"],
        "gatewayAddress": live.get("gatewayAddress", ""),
        "privateIpGoogleAccess": bool(live.get("privateIpGoogleAccess")),
        "description": live.get("description", ""),
        "secondaryIpRanges": ranges,
        "stackType": live.get("stackType", ""),
        "subnetworkId": int(live.get("id", 0)),
    }


def get_forwarding_rule(args: Arguments, scope: Scope) -> Result:
    """Return a regional forwarding rule."""
    live = scope.rest.get(f"projects/{scope.project}/regions/{scope.region}/forwardingRules/{args['name']}")
    plain = ("allPorts", "allowGlobalAccess", "description", "loadBalancingScheme", "networkTier", "labels", "ports")
    return {key: live[key] for key in plain if key in live} | {
        "id": links.path_of(live["selfLink"]),
        "name": live["name"],
        "project": scope.project,
        "region": scope.region,
        "selfLink": links.as_v1(live["selfLink"]),
        "ipAddress": live.get("IPAddress", ""),
        "ipProtocol": live.get("IPProtocol", ""),
        "backendService": links.as_v1(live.get("backendService", "")),
        "network": links.as_v1(live.get("network", "")),
        "subnetwork": links.as_v1(live.get("subnetwork", "")),
        "forwardingRuleId": int(live.get("id", 0)),
        "creationTimestamp": live.get("creationTimestamp", ""),
    }


def get_project(args: Arguments, scope: Scope) -> Result:
    """Return a project."""
    name = args.get("projectId") or scope.project
    live = scope.rest.get(f"projects/{name}", service="crm")
    return {
        "id": f"projects/{name}",
        "projectId": name,
        "name": live.get("name", name),
        "number": str(live.get("projectNumber", "")),
        "labels": live.get("labels", {}),
        "effectiveLabels": live.get("labels", {}),
        "pulumiLabels": live.get("labels", {}),
    }


def get_client_config(_args: Arguments, scope: Scope) -> Result:
    """Return what the provider is configured with."""
    place = f"projects/{scope.project}/regions/{scope.region}/zones/{scope.zone}"
    return {
        "id": place,
        "project": scope.project,
        "region": scope.region,
        "zone": scope.zone,
        "accessToken": scope.rest.token,
        "defaultLabels": {},
    }


def get_load_balancer_ranges(_args: Arguments, _scope: Scope) -> Result:
    """Return where health checks come from."""
    return {
        "id": "compute-lb-ip-ranges",
        "httpSslTcpInternals": list(LOAD_BALANCER_RANGES),
        "networks": list(NETWORK_LOAD_BALANCER_RANGES),
    }


def get_netblock_ranges(args: Arguments, _scope: Scope) -> Result:
    """Return address ranges of a service of Google's."""
    kind = args.get("rangeType") or "cloud-netblocks"
    if kind not in NETBLOCKS:
        served = ", ".join(sorted(NETBLOCKS))
        raise ApiError(
            0, "", f'getNetblockIpRanges: the lab has no "{kind}", which Google\'s DNS answers; it has {served}'
        )
    blocks = list(NETBLOCKS[kind])
    return {
        "id": f"netblock-ip-ranges-{kind}",
        "rangeType": kind,
        "cidrBlocks": blocks,
        "cidrBlocksIpv4s": blocks,
        "cidrBlocksIpv6s": [],
    }


TABLE: dict[str, Callable[[Arguments, Scope], Result]] = {
    "gcp:compute/getZones:getZones": get_zones,
    "gcp:compute/getImage:getImage": get_image,
    "gcp:compute/getNetwork:getNetwork": get_network,
    "gcp:compute/getSubnetwork:getSubnetwork": get_subnetwork,
    "gcp:compute/getForwardingRule:getForwardingRule": get_forwarding_rule,
    "gcp:compute/getLbIpRanges:getLbIpRanges": get_load_balancer_ranges,
    "gcp:compute/getLBIPRanges:getLBIPRanges": get_load_balancer_ranges,
    "gcp:compute/getNetblockIPRanges:getNetblockIPRanges": get_netblock_ranges,
    "gcp:organizations/getProject:getProject": get_project,
    "gcp:organizations/getClientConfig:getClientConfig": get_client_config,
}

"""VPC networks and their subnetworks."""

from __future__ import annotations

import ipaddress

from multinic.lab.pulumi import links
from multinic.lab.pulumi.fields import Field, Fields, block, blocks
from multinic.lab.pulumi.kinds import Integer, Items, Link, Number, Scope, Text
from multinic.lab.pulumi.resource_type import Change, Inputs, ResourceType, regional
from multinic.lab.pulumi.rest import Document
from multinic.lab.pulumi.types.common import (
    DELETION_POLICY,
    FLAG,
    NAME,
    PROJECT,
    REGION,
    fixed,
    optional,
)


def unparsable_cidr(value: str) -> str | None:
    """Return what is wrong with a CIDR for the plugin: only that it does not parse; host bits are the API's matter."""
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return f'"{value}" is not a valid CIDR value: invalid CIDR address: {value}'
    return None if "/" in value else f'"{value}" is not a valid CIDR value: invalid CIDR address: {value}'


def _remove_default_routes(path: str, inputs: Inputs, live: Document, scope: Scope, deadline: float) -> None:
    if not inputs.get("deleteDefaultRoutesOnCreate"):
        return
    routes = f"projects/{scope.project}/global/routes"
    for route in scope.rest.pages(routes, filter=f'(network="{live["selfLink"]}") AND (destRange="0.0.0.0/0")'):
        # The filter is the plugin's; which routes go is decided here, whatever the server made of it.
        if route.get("destRange") == "0.0.0.0/0" and links.same_resource(route["network"], live["selfLink"]):
            scope.rest.run("DELETE", f"{routes}/{route['name']}", None, deadline)


def _update_network(change: Change) -> None:
    if change.touches("mtu"):
        change.run("PATCH", change.path, {"fingerprint": change.live.get("fingerprint"), "mtu": change.new.get("mtu")})
    if change.touches("routingMode"):
        change.run("PATCH", change.path, {"routingConfig": {"routingMode": change.new.get("routingMode")}})
    if change.touches("networkFirewallPolicyEnforcementOrder"):
        order = change.new["networkFirewallPolicyEnforcementOrder"]
        change.run("PATCH", change.path, {"networkFirewallPolicyEnforcementOrder": order})


NETWORK = ResourceType(
    pulumi_type="gcp:compute/network:Network",
    collection="projects/{project}/global/networks",
    fields=Fields(
        (
            NAME,
            PROJECT,
            DELETION_POLICY,
            fixed("description"),
            Field("autoCreateSubnetworks", FLAG, replaces=True, default=True),
            optional("mtu", Integer()),
            optional("routingMode", Text(choices=("REGIONAL", "GLOBAL")), "routingConfig.routingMode"),
            Field("deleteBgpAlwaysCompareMed", FLAG, "routingConfig.deleteBgpAlwaysCompareMed", default=False),
            Field("deleteDefaultRoutesOnCreate", FLAG, sent=False, default=False),
            Field("enableUlaInternalIpv6", FLAG),
            Field("networkFirewallPolicyEnforcementOrder", Text(), default="AFTER_CLASSIC_FIREWALL"),
        )
    ),
    computed=("selfLink", "gatewayIpv4", "networkId", "numericId"),
    more=lambda live, _scope: {
        "networkId": int(live.get("id", 0)),
        "numericId": str(live.get("id", "")),
        "gatewayIpv4": live.get("gatewayIPv4", ""),
    },
    after_create=_remove_default_routes,
    update=_update_network,
)


def _shape_subnetwork(body: Document, inputs: Inputs, scope: Scope) -> Document:
    flow_logs = {"enable": True, "metadataFields": []} | body["logConfig"] if "logConfig" in body else {"enable": False}
    return regional(body, inputs, scope) | {"logConfig": flow_logs}


def _unshape_subnetwork(live: Document, _inputs: Inputs) -> Document:
    # Flow logs that are off are the same as none declared.
    off = not (live.get("logConfig") or {}).get("enable")
    return {key: value for key, value in live.items() if key != "logConfig" or not off}


def _update_subnetwork(change: Change) -> None:
    if change.touches("ipCidrRange"):
        change.run("POST", f"{change.path}/expandIpCidrRange", {"ipCidrRange": change.new["ipCidrRange"]})
    if change.touches("privateIpGoogleAccess"):
        wanted = bool(change.new.get("privateIpGoogleAccess"))
        change.run("POST", f"{change.path}/setPrivateIpGoogleAccess", {"privateIpGoogleAccess": wanted})
    if change.touches("logConfig", "secondaryIpRanges", "stackType", "role"):
        live = change.scope.rest.get(change.path)
        body = _shape_subnetwork(SUBNETWORK.fields.encode(change.new, change.scope), change.new, change.scope)
        sent = {key: body[key] for key in ("logConfig", "secondaryIpRanges", "stackType", "role") if key in body}
        change.run("PATCH", change.path, sent | {"fingerprint": live.get("fingerprint")})


SUBNETWORK = ResourceType(
    pulumi_type="gcp:compute/subnetwork:Subnetwork",
    collection="projects/{project}/regions/{region}/subnetworks",
    fields=Fields(
        (
            NAME,
            PROJECT,
            REGION,
            DELETION_POLICY,
            fixed("description"),
            Field("network", Link("networks"), required=True, replaces=True),
            optional("ipCidrRange", Text(test=unparsable_cidr)),
            optional("privateIpGoogleAccess", FLAG),
            optional("privateIpv6GoogleAccess"),
            optional("purpose"),
            Field("role", Text(choices=("ACTIVE", "BACKUP"))),
            optional("stackType", Text(choices=("IPV4_ONLY", "IPV4_IPV6", "IPV6_ONLY"))),
            optional(
                "secondaryIpRanges",
                blocks(Field("rangeName", required=True), Field("ipCidrRange", Text(test=unparsable_cidr))),
            ),
            Field(
                "logConfig",
                block(
                    Field("aggregationInterval", default="INTERVAL_5_SEC"),
                    Field("filterExpr", default="true"),
                    Field("flowSampling", Number(), default=0.5),
                    Field("metadata", default="INCLUDE_ALL_METADATA"),
                    Field("metadataFields", Items(Text(), is_set=True)),
                ),
            ),
        )
    ),
    computed=("selfLink", "creationTimestamp", "fingerprint", "gatewayAddress", "subnetworkId", "state"),
    shape=_shape_subnetwork,
    unshape=_unshape_subnetwork,
    more=lambda live, _scope: {
        "gatewayAddress": live.get("gatewayAddress", ""),
        "subnetworkId": int(live.get("id", 0)),
        "state": live.get("state", ""),
    },
    update=_update_subnetwork,
)

TYPES = (NETWORK, SUBNETWORK)

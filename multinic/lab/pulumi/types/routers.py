"""Cloud Routers and the NAT gateways that are part of them."""

from __future__ import annotations

from typing import Any

from multinic.lab.pulumi import links
from multinic.lab.pulumi.fields import Field, Fields, block, blocks
from multinic.lab.pulumi.kinds import Flag, Integer, Items, Link, Scope, Text
from multinic.lab.pulumi.resource_type import Change, Inputs, Own, ResourceType, regional
from multinic.lab.pulumi.rest import ApiError, Document
from multinic.lab.pulumi.types.common import DELETION_POLICY, DESCRIPTION, NAME, PROJECT, REGION, optional


def _shape_router(body: Document, inputs: Inputs, scope: Scope) -> Document:
    return {"bgp": None} | regional(body, inputs, scope)


def _update_router(change: Change) -> None:
    body = _shape_router(ROUTER.fields.encode(change.new, change.scope), change.new, change.scope)
    change.run("PATCH", change.path, {key: body.get(key) for key in ("bgp", "description") if key in body})


ROUTER = ResourceType(
    pulumi_type="gcp:compute/router:Router",
    collection="projects/{project}/regions/{region}/routers",
    fields=Fields(
        (
            NAME,
            PROJECT,
            REGION,
            DELETION_POLICY,
            DESCRIPTION,
            Field("network", Link("networks"), replaces=True),
            Field("bgp", block(Field("asn", Integer(), required=True), Field("advertiseMode", default="DEFAULT"))),
        )
    ),
    computed=("selfLink", "creationTimestamp"),
    shape=_shape_router,
    update=_update_router,
)


def _router_path(inputs: Inputs, scope: Scope) -> str:
    return f"projects/{scope.project}/regions/{scope.region}/routers/{links.name_of(inputs['router'])}"


def _split(identity: str) -> tuple[str, str]:
    """Return the path of the router and the name of the NAT in an id such as ``p/us-central1/router/nat``."""
    project, region, router, name = identity.split("/")[-4:]
    return f"projects/{project}/regions/{region}/routers/{router}", name


def _nat_body(inputs: Inputs, scope: Scope) -> Document:
    lists: Document = {
        name: [] for name in ("drainNatIps", "initialNatIps", "nat64Subnetworks", "natIps", "rules", "subnetworks")
    }
    return lists | {"logConfig": None} | ROUTER_NAT.fields.encode(inputs, scope)


def _write_nats(path: str, nats: list[Any], scope: Scope, deadline: float) -> None:
    scope.rest.run("PATCH", path, {"nats": nats}, deadline)


def _create_nat(inputs: Inputs, scope: Scope, deadline: float) -> str:
    path = _router_path(inputs, scope)
    others = scope.rest.get(path).get("nats", [])
    if any(nat["name"] == inputs["name"] for nat in others):
        raise ApiError(
            409, "alreadyExists", f"The NAT '{inputs['name']}' already exists in router '{inputs['router']}'"
        )
    _write_nats(path, [*others, _nat_body(inputs, scope)], scope, deadline)
    return f"{scope.project}/{scope.region}/{links.name_of(inputs['router'])}/{inputs['name']}"


def _read_nat(identity: str, scope: Scope) -> Document | None:
    path, name = _split(identity)
    try:
        router = scope.rest.get(path)
    except ApiError as error:
        if error.is_missing:
            return None
        raise
    return next((nat for nat in router.get("nats", []) if nat["name"] == name), None)


def _delete_nat(identity: str, scope: Scope, deadline: float) -> None:
    path, name = _split(identity)
    nats = scope.rest.get(path).get("nats", [])
    _write_nats(path, [nat for nat in nats if nat["name"] != name], scope, deadline)


def _update_nat(change: Change) -> None:
    path, name = _split(change.path)
    nats = change.scope.rest.get(path).get("nats", [])
    mine = _nat_body(change.new, change.scope)
    _write_nats(path, [mine if nat["name"] == name else nat for nat in nats], change.scope, change.deadline)


_LINKS = Items(Link("addresses", "region"), is_set=True)

ROUTER_NAT = ResourceType(
    pulumi_type="gcp:compute/routerNat:RouterNat",
    collection="projects/{project}/regions/{region}/routers",
    fields=Fields(
        (
            NAME,
            PROJECT,
            REGION,
            DELETION_POLICY,
            Field("router", sent=False, required=True, replaces=True),
            Field("sourceSubnetworkIpRangesToNat", required=True),
            optional("natIpAllocateOption", Text(choices=("MANUAL_ONLY", "AUTO_ONLY"))),
            Field("natIps", _LINKS),
            Field(
                "subnetworks",
                blocks(
                    Field("name", Link("subnetworks", "region"), required=True),
                    Field("sourceIpRangesToNats", Items(Text()), "sourceIpRangesToNat", required=True),
                ),
            ),
            Field("logConfig", block(Field("enable", Flag(), required=True), Field("filter", required=True))),
            optional("minPortsPerVm", Integer()),
            optional("maxPortsPerVm", Integer()),
            optional("enableDynamicPortAllocation", Flag()),
            optional("enableEndpointIndependentMapping", Flag()),
            Field("type", Text(choices=("PUBLIC", "PRIVATE")), default="PUBLIC", replaces=True),
            Field("icmpIdleTimeoutSec", Integer(), default=30),
            Field("udpIdleTimeoutSec", Integer(), default=30),
            Field("tcpEstablishedIdleTimeoutSec", Integer(), default=1200),
            Field("tcpTransitoryIdleTimeoutSec", Integer(), default=30),
            Field("tcpTimeWaitTimeoutSec", Integer(), default=120),
        )
    ),
    update=_update_nat,
    own=Own(_create_nat, _read_nat, _delete_nat),
)

TYPES = (ROUTER, ROUTER_NAT)

"""Health checks, global and regional."""

from __future__ import annotations

from multinic.lab.pulumi.fields import Field, Fields, block
from multinic.lab.pulumi.kinds import Integer, Items, Scope, Text
from multinic.lab.pulumi.resource_type import Change, Inputs, ResourceType, exactly_one, regional
from multinic.lab.pulumi.rest import Document
from multinic.lab.pulumi.types.common import (
    DELETION_POLICY,
    DESCRIPTION,
    FLAG,
    NAME,
    PROJECT,
    REGION,
    optional,
)

_PROXY_HEADER = Field("proxyHeader", Text(choices=("NONE", "PROXY_V1")), default="NONE")
_PORT_SPECIFICATION = Text(choices=("USE_FIXED_PORT", "USE_NAMED_PORT", "USE_SERVING_PORT"))
_PORT = (optional("port", Integer()), Field("portName"), Field("portSpecification", _PORT_SPECIFICATION))
_HTTP = block(*_PORT, _PROXY_HEADER, Field("host"), Field("requestPath", default="/"), Field("response"))
_TCP = block(*_PORT, _PROXY_HEADER, Field("request"), Field("response"))

_KINDS = {
    "httpHealthCheck": ("HTTP", _HTTP),
    "httpsHealthCheck": ("HTTPS", _HTTP),
    "http2HealthCheck": ("HTTP2", _HTTP),
    "tcpHealthCheck": ("TCP", _TCP),
    "sslHealthCheck": ("SSL", _TCP),
    "grpcHealthCheck": ("GRPC", block(*_PORT, Field("grpcServiceName"))),
}

_FIELDS = (
    NAME,
    PROJECT,
    DELETION_POLICY,
    DESCRIPTION,
    Field("checkIntervalSec", Integer(), default=5),
    Field("timeoutSec", Integer(), default=5),
    Field("healthyThreshold", Integer(), default=2),
    Field("unhealthyThreshold", Integer(), default=2),
    Field("logConfig", block(Field("enable", FLAG))),
    *(Field(name, kind) for name, (_type, kind) in _KINDS.items()),
)


def _shape(body: Document, inputs: Inputs, _scope: Scope) -> Document:
    kind = next(kind for name, (kind, _block) in _KINDS.items() if name in inputs)
    return {"logConfig": {"enable": False}} | body | {"type": kind}


def _shape_regional(body: Document, inputs: Inputs, scope: Scope) -> Document:
    return regional(_shape(body, inputs, scope), inputs, scope)


def _unshape(live: Document, _inputs: Inputs) -> Document:
    logs = live.get("logConfig") or {}
    return {key: value for key, value in live.items() if key != "logConfig" or logs.get("enable")}


def _update(change: Change) -> None:
    kind = REGION_HEALTH_CHECK if "/regions/" in change.path else HEALTH_CHECK
    body = kind.shape(kind.fields.encode(change.new, change.scope), change.new, change.scope)
    change.run("PUT", change.path, {"description": ""} | body)


HEALTH_CHECK = ResourceType(
    pulumi_type="gcp:compute/healthCheck:HealthCheck",
    collection="projects/{project}/global/healthChecks",
    fields=Fields((*_FIELDS, Field("sourceRegions", Items(Text())))),
    computed=("selfLink", "creationTimestamp", "type"),
    check=exactly_one(*_KINDS),
    shape=_shape,
    unshape=_unshape,
    more=lambda live, _scope: {"type": live.get("type", "")},
    update=_update,
)

REGION_HEALTH_CHECK = ResourceType(
    pulumi_type="gcp:compute/regionHealthCheck:RegionHealthCheck",
    collection="projects/{project}/regions/{region}/healthChecks",
    fields=Fields((*_FIELDS, REGION)),
    computed=("selfLink", "creationTimestamp", "type", "healthCheckId"),
    check=exactly_one(*_KINDS),
    shape=_shape_regional,
    unshape=_unshape,
    more=lambda live, _scope: {"type": live.get("type", ""), "healthCheckId": int(live.get("id", 0))},
    update=_update,
)

TYPES = (HEALTH_CHECK, REGION_HEALTH_CHECK)

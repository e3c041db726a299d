"""Regional backend services: the load balancer behind a forwarding rule."""

from __future__ import annotations

from multinic.lab.pulumi.fields import Field, Fields, block, blocks
from multinic.lab.pulumi.kinds import Integer, Link, Number, One, Scope, Text
from multinic.lab.pulumi.resource_type import Change, Inputs, ResourceType, regional
from multinic.lab.pulumi.rest import Document
from multinic.lab.pulumi.types.common import (
    DELETION_POLICY,
    DESCRIPTION,
    FLAG,
    NAME,
    PROJECT,
    fixed,
    optional,
)

_PROTOCOLS = ("HTTP", "HTTPS", "HTTP2", "SSL", "TCP", "UDP", "GRPC", "UNSPECIFIED", "H2C")
_AFFINITIES = (
    "NONE",
    "CLIENT_IP",
    "CLIENT_IP_PORT_PROTO",
    "CLIENT_IP_PROTO",
    "GENERATED_COOKIE",
    "HEADER_FIELD",
    "HTTP_COOKIE",
    "CLIENT_IP_NO_DESTINATION",
    "STRONG_COOKIE_AFFINITY",
)
_SCHEMES = ("EXTERNAL", "EXTERNAL_MANAGED", "EXTERNAL_PASSTHROUGH", "INTERNAL", "INTERNAL_MANAGED")
_PERSISTENCE = ("DEFAULT_FOR_PROTOCOL", "NEVER_PERSIST", "ALWAYS_PERSIST")

_BACKEND = blocks(
    Field("group", Link(form="url"), required=True),
    # The plugin's default, which the API refuses behind an internal passthrough load balancer.
    Field(
        "balancingMode", Text(choices=("UTILIZATION", "RATE", "CONNECTION", "CUSTOM_METRICS")), default="UTILIZATION"
    ),
    Field("description"),
    Field("failover", FLAG),
    Field("capacityScaler", Number(), computed=True),
    Field("maxConnections", Integer()),
    Field("maxConnectionsPerInstance", Integer()),
    is_set=True,
)

_TRACKING = block(
    Field("trackingMode", Text(choices=("PER_CONNECTION", "PER_SESSION")), default="PER_CONNECTION"),
    Field("connectionPersistenceOnUnhealthyBackends", Text(choices=_PERSISTENCE), default="DEFAULT_FOR_PROTOCOL"),
    Field("idleTimeoutSec", Integer(), computed=True),
    Field("enableStrongAffinity", FLAG),
)

_FAILOVER = block(
    Field("disableConnectionDrainOnFailover", FLAG, computed=True),
    Field("dropTrafficIfUnhealthy", FLAG, computed=True),
    Field("failoverRatio", Number()),
)


_ZONES = ("ZONAL_AFFINITY_DISABLED", "ZONAL_AFFINITY_SPILL_CROSS_ZONE", "ZONAL_AFFINITY_STAY_WITHIN_ZONE")
_ZONAL = block(Field("spillover", Text(choices=_ZONES)), Field("spilloverRatio", Number()))


def _shape(body: Document, inputs: Inputs, scope: Scope) -> Document:
    for backend in body.get("backends", []):
        if not backend.get("failover"):
            backend.pop("failover", None)
    failover = body.get("failoverPolicy", {})
    if not failover.get("disableConnectionDrainOnFailover"):
        failover.pop("disableConnectionDrainOnFailover", None)
    tracking = body.get("connectionTrackingPolicy", {})
    if not tracking.get("enableStrongAffinity"):
        tracking.pop("enableStrongAffinity", None)
    return {"iap": None, "subsetting": {"policy": "NONE"}} | regional(body, inputs, scope)


def _update(change: Change) -> None:
    body = _shape(REGION_BACKEND_SERVICE.fields.encode(change.new, change.scope), change.new, change.scope)
    change.run("PUT", change.path, body | change.print_of_state)


REGION_BACKEND_SERVICE = ResourceType(
    pulumi_type="gcp:compute/regionBackendService:RegionBackendService",
    collection="projects/{project}/regions/{region}/backendServices",
    fields=Fields(
        (
            NAME,
            PROJECT,
            # The plugin does not replace a service whose region changes: it looks for it in the new one, in vain.
            Field("region", sent=False),
            DELETION_POLICY,
            DESCRIPTION,
            Field("loadBalancingScheme", Text(choices=_SCHEMES), replaces=True, default="INTERNAL"),
            fixed("network", Link("networks")),
            optional("protocol", Text(choices=_PROTOCOLS)),
            optional("sessionAffinity", Text(choices=_AFFINITIES)),
            Field("backends", _BACKEND),
            Field("healthChecks", One(Link(form="given"))),
            Field("connectionDrainingTimeoutSec", Integer(), "connectionDraining.drainingTimeoutSec", default=300),
            Field("connectionTrackingPolicy", _TRACKING),
            Field("failoverPolicy", _FAILOVER),
            Field("networkPassThroughLbTrafficPolicy", block(Field("zonalAffinity", _ZONAL))),
            optional("logConfig", block(Field("enable", FLAG), optional("sampleRate", Number()))),
            optional("timeoutSec", Integer()),
            optional("portName"),
            optional("subsetting", block(Field("policy", required=True))),
        )
    ),
    computed=("selfLink", "creationTimestamp", "fingerprint", "generatedId"),
    shape=_shape,
    more=lambda live, _scope: {"generatedId": int(live.get("id", 0))},
    update=_update,
)

TYPES = (REGION_BACKEND_SERVICE,)

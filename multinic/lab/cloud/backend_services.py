"""Backend services of internal passthrough load balancers.

https://cloud.google.com/load-balancing/docs/backend-service
"""

from __future__ import annotations

from typing import Any, ClassVar

from typing_extensions import override

from . import references
from .call import Answer, Call, Handler
from .errors import invalid, not_served, required
from .links import key_of, link, split
from .references import Reference
from .resource import Resource
from .rules import DISCOVERY, at, between, holds, one_of
from .store import Object

_BS = "https://cloud.google.com/load-balancing/docs/backend-service"
_TRAFFIC = "https://cloud.google.com/load-balancing/docs/internal/int-tcp-udp-lb-concepts#traffic_distribution"
_CAPACITY = (
    "maxUtilization",
    "maxRate",
    "maxRatePerInstance",
    "maxRatePerEndpoint",
    "maxConnections",
    "maxConnectionsPerInstance",
    "maxConnectionsPerEndpoint",
    "capacityScaler",
)


def _backends(service: Object) -> list[Any]:
    return list(service.get("backends", []))


RULES = (
    one_of("protocol", ("TCP", "UDP", "UNSPECIFIED"), _BS + "#protocol_to_backends"),
    holds(
        "backends[0].balancingMode",
        "Balancing mode CONNECTION is the only one for an internal passthrough load balancer.",
        _BS + "#balancing-mode-lb",
        lambda service: all(b.get("balancingMode", "CONNECTION") == "CONNECTION" for b in _backends(service)),
    ),
    holds(
        "backends[0]",
        "Capacity settings (max…, capacityScaler) cannot be used with loadBalancingScheme INTERNAL.",
        _BS + "#capacity_settings",
        lambda service: not any(b.get(name) for b in _backends(service) for name in _CAPACITY),
    ),
    holds(
        "backends",
        "The same group is given more than once.",
        DISCOVERY + "Backend.group",
        lambda service: len({b.get("group") for b in _backends(service)}) == len(_backends(service)),
    ),
    holds(
        "healthChecks",
        "Exactly one health check must be given.",
        DISCOVERY + "BackendService.healthChecks",
        lambda service: len(service.get("healthChecks", [])) == 1 or bool(service.get("haPolicy")),
    ),
    one_of(
        "sessionAffinity",
        ("NONE", "CLIENT_IP", "CLIENT_IP_PROTO", "CLIENT_IP_PORT_PROTO", "CLIENT_IP_NO_DESTINATION"),
        _TRAFFIC,
    ),
    between("connectionDraining.drainingTimeoutSec", 0, 3600, _BS + "#connection_draining"),
    holds(
        "failoverPolicy",
        "A failover policy needs at least one backend with failover true.",
        "https://cloud.google.com/load-balancing/docs/internal/failover-overview",
        lambda service: not _policy(service) or any(b.get("failover") for b in _backends(service)),
    ),
    between("failoverPolicy.failoverRatio", 0, 1, DISCOVERY + "BackendServiceFailoverPolicy.failoverRatio"),
    holds(
        "connectionTrackingPolicy.connectionPersistenceOnUnhealthyBackends",
        "ALWAYS_PERSIST may be used with trackingMode PER_CONNECTION only.",
        DISCOVERY + "BackendServiceConnectionTrackingPolicy.connectionPersistenceOnUnhealthyBackends",
        lambda service: (
            at(service, "connectionTrackingPolicy.connectionPersistenceOnUnhealthyBackends") != "ALWAYS_PERSIST"
            or at(service, "connectionTrackingPolicy.trackingMode") in (None, "PER_CONNECTION")
        ),
    ),
    between(
        "connectionTrackingPolicy.idleTimeoutSec",
        600,
        16 * 3600,
        DISCOVERY + "BackendServiceConnectionTrackingPolicy.idleTimeoutSec",
    ),
    holds(
        "connectionTrackingPolicy.enableStrongAffinity",
        "Strong session affinity is not allowed for this project.",
        "reported for projects without an allow-list entry: GoogleCloudPlatform/magic-modules#17396",
        lambda service: not at(service, "connectionTrackingPolicy.enableStrongAffinity"),
    ),
    holds(
        "subsetting.policy",
        "Subsetting needs session affinity NONE or CLIENT_IP_PORT_PROTO.",
        "https://cloud.google.com/load-balancing/docs/internal/int-tcp-udp-lb-concepts#subsetting",
        lambda service: (
            at(service, "subsetting.policy") in (None, "NONE")
            or service.get("sessionAffinity") in ("NONE", "CLIENT_IP_PORT_PROTO")
        ),
    ),
    between("logConfig.sampleRate", 0, 1, DISCOVERY + "BackendServiceLogConfig.sampleRate"),
)


def _policy(service: Object) -> bool:
    policy = service.get("failoverPolicy") or {}
    return any(content not in (None, False) for content in policy.values())


class BackendServices(Resource):
    """``regionBackendServices`` with scheme INTERNAL."""

    collection = "backendServices"
    noun = "backend_service"
    kind = "backendService"
    served: ClassVar = {"regions": "regionBackendServices"}
    verbs = ("insert", "get", "list", "patch", "update", "delete", "testIamPermissions")
    references = (
        Reference("backends[].group", "instanceGroups"),
        Reference("healthChecks[]", "healthChecks"),
        Reference("network", "networks", scope="global"),
    )
    defaults: ClassVar = {
        "sessionAffinity": "NONE",
        "protocol": "TCP",
        "connectionDraining": {"drainingTimeoutSec": 0},
    }
    immutable = ("loadBalancingScheme", "network")
    rules = RULES
    fingerprinted = True

    @override
    def methods(self) -> dict[str, Handler]:
        # The aggregated list is the one of the global kind, which the lab does not have otherwise.
        return super().methods() | {"backendServices.aggregatedList": self.aggregated_list}

    @override
    def handlers(self) -> dict[str, Handler]:
        return {"getHealth": self.get_health}

    @override
    def complete(self, key: str, value: Object) -> None:
        scheme = value.get("loadBalancingScheme")
        if not scheme:
            raise required("loadBalancingScheme")
        if scheme != "INTERNAL":
            raise not_served(f"backend services with loadBalancingScheme {scheme} (only INTERNAL)")
        for backend in _backends(value):
            if not backend.get("group"):
                raise required("backends[0].group")
            backend.setdefault("balancingMode", "CONNECTION")
            backend.setdefault("failover", False)

    @override
    def check(self, key: str, value: Object, old: Object | None) -> None:
        region = split(key).scope.partition("/")[2]
        for index, backend in enumerate(_backends(value)):
            scope = split(key_of(backend["group"])).scope.partition("/")[2]
            if scope != region and not scope.startswith(region + "-"):
                raise invalid(f"backends[{index}].group", backend["group"], f"The group must be in region '{region}'.")
            self._refuse_wrong_network(f"backends[{index}].group", backend["group"], value)
        for index, check in enumerate(value.get("healthChecks", [])):
            self.cloud.health_checks.require_own_port(f"healthChecks[{index}]", check)

    def _refuse_wrong_network(self, field: str, group: str, value: Object) -> None:
        # https://cloud.google.com/load-balancing/docs/backend-service#backend_service_network: every VM of the group
        # needs a NIC in the service's network.
        if not value.get("network"):
            return
        networks = self.cloud.instance_groups.networks(key_of(group))
        if networks and key_of(value["network"]) not in networks:
            raise invalid(field, group, f"The group's instances have no interface in network '{value['network']}'.")

    def get_health(self, call: Call) -> Answer:
        """The health of a group's instances as one backend: one row for each instance and forwarding rule."""
        key = self.target(call)
        service = self.store.require(key)
        if not call.body.get("group"):
            raise required("group")
        group = references.require(self.cloud, "group", call.body["group"], "instanceGroups", "own", split(key).scope)
        if link(group) not in [backend["group"] for backend in _backends(service)]:
            raise invalid("group", call.body["group"], "The group is not a backend of this service.")
        return {
            "kind": "compute#backendServiceGroupHealth",
            "healthStatus": self.cloud.health.statuses(key, group),
        }

    def groups(self, service: Object) -> list[str]:
        """Keys of a service's groups."""
        return [key_of(backend["group"]) for backend in _backends(service)]

    def draining_timeout(self, group: str) -> float:
        """Seconds that a VM of the group drains before it goes: the largest timeout of the services that use it.

        https://cloud.google.com/load-balancing/docs/enabling-connection-draining
        """
        timeouts = [
            float(at(value, "connectionDraining.drainingTimeoutSec") or 0)
            for _, value in self.store.everywhere("backendServices")
            if group in self.groups(value)
        ]
        return max(timeouts, default=0.0)

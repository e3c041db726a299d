"""Health checks.

https://cloud.google.com/load-balancing/docs/health-check-concepts
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from .errors import invalid, not_served, required
from .resource import Resource
from .rules import DISCOVERY, at, between, holds
from .store import Object

_BODIES = {
    "HTTP": "httpHealthCheck",
    "HTTPS": "httpsHealthCheck",
    "HTTP2": "http2HealthCheck",
    "TCP": "tcpHealthCheck",
    "SSL": "sslHealthCheck",
    "GRPC": "grpcHealthCheck",
}

RULES = (
    between("checkIntervalSec", 1, 300, "https://cloud.google.com/compute/docs/reference/rest/v1/healthChecks"),
    between("timeoutSec", 1, 300, "https://cloud.google.com/compute/docs/reference/rest/v1/healthChecks"),
    between("healthyThreshold", 1, 10, "https://cloud.google.com/compute/docs/reference/rest/v1/healthChecks"),
    between("unhealthyThreshold", 1, 10, "https://cloud.google.com/compute/docs/reference/rest/v1/healthChecks"),
    holds(
        "timeoutSec",
        "The timeout must not be greater than the check interval.",
        DISCOVERY + "HealthCheck.timeoutSec",
        lambda check: check["timeoutSec"] <= check["checkIntervalSec"],
    ),
    between("httpHealthCheck.port", 1, 65535, DISCOVERY + "HTTPHealthCheck.port"),
    holds(
        "httpHealthCheck.requestPath",
        "The path must begin with '/' and have no spaces.",
        "https://cloud.google.com/load-balancing/docs/health-check-concepts#optional-flags-hc-protocol-http",
        lambda check: _good_path(at(check, "httpHealthCheck.requestPath")),
    ),
    holds(
        "httpHealthCheck.port",
        "Either 'port' or 'portName' may be given.",
        DISCOVERY + "HTTPHealthCheck.portSpecification",
        lambda check: not (at(check, "httpHealthCheck.port") and at(check, "httpHealthCheck.portName")),
    ),
)


def _good_path(path: Any) -> bool:
    if path is None:
        return True
    text = str(path)
    return text.startswith("/") and text.isprintable() and " " not in text and text.isascii()


@dataclass(frozen=True)
class Check:
    """A health check as the prober needs it. Times in seconds."""

    key: str
    interval: float
    timeout: float
    healthy: int
    unhealthy: int
    port: int
    path: str
    host: str | None


class HealthChecks(Resource):
    """``healthChecks`` and ``regionHealthChecks``: how probes are sent and counted. The lab probes by HTTP."""

    collection = "healthChecks"
    noun = "health_check"
    kind = "healthCheck"
    served: ClassVar = {"global": "healthChecks", "regions": "regionHealthChecks"}
    verbs = ("insert", "get", "list", "aggregatedList", "patch", "update", "delete")
    defaults: ClassVar = {
        "checkIntervalSec": 5,
        "timeoutSec": 5,
        "healthyThreshold": 2,
        "unhealthyThreshold": 2,
    }
    immutable = ("sourceRegions",)
    rules = RULES

    @override
    def complete(self, key: str, value: Object) -> None:
        bodies = [kind for kind, body in _BODIES.items() if body in value]
        kind = value.get("type") or (bodies[0] if len(bodies) == 1 else None)
        if kind is None:
            raise required("type")
        if any(other != kind for other in bodies):
            raise invalid("type", kind, f"Only '{_BODIES.get(kind)}' may be given with this type.")
        if kind != "HTTP":
            raise not_served(f"health checks of type {kind} (only HTTP)")
        value["type"] = kind
        body = value.setdefault("httpHealthCheck", {})
        body.setdefault("requestPath", "/")
        body.setdefault("proxyHeader", "NONE")
        if not body.get("portName") and body.get("portSpecification") != "USE_SERVING_PORT":
            body.setdefault("port", 80)

    @override
    def changed(self, key: str, value: Object, old: Object | None) -> None:
        if old is not None:
            self.cloud.health.refresh()

    def read(self, key: str) -> Check | None:
        """The check as the prober needs it, or None where it is gone."""
        value = self.store.get(key)
        if value is None:
            return None
        body = value["httpHealthCheck"]
        return Check(
            key,
            float(value["checkIntervalSec"]),
            float(value["timeoutSec"]),
            value["healthyThreshold"],
            value["unhealthyThreshold"],
            int(body.get("port", 80)),
            body["requestPath"],
            body.get("host"),
        )

"""Health checks.

https://cloud.google.com/load-balancing/docs/health-check-concepts
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from .errors import invalid, not_served, required
from .links import key_of
from .resource import Resource
from .rules import DISCOVERY, Rule, at, between, holds
from .store import Object

_BODIES = {
    "HTTP": "httpHealthCheck",
    "HTTPS": "httpsHealthCheck",
    "HTTP2": "http2HealthCheck",
    "TCP": "tcpHealthCheck",
    "SSL": "sslHealthCheck",
    "GRPC": "grpcHealthCheck",
    "GRPC_WITH_TLS": "grpcTlsHealthCheck",
}
_PROBED = {"HTTP": 80, "HTTPS": 443, "TCP": 80, "SSL": 443}
"""Type → port where none is given: discovery document compute.v1, ``HTTPHealthCheck.port`` and the others' ``port``."""
_NO_SERVING_PORT = "USE_SERVING_PORT is for proxy load balancers only."
"""Discovery document compute.v1, ``HTTPHealthCheck.portSpecification``."""
_REST = "https://cloud.google.com/compute/docs/reference/rest/v1/healthChecks"


def _body_rules(body: str, schema: str) -> tuple[Rule, ...]:
    """What holds for what a check of one type says."""

    def text(field: str) -> Rule:
        return holds(
            f"{body}.{field}",
            "Must be at most 1024 ASCII characters.",
            f"{DISCOVERY}{schema}.{field}",
            lambda check: (said := str(at(check, f"{body}.{field}") or "")).isascii() and len(said) <= 1024,
        )

    return (
        between(f"{body}.port", 1, 65535, f"{DISCOVERY}{schema}.port"),
        holds(
            f"{body}.requestPath",
            "The path must begin with '/' and have no spaces.",
            "https://cloud.google.com/load-balancing/docs/health-check-concepts#optional-flags-hc-protocol-http",
            lambda check: _good_path(at(check, f"{body}.requestPath")),
        ),
        holds(
            f"{body}.portName",
            "portName and USE_NAMED_PORT are not supported.",
            f"{DISCOVERY}{schema}.portSpecification",
            lambda check: (
                not at(check, f"{body}.portName") and at(check, f"{body}.portSpecification") != "USE_NAMED_PORT"
            ),
        ),
        holds(
            f"{body}.port",
            "A port may not be given with USE_SERVING_PORT.",
            f"{DISCOVERY}{schema}.portSpecification",
            lambda check: not at(check, f"{body}.port") or at(check, f"{body}.portSpecification") != "USE_SERVING_PORT",
        ),
        text("request"),
        text("response"),
    )


RULES = (
    between("checkIntervalSec", 1, 300, _REST),
    between("timeoutSec", 1, 300, _REST),
    between("healthyThreshold", 1, 10, _REST),
    between("unhealthyThreshold", 1, 10, _REST),
    holds(
        "timeoutSec",
        "The timeout must not be greater than the check interval.",
        DISCOVERY + "HealthCheck.timeoutSec",
        lambda check: check["timeoutSec"] <= check["checkIntervalSec"],
    ),
    *(rule for kind in _PROBED for rule in _body_rules(_BODIES[kind], f"{kind}HealthCheck")),
)


def _good_path(path: Any) -> bool:
    if path is None:
        return True
    text = str(path)
    return text.startswith("/") and text.isprintable() and " " not in text and text.isascii()


@dataclass(frozen=True)
class Check:
    """A health check as the prober needs it. Times in seconds; what is asked and wanted: `substrate.Probe`."""

    key: str
    interval: float
    timeout: float
    healthy: int
    unhealthy: int
    port: int
    path: str = "/"
    host: str | None = None
    http: bool = True
    tls: bool = False
    proxy: bool = False
    request: str = ""
    response: str = ""


class HealthChecks(Resource):
    """``healthChecks`` and ``regionHealthChecks``: how probes are sent and counted."""

    collection = "healthChecks"
    noun = "health_check"
    kind = "healthCheck"
    served: ClassVar = {"global": "healthChecks", "regions": "regionHealthChecks"}
    verbs = ("insert", "get", "list", "aggregatedList", "patch", "update", "delete", "testIamPermissions")
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
        if kind not in _PROBED:
            raise not_served(f"health checks of type {kind} (only {', '.join(_PROBED)})")
        value["type"] = kind
        body = value.setdefault(_BODIES[kind], {})
        if kind in ("HTTP", "HTTPS"):
            body.setdefault("requestPath", "/")
        body.setdefault("proxyHeader", "NONE")
        if body.get("portSpecification") != "USE_SERVING_PORT":
            body.setdefault("port", _PROBED[kind])

    @override
    def changed(self, key: str, value: Object, old: Object | None) -> None:
        if old is not None:
            self.cloud.health.refresh()

    def read(self, key: str) -> Check | None:
        """The check as the prober needs it, or None where it is gone."""
        value = self.store.get(key)
        if value is None:
            return None
        kind = value["type"]
        body = value[_BODIES[kind]]
        return Check(
            key,
            float(value["checkIntervalSec"]),
            float(value["timeoutSec"]),
            value["healthyThreshold"],
            value["unhealthyThreshold"],
            port=int(body.get("port") or _PROBED[kind]),
            path=body.get("requestPath", "/"),
            host=body.get("host"),
            http=kind in ("HTTP", "HTTPS"),
            tls=kind in ("HTTPS", "SSL"),
            proxy=body["proxyHeader"] == "PROXY_V1",
            request=body.get("request", ""),
            response=body.get("response", ""),
        )

    @override
    def check(self, key: str, value: Object, old: Object | None) -> None:
        if self.store.users(key) and _port_of_service(value):
            raise invalid(f"{_BODIES[value['type']]}.portSpecification", "USE_SERVING_PORT", _NO_SERVING_PORT)

    def require_own_port(self, field: str, text: str) -> None:
        """Refuses a check that would have to find its port in a backend service; `text` is a link to the check."""
        if _port_of_service(self.store.require(key_of(text))):
            raise invalid(field, text, _NO_SERVING_PORT)


def _port_of_service(check: Object) -> bool:
    return bool(check[_BODIES[check["type"]]].get("portSpecification") == "USE_SERVING_PORT")

"""Health checks of every type: how each is read back, what the prober is told, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.api.conftest import Door

CHECKS = "/compute/v1/projects/lab/global/healthChecks"


@pytest.mark.parametrize(
    ("kind", "given", "port", "told"),
    [
        ("HTTP", {"response": "ok"}, 80, {"http": True, "tls": False, "response": "ok", "path": "/"}),
        ("HTTPS", {"requestPath": "/x", "host": "h"}, 443, {"http": True, "tls": True, "path": "/x", "host": "h"}),
        ("TCP", {"proxyHeader": "PROXY_V1"}, 80, {"http": False, "tls": False, "proxy": True}),
        ("SSL", {"request": "a", "response": "b"}, 443, {"http": False, "tls": True, "request": "a", "response": "b"}),
    ],
)
def test_each_type_is_probed_as_it_says(
    door: Door, kind: str, given: dict[str, Any], port: int, told: dict[str, Any]
) -> None:
    body = f"{kind.lower()}HealthCheck"
    door.ok("POST", CHECKS, {"name": "hc", "type": kind, body: given})
    got = door.ok("GET", f"{CHECKS}/hc")
    assert (got["type"], got[body]["port"]) == (kind, port)
    check = door.cloud.health_checks.read("projects/lab/global/healthChecks/hc")
    assert check is not None
    assert {name: getattr(check, name) for name in told} == told
    assert check.port == port


def test_a_check_may_become_one_of_another_type(door: Door) -> None:
    """The plugin sends a changed type as PUT of the whole."""
    door.ok("POST", CHECKS, {"name": "hc", "type": "TCP", "tcpHealthCheck": {"port": 22}})
    door.ok("PUT", f"{CHECKS}/hc", {"name": "hc", "type": "HTTP", "httpHealthCheck": {"port": 9000}})
    got = door.ok("GET", f"{CHECKS}/hc")
    assert got["type"] == "HTTP" and "tcpHealthCheck" not in got


@pytest.mark.parametrize(
    ("kind", "given", "sentence"),
    [
        ("TCP", {"port": 99999}, "between 1 and 65535"),
        ("TCP", {"portName": "web"}, "not supported"),
        ("HTTP", {"portSpecification": "USE_NAMED_PORT"}, "not supported"),
        ("HTTP", {"portSpecification": "USE_SERVING_PORT", "port": 80}, "may not be given"),
        ("SSL", {"response": "x" * 1025}, "1024 ASCII"),
        ("TCP", {"request": "é"}, "1024 ASCII"),
    ],
)
def test_what_no_check_may_say(door: Door, kind: str, given: dict[str, Any], sentence: str) -> None:
    code, reason, message = door.refused(
        "POST", CHECKS, {"name": "hc", "type": kind, f"{kind.lower()}HealthCheck": given}
    )
    assert (code, reason) == (400, "invalid") and sentence in message


@pytest.mark.parametrize(("kind", "body"), [("HTTP2", "http2HealthCheck"), ("GRPC", "grpcHealthCheck")])
def test_types_that_are_not_probed_are_not_served(door: Door, kind: str, body: str) -> None:
    assert door.refused("POST", CHECKS, {"name": "hc", "type": kind, body: {"port": 80}})[:2] == (501, "notImplemented")


def test_the_serving_port_is_for_proxies(door: Door) -> None:
    spec = {"portSpecification": "USE_SERVING_PORT"}
    door.ok("POST", CHECKS, {"name": "serving", "type": "HTTP", "httpHealthCheck": spec})
    door.ok("POST", CHECKS, {"name": "hc", "type": "HTTP", "httpHealthCheck": {"port": 80}})
    services = "/compute/v1/projects/lab/regions/us-central1/backendServices"
    body = {"name": "bs", "loadBalancingScheme": "INTERNAL", "healthChecks": ["global/healthChecks/serving"]}
    assert "proxy load balancers only" in door.refused("POST", services, body)[2]
    door.ok("POST", services, body | {"healthChecks": ["global/healthChecks/hc"]})
    used = {"name": "hc", "type": "HTTP", "httpHealthCheck": spec}
    assert "proxy load balancers only" in door.refused("PUT", f"{CHECKS}/hc", used)[2]

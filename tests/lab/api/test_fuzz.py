"""Whatever is sent, the answer is Google's form and never a 500; nothing leaves the lab's folder."""

from __future__ import annotations

import json
import os
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from multinic.lab.api.app import SERVICES
from multinic.lab.api.documents import Document, document
from multinic.lab.cloud import Cloud
from tests.lab.api.conftest import Door

QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
APIS = {
    "v1": ("compute.v1", "/compute/v1/"),
    "beta": ("compute.beta", "/compute/beta/"),
    **{name: (service.document, f"/{name}/") for name, service in SERVICES.items()},
}
"""Document and path of each API; Compute Engine's by version."""
ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "1"))
"""Requests for each method; a long run takes more: FUZZ_ROUNDS=200 pytest tests/lab/api/test_fuzz.py"""

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(["a", "10.0.0.0/24", "global/networks/a", "projects/lab/global/networks/a", "TCP", "../../x"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(string.ascii_letters, max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)


Request = tuple[str, str, Any, dict[str, str]]
"""Verb, path, body and headers."""


@st.composite
def plausible(draw: st.DrawFn, found: Document, schema: str, depth: int = 0) -> dict[str, Any]:
    """A body of a schema: mostly of the right types, now and then not."""
    properties = found.schemas[schema].get("properties", {})
    names = draw(st.lists(st.sampled_from(sorted(properties)), max_size=8, unique=True)) if properties else []
    body = {name: draw(value(found, properties[name], depth)) for name in names}
    if "name" in properties and draw(st.booleans()):
        body["name"] = draw(st.sampled_from(["a", "b", "sub-a", "t"]))
    return body


def value(found: Document, definition: dict[str, Any], depth: int) -> SearchStrategy[Any]:
    if depth > 3:
        return st.none()
    likely = likely_value(found, definition, depth)
    return st.one_of(likely, likely, likely, JSON)


def likely_value(found: Document, definition: dict[str, Any], depth: int) -> SearchStrategy[Any]:
    if "$ref" in definition:
        return plausible(found, definition["$ref"], depth + 1)
    if definition.get("enum"):
        return st.sampled_from(sorted(definition["enum"]))
    match definition.get("type"):
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(-2, 10_000)
        case "number":
            return st.floats(0, 1)
        case "array":
            return st.lists(value(found, definition["items"], depth + 1), max_size=3)
        case "object":
            return st.dictionaries(st.text("ab", max_size=3), JSON, max_size=2)
    return st.sampled_from(
        ["a", "10.9.0.0/24", "10.0.0.9", "global/networks/a", "regions/us-central1/subnetworks/sub-a", "tcp", "80", ""]
    )


NAMES = st.sampled_from(
    ["a", "b", "fleet", "lab", "no", "..", "%2e%2e", "a%2Fb", "x" * 80, "A B", "1", "%00", "é", "-"]
)
PLACES = {
    "project": st.just("lab"),
    "projectsId": st.just("lab"),
    "zone": st.sampled_from(["us-central1-a", "mars"]),
    "region": st.just("us-central1"),
    "v1Id": st.just("projects"),
    "v1Id1": st.just("lab"),
}
TEXTS = [
    "",
    "1",
    "-5",
    "x",
    "true",
    "name=a",
    "((",
    "items(name)",
    "99999999999999999999",
    "%F0",
    "null",
    "a,b",
    "2026-11-01T00:00:00Z",
]
QUERIES = [*TEXTS, "metric.type%3D%22compute.googleapis.com/instance/cpu/utilization%22", "ALIGN_MEAN", "60s"]
HEADERS = st.sampled_from(
    [{}, {"content-type": "text/plain"}, {"x-http-method-override": "DELETE"}, {"content-encoding": "gzip"}]
)


@st.composite
def requests(draw: st.DrawFn, api: str, name: str) -> Request:
    """A request for one method: path, query and body mostly right."""
    document_name, prefix = APIS[api]
    found = document(document_name)
    method = found.methods[name]
    path = method.path
    for variable in method.names:
        path = path.replace(f"{{{variable}}}", draw(PLACES.get(variable, NAMES)), 1)
    query = []
    for parameter in [*method.parameters.values(), *found.common.values()]:
        likely = parameter.required or draw(st.integers(0, 3)) == 0
        if parameter.location == "query" and likely:
            query.append(f"{parameter.name}={draw(st.sampled_from(QUERIES))}")
    bodies = st.one_of(*[plausible(found, method.request)] * 4, JSON) if method.request else st.none()
    body = draw(bodies)
    return method.verb, f"{prefix}{path}" + ("?" + "&".join(query) if query else ""), body, draw(HEADERS)


@pytest.fixture
def furnished(door: Door) -> Door:
    """Something to change and to refer to: what the plugin's requests create, under names that the fuzz uses."""
    base = "/compute/v1/projects/lab"
    image = "projects/debian-cloud/global/images/debian-12-bookworm-v20260101"
    properties = {
        "machineType": "e2-small",
        "disks": [{"boot": True, "autoDelete": True, "initializeParams": {"sourceImage": image}}],
        "networkInterfaces": [{"subnetwork": "regions/us-central1/subnetworks/sub-a"}],
    }
    check = {"name": "a", "type": "HTTP", "httpHealthCheck": {"port": 80}}
    service = {
        "name": "a",
        "loadBalancingScheme": "INTERNAL",
        "backends": [{"group": "zones/us-central1-a/instanceGroups/fleet"}],
        "healthChecks": ["regions/us-central1/healthChecks/a"],
    }
    rule = {
        "name": "a",
        "loadBalancingScheme": "INTERNAL",
        "allPorts": True,
        "backendService": "regions/us-central1/backendServices/a",
        "subnetwork": "regions/us-central1/subnetworks/sub-a",
    }
    for path, body in (
        ("global/networks", {"name": "a", "autoCreateSubnetworks": False}),
        (
            "regions/us-central1/subnetworks",
            {"name": "sub-a", "network": "global/networks/a", "ipCidrRange": "10.0.0.0/24"},
        ),
        ("global/instanceTemplates", {"name": "t", "properties": properties}),
        ("global/healthChecks", check),
        ("regions/us-central1/healthChecks", check),
        (
            "zones/us-central1-a/instanceGroupManagers",
            {"name": "fleet", "targetSize": 2, "versions": [{"instanceTemplate": "global/instanceTemplates/t"}]},
        ),
        ("regions/us-central1/backendServices", service),
        ("regions/us-central1/forwardingRules", rule),
        (
            "zones/us-central1-a/instances",
            {"name": "a", **properties, "machineType": "zones/us-central1-a/machineTypes/e2-small"},
        ),
    ):
        door.ok("POST", f"{base}/{path}", body)
    return door


def served(cloud: Cloud) -> list[tuple[str, str]]:
    """(API, method) of everything that is served."""
    compute = [(api, name) for api in ("v1", "beta") for name in sorted(cloud.serves())]
    return compute + [(api, name) for api, service in SERVICES.items() for name in sorted(service.methods)]


def test_no_request_breaks_the_lab(furnished: Door) -> None:
    for api, name in served(furnished.cloud):
        goes_well(furnished, requests(api, name))


def goes_well(door: Door, strategy: SearchStrategy[Request]) -> None:
    @settings(QUICK, max_examples=ROUNDS, database=None, phases=[Phase.generate, Phase.shrink])
    @given(request=strategy)
    def check(request: Request) -> None:
        verb, path, body, headers = request
        response = door.send(verb, path, body, headers=headers)
        told = (verb, path, body, headers, response.text)
        assert response.status_code < 500 or response.status_code in (501, 503), told
        if response.status_code != 200:
            error = response.json()["error"]
            assert error["code"] == response.status_code, told
            assert error["message"], told

    check()


@QUICK
@given(raw=st.binary(max_size=200), path=st.text(max_size=60))
def test_no_bytes_break_the_door(door: Door, raw: bytes, path: str) -> None:
    response = door.send("POST", "/compute/v1/projects/lab/global/networks", content=raw)
    assert response.status_code in (200, 400)
    safe = "".join(c for c in path if c.isprintable() and c not in "?#\\[]@:")
    assert door.send("GET", "/lab/v1/" + safe).status_code < 500


@pytest.mark.parametrize("name", ["../../../escape", "..%2f..%2fescape", "/etc/passwd", "a/b", ".", ".."])
def test_no_name_leaves_the_folder(door: Door, name: str, tmp_path: Path) -> None:
    before = set(tmp_path.parent.iterdir())
    door.send("POST", "/compute/v1/projects/lab/global/networks", {"name": name, "autoCreateSubnetworks": False})
    door.send("POST", "/iam/v1/projects/lab/serviceAccounts", {"accountId": name})
    door.send("GET", f"/compute/v1/projects/lab/global/networks/{name}")
    door.send("DELETE", f"/iam/v1/projects/lab/serviceAccounts/{name}")
    assert set(tmp_path.parent.iterdir()) == before
    objects = [p for p in (tmp_path / "objects").rglob("*") if p.is_file()]
    assert not [p for p in objects if "escape" in p.name or "passwd" in p.name]


def test_deep_and_big_bodies(door: Door) -> None:
    path = "/compute/v1/projects/lab/global/networks"
    deep = b'{"a":' * 5000 + b"1" + b"}" * 5000
    assert door.send("POST", path, content=deep).status_code == 400
    assert door.send("POST", path, content=b"[" * 100_000).status_code == 400
    big = json.dumps({"name": "a", "description": "x" * (5 * 1024 * 1024)}).encode()
    assert door.send("POST", path, content=big).status_code == 413

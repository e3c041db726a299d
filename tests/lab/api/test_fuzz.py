"""Whatever is sent, the answer is Google's form and never a 500; nothing leaves the lab's folder."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from multinic.lab.api.documents import document

QUICK = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
DOCUMENT = document("compute.v1")

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


@st.composite
def plausible(draw, schema, depth=0):
    """A body of a schema: mostly of the right types, now and then not."""
    properties = DOCUMENT.schemas[schema].get("properties", {})
    names = draw(st.lists(st.sampled_from(sorted(properties)), max_size=8, unique=True)) if properties else []
    body = {name: draw(value(properties[name], depth)) for name in names}
    if "name" in properties and draw(st.booleans()):
        body["name"] = draw(st.sampled_from(["a", "b", "sub-a", "t"]))
    return body


def value(definition, depth):
    if depth > 3:
        return st.none()
    likely = likely_value(definition, depth)
    return st.one_of(likely, likely, likely, JSON)


def likely_value(definition, depth):
    if "$ref" in definition:
        return plausible(definition["$ref"], depth + 1)
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
            return st.lists(value(definition["items"], depth + 1), max_size=3)
        case "object":
            return st.dictionaries(st.text("ab", max_size=3), JSON, max_size=2)
    return st.sampled_from(
        ["a", "10.9.0.0/24", "10.0.0.9", "global/networks/a", "regions/us-central1/subnetworks/sub-a", "tcp", "80", ""]
    )


NAMES = st.sampled_from(["a", "b", "fleet", "no", "..", "%2e%2e", "a%2Fb", "x" * 80, "A B", "1", "é"])
PLACES = {
    "project": st.just("lab"),
    "zone": st.sampled_from(["us-central1-a", "mars"]),
    "region": st.just("us-central1"),
}


@st.composite
def requests(draw, served):
    method = DOCUMENT.methods[draw(st.sampled_from(served))]
    path = "/".join(
        draw(PLACES.get(part.strip("{}"), NAMES)) if part.startswith("{") else part for part in method.path.split("/")
    )
    query = []
    for name, parameter in method.parameters.items():
        if parameter.location == "query" and draw(st.integers(0, 3)) == 0:
            text = draw(
                st.sampled_from(["", "1", "-5", "x", "true", "name=a", "((", "items(name)", "99999999999999999999"])
            )
            query.append(f"{name}={text}")
    body = draw(plausible(method.request)) if method.request else None
    return method.verb, f"/compute/v1/{path}" + ("?" + "&".join(query) if query else ""), body


@pytest.fixture
def furnished(door):
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
        ("zones/us-central1-a/instances", {"name": "a", **properties, "machineType": "zones/z/machineTypes/e2-small"}),
    ):
        door.ok("POST", f"{base}/{path}", body)
    return door


@settings(QUICK, max_examples=400)
@given(data=st.data())
def test_no_request_breaks_the_lab(furnished, data):
    door = furnished
    served = sorted(door.cloud.serves() & set(DOCUMENT.methods))
    verb, path, body = data.draw(requests(served))
    response = door.send(verb, path, body)
    assert response.status_code < 500 or response.status_code in (501, 503), (verb, path, body, response.text)
    answer = response.json()
    if response.status_code != 200:
        assert answer["error"]["code"] == response.status_code
        assert answer["error"]["message"]


@QUICK
@given(body=JSON, path=st.sampled_from(["/iam/v1/projects/lab/serviceAccounts", "/crm/v1/projects/lab:setIamPolicy"]))
def test_no_body_breaks_the_other_apis(door, path, body):
    assert door.send("POST", path, body).status_code < 500


@QUICK
@given(raw=st.binary(max_size=200), path=st.text(max_size=60))
def test_no_bytes_break_the_door(door, raw, path):
    response = door.send("POST", "/compute/v1/projects/lab/global/networks", content=raw)
    assert response.status_code in (200, 400)
    safe = "".join(c for c in path if c.isprintable() and c not in "?#\\[]@:")
    assert door.send("GET", "/lab/v1/" + safe).status_code < 500


@pytest.mark.parametrize("name", ["../../../escape", "..%2f..%2fescape", "/etc/passwd", "a/b", ".", ".."])
def test_no_name_leaves_the_folder(door, name, tmp_path):
    before = set(tmp_path.parent.iterdir())
    door.send("POST", "/compute/v1/projects/lab/global/networks", {"name": name, "autoCreateSubnetworks": False})
    door.send("POST", "/iam/v1/projects/lab/serviceAccounts", {"accountId": name})
    door.send("GET", f"/compute/v1/projects/lab/global/networks/{name}")
    door.send("DELETE", f"/iam/v1/projects/lab/serviceAccounts/{name}")
    assert set(tmp_path.parent.iterdir()) == before
    objects = [p for p in (tmp_path / "objects").rglob("*") if p.is_file()]
    assert not [p for p in objects if "escape" in p.name or "passwd" in p.name]


def test_deep_and_big_bodies(door):
    path = "/compute/v1/projects/lab/global/networks"
    deep = b'{"a":' * 5000 + b"1" + b"}" * 5000
    assert door.send("POST", path, content=deep).status_code == 400
    assert door.send("POST", path, content=b"[" * 100_000).status_code == 400
    big = json.dumps({"name": "a", "description": "x" * (5 * 1024 * 1024)}).encode()
    assert door.send("POST", path, content=big).status_code == 413

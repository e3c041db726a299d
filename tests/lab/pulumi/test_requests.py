"""Inputs of resources and the requests that the real plugin makes of them, one case for each type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from multinic.lab.pulumi.rest import Rest
from multinic.lab.pulumi.stand_in import Gcp
from multinic.lab.pulumi.types import TABLE
from tests.lab.pulumi.fake_api import FakeApi
from tests.lab.pulumi.requests import normal

CASES = json.loads((Path(__file__).parent / "fixtures" / "requests.json").read_text())
SEED = bytes(range(32))


def provided(api: FakeApi, case: dict[str, Any]) -> Gcp:
    """The stand-in, beside what has to be there before the case's resource."""
    for key, body in case.get("before", {}).items():
        api.insert(key, body)
    return Gcp(Rest(api.endpoint, "t"), "lab", "europe-west1")


def send(api: FakeApi, case: dict[str, Any]) -> list[dict[str, Any]]:
    """Create a case's resource, change it if the case says so, and return the requests that change something."""
    provider = provided(api, case)
    inputs, problems = provider.check(case["type"], "logical", None, case["inputs"], SEED)
    assert problems == []
    identity, state = provider.create(case["type"], inputs, 5)
    if "then" in case:
        changed, problems = provider.check(case["type"], "logical", inputs, case["inputs"] | case["then"], SEED)
        assert problems == []
        provider.update(case["type"], identity, inputs, state, changed, 5)
    return [
        {"method": request["method"], "path": normal(request["path"]), "body": normal(request["body"])}
        for request in api.requests
        if request["method"] != "GET"
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_inputs_become_the_plugins_requests(api: FakeApi, case: dict[str, Any]) -> None:
    assert send(api, case) == normal_requests(case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_what_was_made_is_read_without_a_difference(api: FakeApi, case: dict[str, Any]) -> None:
    provider = provided(api, case)
    inputs, _ = provider.check(case["type"], "logical", None, case["inputs"], SEED)
    identity, state = provider.create(case["type"], inputs, 5)

    found = provider.read(case["type"], identity, inputs, state)

    assert found is not None
    assert found[0] == inputs
    assert provider.diff(case["type"], found[0], found[1], inputs).changed == []


def normal_requests(case: dict[str, Any]) -> list[dict[str, Any]]:
    return [request | {"body": normal(request["body"])} for request in case["requests"]]


def test_every_type_of_our_stacks_has_a_case() -> None:
    without = {"regionInstanceGroupManager", "regionAutoscaler"}
    tested = {case["type"] for case in CASES}
    assert {token for token in TABLE if token.split("/")[1].split(":")[0] not in without} == tested

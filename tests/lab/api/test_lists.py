"""Pages of lists, of aggregated lists, and requests that are sent twice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.api.conftest import Door

V1 = "/compute/v1/projects/lab"
NETWORKS = f"{V1}/global/networks"


@pytest.fixture
def many(door: Door) -> Door:
    for name in ("n1", "n3", "n5", "n7"):
        door.ok("POST", NETWORKS, {"name": name, "autoCreateSubnetworks": False})
    return door


def names(answer: dict[str, Any]) -> list[str]:
    return [item["name"] for item in answer.get("items", [])]


def test_what_is_deleted_or_made_between_pages_shifts_nothing(many: Door) -> None:
    first = many.ok("GET", f"{NETWORKS}?maxResults=2")
    assert names(first) == ["n1", "n3"]
    many.ok("DELETE", f"{NETWORKS}/n1")
    many.ok("POST", NETWORKS, {"name": "n2", "autoCreateSubnetworks": False})
    second = many.ok("GET", f"{NETWORKS}?maxResults=2&pageToken={first['nextPageToken']}")
    assert names(second) == ["n5", "n7"]
    assert "nextPageToken" not in second


def test_newest_first_in_pages(many: Door) -> None:
    first = many.ok("GET", f"{NETWORKS}?maxResults=3&orderBy=creationTimestamp desc")
    second = many.ok(
        "GET", f"{NETWORKS}?maxResults=3&orderBy=creationTimestamp desc&pageToken={first['nextPageToken']}"
    )
    assert names(first) + names(second) == ["n7", "n5", "n3", "n1"]


def test_aggregated_lists_have_pages_filters_and_warnings(door: Door) -> None:
    door.ok("POST", NETWORKS, {"name": "auto", "autoCreateSubnetworks": True})
    path = f"{V1}/aggregated/subnetworks"
    whole = door.ok("GET", path)["items"]
    assert all(len(content["subnetworks"]) == 1 for content in whole.values())
    seen, token = [], ""
    for _ in whole:
        answer = door.ok("GET", f"{path}?maxResults=1&pageToken={token}")
        seen += [scope for scope, content in answer["items"].items() if "subnetworks" in content]
        token = answer.get("nextPageToken", "")
    assert (seen, token) == (sorted(whole), "")
    one = door.ok("GET", f"{path}?filter=ipCidrRange=10.128.0.0/20")["items"]
    assert [scope for scope, content in one.items() if "subnetworks" in content] == ["regions/us-central1"]
    assert one["regions/us-east1"]["warning"]["code"] == "NO_RESULTS_ON_PAGE"


def test_a_request_sent_twice_is_carried_out_once(door: Door) -> None:
    number = "3f1f3a52-4a4b-4a5e-9c62-0d3f5b7a9e11"
    body = {"name": "n", "autoCreateSubnetworks": False}
    first = door.ok("POST", f"{NETWORKS}?requestId={number}", body)
    assert door.ok("POST", f"{NETWORKS}?requestId={number}", body)["name"] == first["name"]
    other = number.replace("3f", "4f")
    assert door.refused("POST", f"{NETWORKS}?requestId={other}", body)[:2] == (409, "alreadyExists")
    # A request that was refused has not been carried out.
    door.ok("DELETE", f"{NETWORKS}/n")
    assert door.ok("POST", f"{NETWORKS}?requestId={other}", body)["name"] != first["name"]


@pytest.mark.parametrize("number", ["1", "x" * 36, "00000000-0000-0000-0000-000000000000"])
def test_request_ids_are_uuids(door: Door, number: str) -> None:
    code, reason, message = door.refused("POST", f"{NETWORKS}?requestId={number}", {"name": "n"})
    assert (code, reason) == (400, "invalid")
    assert "UUID" in message

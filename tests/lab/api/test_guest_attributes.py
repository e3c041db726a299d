"""Guest attributes: written by a VM's own program, read by REST, gone with the VM."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.api.conftest import Door

BASE = "/compute/v1/projects/lab"
INSTANCES = f"{BASE}/zones/us-central1-a/instances"
KEY = "projects/lab/zones/us-central1-a/instances/vm"
ENABLED = {"items": [{"key": "enable-guest-attributes", "value": "TRUE"}]}


@pytest.fixture
def vm(door: Door) -> Door:
    door.ok("POST", f"{BASE}/global/networks", {"name": "net", "autoCreateSubnetworks": False})
    subnet = {"name": "sub", "network": "global/networks/net", "ipCidrRange": "10.0.0.0/24"}
    door.ok("POST", f"{BASE}/regions/us-central1/subnetworks", subnet)
    image = {"sourceImage": "projects/debian-cloud/global/images/debian-12-bookworm-v20260101"}
    door.ok(
        "POST",
        INSTANCES,
        {
            "name": "vm",
            "machineType": "zones/us-central1-a/machineTypes/e2-small",
            "disks": [{"boot": True, "autoDelete": True, "initializeParams": image}],
            "networkInterfaces": [{"subnetwork": "regions/us-central1/subnetworks/sub"}],
            "metadata": ENABLED,
        },
    )
    return door


def read(door: Door, query: str) -> dict[str, Any]:
    return door.ok("GET", f"{INSTANCES}/vm/getGuestAttributes?{query}")


def instance(door: Door) -> dict[str, Any]:
    tree = door.cloud.metadata(KEY)
    assert tree is not None
    found: dict[str, Any] = tree["instance"]
    return found


def test_written_read_and_deleted(vm: Door) -> None:
    change = vm.cloud.guest_attributes.change
    assert vm.refused("GET", f"{INSTANCES}/vm/getGuestAttributes")[:2] == (404, "notFound")
    fingerprint = vm.ok("GET", f"{INSTANCES}/vm")["fingerprint"]
    for namespace, name, value in (("boot", "state", "ready"), ("boot", "took", "12"), ("keys", "rsa", "AA")):
        assert change(KEY, namespace, name, value) == (200, "")
    assert vm.ok("GET", f"{INSTANCES}/vm")["fingerprint"] == fingerprint, "they are no part of the instance"

    assert read(vm, "variableKey=boot/state")["variableValue"] == "ready"
    state = {"namespace": "boot", "key": "state", "value": "ready"}
    took = {"namespace": "boot", "key": "took", "value": "12"}
    assert read(vm, "queryPath=boot/state")["queryValue"] == {"items": [state]}
    assert read(vm, "queryPath=boot/") | {"selfLink": ""} == {
        "kind": "compute#guestAttributes",
        "queryPath": "boot/",
        "queryValue": {"items": [state, took]},
        "selfLink": "",
    }
    assert len(read(vm, "queryPath=")["queryValue"]["items"]) == 3
    for query in ("queryPath=none/", "queryPath=boot/none", "variableKey=boot", "variableKey=boot/none"):
        assert vm.refused("GET", f"{INSTANCES}/vm/getGuestAttributes?{query}")[0] == 404

    # The VM reads them too, and they are on disk with it.
    assert instance(vm)["guestAttributes"]["keys"] == {"rsa": "AA"}
    (record,) = vm.cloud.folder.rglob("instances/vm.json")
    assert json.loads(record.read_text())["_guestAttributes"]["boot"] == {"state": "ready", "took": "12"}
    assert change(KEY, "keys", "rsa", None) == (200, "")
    assert change(KEY, "keys", "rsa", None)[0] == 404
    assert vm.refused("GET", f"{INSTANCES}/vm/getGuestAttributes?queryPath=keys/")[0] == 404


def test_only_where_enabled_and_within_limits(vm: Door) -> None:
    change = vm.cloud.guest_attributes.change
    assert change(KEY, "a b", "k", "x")[0] == 400
    assert change(KEY, "a", "k" * 129, "x")[0] == 400
    assert change(KEY, "a", "k", "x" * 262_145)[0] == 413
    assert change(KEY, "a", "one", "x" * 262_000) == (200, "")
    assert change(KEY, "a", "two", "x" * 262_000) == (200, "")
    assert change(KEY, "a", "three", "x")[0] == 200
    assert change(KEY, "a", "four", "x" * 1000)[0] == 413
    assert change(KEY + "-gone", "a", "k", "x")[0] == 403

    metadata = vm.ok("GET", f"{INSTANCES}/vm")["metadata"]
    vm.ok("POST", f"{INSTANCES}/vm/setMetadata", {"fingerprint": metadata["fingerprint"], "items": []})
    assert change(KEY, "a", "one", "y")[0] == 403
    assert vm.refused("GET", f"{INSTANCES}/vm/getGuestAttributes?queryPath=a/")[0] == 404
    assert "guestAttributes" not in instance(vm)

"""What the stand-in reads of an instance's boot disk, and changes of one that has to stop for them."""

from __future__ import annotations

from typing import Any

import pytest

from multinic.lab.pulumi.rest import ApiError, Rest
from multinic.lab.pulumi.stand_in import Gcp
from tests.lab.pulumi.fake_api import FakeApi

TOKEN = "gcp:compute/instance:Instance"
PLACE = "projects/lab/zones/us-central1-a/instances"
IMAGE = "projects/debian-cloud/global/images/debian-12-bookworm-v20260921"
CLIENT: dict[str, Any] = {
    "name": "client",
    "zone": "us-central1-a",
    "machineType": "n2-standard-2",
    "bootDisk": {"initializeParams": {"image": IMAGE, "size": 10, "type": "pd-balanced"}},
    "networkInterfaces": [{"subnetwork": "projects/lab/regions/us-central1/subnetworks/s"}],
    "allowStoppingForUpdate": True,
}


def _made(api: FakeApi, **more: Any) -> tuple[Gcp, dict[str, Any], dict[str, Any]]:
    provider = Gcp(Rest(api.endpoint, "t"))
    inputs, problems = provider.check(TOKEN, "client", None, CLIENT | more, bytes(32))
    assert problems == []
    identity, state = provider.create(TOKEN, inputs, 5)
    assert identity == f"{PLACE}/client"
    return provider, inputs, state


def test_the_boot_disk_is_read_where_it_is_and_shows_drift(api: FakeApi) -> None:
    provider, inputs, state = _made(api)
    assert any(request["path"].endswith("/disks/client") for request in api.requests)
    params = state["bootDisk"]["initializeParams"]
    assert (params["size"], params["type"], params["image"]) == (10, "pd-balanced", IMAGE)

    api.objects[f"{PLACE}/client"]["disks"][0]["initializeParams"]["diskSizeGb"] = "20"
    found = provider.read(TOKEN, f"{PLACE}/client", inputs, state)
    assert found is not None
    assert found[0]["bootDisk"]["initializeParams"]["size"] == 20
    assert provider.diff(TOKEN, found[0], found[1], inputs).replaces == ["bootDisk"]


def test_an_imported_instance_shows_what_its_disk_was_made_from(api: FakeApi) -> None:
    provider, _, _ = _made(api)
    found = provider.read(TOKEN, f"{PLACE}/client", {}, {})
    assert found is not None
    params = found[0]["bootDisk"]["initializeParams"]
    assert params["image"].endswith(IMAGE)
    assert params["size"] == 10
    # The provider has no zone of its own here: without its zone the instance would be one to be moved.
    assert (found[0]["zone"], found[0]["project"]) == ("us-central1-a", "lab")
    assert provider.diff(TOKEN, found[0], found[1], found[0]).changed == []


def test_another_machine_type_stops_changes_and_starts(api: FakeApi) -> None:
    provider, inputs, state = _made(api)
    api.requests.clear()
    provider.update(TOKEN, f"{PLACE}/client", inputs, state, inputs | {"machineType": "n2-standard-4"}, 5)
    sent = [(one["path"].rpartition("/")[2], one["body"]) for one in api.requests if one["method"] == "POST"]
    machine_type = {"machineType": "projects/lab/zones/us-central1-a/machineTypes/n2-standard-4"}
    assert sent == [("stop", None), ("setMachineType", machine_type), ("start", None)]


def test_a_running_instance_is_not_stopped_unasked(api: FakeApi) -> None:
    provider, inputs, state = _made(api, allowStoppingForUpdate=False)
    api.requests.clear()
    changed = inputs | {"machineType": "n2-standard-4"}
    with pytest.raises(ApiError, match="Changing machineType of a started instance requires stopping it"):
        provider.update(TOKEN, f"{PLACE}/client", inputs, state, changed, 5)
    assert {one["method"] for one in api.requests} == {"GET"}


def test_scheduling_changes_while_it_runs_and_shielding_at_rest(api: FakeApi) -> None:
    provider, inputs, state = _made(api)
    api.requests.clear()
    wanted = inputs | {"scheduling": {"automaticRestart": False}, "shieldedInstanceConfig": {"enableSecureBoot": True}}
    checked, problems = provider.check(TOKEN, "client", inputs, wanted, bytes(32))
    assert problems == []
    provider.update(TOKEN, f"{PLACE}/client", inputs, state, checked, 5)
    sent = {one["path"].rpartition("/")[2]: one["body"] for one in api.requests if one["method"] in ("POST", "PATCH")}
    assert list(sent) == ["setScheduling", "stop", "updateShieldedInstanceConfig", "start"]
    assert sent["setScheduling"]["automaticRestart"] is False
    assert sent["updateShieldedInstanceConfig"]["enableSecureBoot"] is True

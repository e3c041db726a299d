"""Waiting for a managed instance group."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from multinic.lab.pulumi.lifecycle import NotReadyError
from multinic.lab.pulumi.rest import Rest
from multinic.lab.pulumi.stand_in import Gcp
from tests.lab.pulumi.fake_api import FakeApi

TOKEN = "gcp:compute/instanceGroupManager:InstanceGroupManager"
GROUP: dict[str, Any] = {
    "name": "fleet",
    "zone": "us-central1-a",
    "baseInstanceName": "r",
    "versions": [{"instanceTemplate": "projects/lab/global/instanceTemplates/t"}],
    "waitForInstances": True,
}
UNSTABLE = {"isStable": False, "versionTarget": {"isReached": False}}
OLD = {"isStable": True, "versionTarget": {"isReached": False}}
DONE = {"isStable": True, "versionTarget": {"isReached": True}}


def _create(api: FakeApi, timeout: float, **inputs: Any) -> tuple[str, dict[str, Any]]:
    provider = Gcp(Rest(api.endpoint, "t"))
    checked, problems = provider.check(TOKEN, "fleet", None, GROUP | inputs, bytes(32))
    assert problems == []
    return provider.create(TOKEN, checked, timeout)


@pytest.mark.parametrize(("wanted", "before", "after"), [("STABLE", UNSTABLE, OLD), ("UPDATED", OLD, DONE)])
def test_it_waits_until_the_group_is_what_was_asked_for(
    api: FakeApi, wanted: str, before: dict[str, Any], after: dict[str, Any]
) -> None:
    api.group_status = before
    result: list[Any] = []
    waiting = threading.Thread(target=lambda: result.append(_create(api, 600, waitForInstancesStatus=wanted)))
    waiting.start()
    while len([request for request in api.requests if request["method"] == "GET"]) < 3:
        time.sleep(0.01)
    assert result == []

    api.group_status = after
    waiting.join()

    assert result[0][1]["statuses"][0]["isStable"] is True


def test_without_waiting_it_is_done_at_once(api: FakeApi) -> None:
    api.group_status = UNSTABLE
    assert (
        _create(api, 600, waitForInstances=False)[0] == "projects/lab/zones/us-central1-a/instanceGroupManagers/fleet"
    )


def test_a_limit_that_passes_tells_the_groups_own_errors_and_keeps_the_group(api: FakeApi) -> None:
    api.group_status = UNSTABLE
    link = "https://www.googleapis.com/compute/v1/projects/lab/zones/us-central1-a/instances/r-0001"
    api.group_errors = [
        {"error": {"code": "QUOTA_EXCEEDED"}},
        {"error": {"message": "Quota 'CPUS' exceeded."}, "instanceActionDetails": {"instance": link}},
    ]
    with pytest.raises(NotReadyError) as failed:
        _create(api, 0.01)
    assert str(failed.value) == (
        "timeout while waiting for the group fleet to be STABLE; last errors: QUOTA_EXCEEDED; "
        "r-0001: Quota 'CPUS' exceeded."
    )
    assert failed.value.id in api.objects
    assert failed.value.outputs["instanceGroup"].endswith("/instanceGroups/fleet")


def test_a_group_without_an_error_of_its_own_says_so(api: FakeApi) -> None:
    api.group_status = UNSTABLE
    with pytest.raises(NotReadyError, match="the group reports no error of its own"):
        _create(api, 0.01)

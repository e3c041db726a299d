"""Update and destroy of the recorded program with the real engine. Not collected where the recording is not."""

from __future__ import annotations

import json
import shutil

import pytest

from multinic.lab.pulumi import engine
from tests.engine.conftest import Project
from tests.lab.pulumi.conftest import RECORDED_PROGRAM, RECORDED_REQUESTS
from tests.lab.pulumi.fake_api import FakeApi
from tests.lab.pulumi.requests import changes

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def test_every_step_of_the_recorded_program_sends_the_recorded_requests(project: Project, api: FakeApi) -> None:
    recorded = json.loads(RECORDED_REQUESTS.read_text())["requests"]
    shutil.copy(RECORDED_PROGRAM, project.folder / "__main__.py")
    config = {"gcp:project": "p", "gcp:region": "us-central1"}

    def sent() -> list[str]:
        found = changes(api.requests)
        api.requests.clear()
        return found

    deployment = engine.up(
        project.folder, stack="test", config=config, state=project.state, endpoint=api.endpoint, token="t"
    )
    assert sent() == changes([request for request in recorded if request["step"] == "create"])

    deployment.update(config | {"trial:step": "2"}, preview=False)
    assert sent() == changes([request for request in recorded if request["step"] == "update"])

    deployment.destroy()
    assert sent() == changes([request for request in recorded if request["step"] == "destroy"])
    assert api.objects == {}

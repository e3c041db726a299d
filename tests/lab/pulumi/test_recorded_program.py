"""The stand-ins against the recording of the real plugin, beside the repository. Not collected where that is not."""

from __future__ import annotations

import json
import runpy

from multinic.lab.pulumi import in_process
from tests.lab.pulumi.conftest import RECORDED_PROGRAM, RECORDED_REQUESTS
from tests.lab.pulumi.fake_api import FakeApi
from tests.lab.pulumi.requests import changes


def test_the_recorded_program_sends_the_recorded_requests(api: FakeApi) -> None:
    recorded = [r for r in json.loads(RECORDED_REQUESTS.read_text())["requests"] if r["step"] == "create"]

    deployment = in_process.up(
        lambda: runpy.run_path(str(RECORDED_PROGRAM)) and None,
        project="recorded",
        stack="dev",
        config={"gcp:project": "p", "gcp:region": "us-central1"},
        endpoint=api.endpoint,
        token="t",
    )

    assert changes(api.requests) == changes(recorded)
    deployment.destroy()
    assert api.objects == {}

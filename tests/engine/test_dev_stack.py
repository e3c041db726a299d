"""The repository's own program with the real engine, against the lab's front door."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from multinic.lab.pulumi import engine
from tests.engine.conftest import REPOSITORY, RunningLab, items

pytestmark = [pytest.mark.engine, pytest.mark.slow]

EMPTY_AFTERWARDS = (
    "global/networks",
    "global/firewalls",
    "global/instanceTemplates",
    "global/healthChecks",
    "regions/us-central1/subnetworks",
    "regions/us-central1/addresses",
    "regions/us-central1/backendServices",
    "regions/us-central1/forwardingRules",
    "zones/us-central1-a/instances",
    "zones/us-central1-a/instanceGroupManagers",
)


def test_the_dev_stack_comes_up_stays_the_same_and_goes(lab: RunningLab, tmp_path: Path) -> None:
    config = yaml.safe_load((REPOSITORY / "Pulumi.dev.yaml").read_text())["config"]
    before = {path: len(items(lab, path)) for path in EMPTY_AFTERWARDS}
    files = sorted(path.name for path in REPOSITORY.iterdir())

    deployment = engine.up(
        REPOSITORY, stack="dev", config=config, state=tmp_path / "state", endpoint=lab.endpoint, token=lab.token
    )
    try:
        assert len(deployment.outputs["next_hops"]) == 2
        assert deployment.update(preview=False) == {}
        assert deployment.refresh() == {}
        assert deployment.preview() == {}
    finally:
        deployment.destroy()

    assert {path: len(items(lab, path)) for path in EMPTY_AFTERWARDS} == before
    assert sorted(path.name for path in REPOSITORY.iterdir()) == files

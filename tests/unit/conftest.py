"""Shared by the unit tests: the dev stack's configuration and the settings of reference 1."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).parent.parent.parent


@pytest.fixture
def dev_config() -> dict[str, Any]:
    """What Pulumi.dev.yaml says, to be changed at will."""
    config: dict[str, Any] = yaml.safe_load((REPOSITORY / "Pulumi.dev.yaml").read_text())["config"]
    return copy.deepcopy(config)


@pytest.fixture(params=[False, True], ids=["up", "preview"])
def preview(request: pytest.FixtureRequest) -> bool:
    """Every test that takes it runs as a deployment and as a preview."""
    return bool(request.param)

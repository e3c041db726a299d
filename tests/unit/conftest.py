"""Shared by the unit tests: the dev stack's configuration and the settings of reference 1."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).parent.parent.parent

REFERENCE_1: dict[str, Any] = {
    "health": {
        "traffic": {"interval_sec": 3, "timeout_sec": 2, "healthy_threshold": 2, "unhealthy_threshold": 2},
        "heal": {"interval_sec": 10, "timeout_sec": 5, "healthy_threshold": 2, "unhealthy_threshold": 3},
    },
    "next_hop": {
        "session_affinity": "NONE",
        "tracking_mode": "PER_CONNECTION",
        "persistence": "DEFAULT_FOR_PROTOCOL",
        "draining_sec": 300,
    },
    "updates": {"min_ready_sec": 120},
}


@pytest.fixture
def dev_config() -> dict[str, Any]:
    """What Pulumi.dev.yaml says, to be changed at will."""
    config: dict[str, Any] = yaml.safe_load((REPOSITORY / "Pulumi.dev.yaml").read_text())["config"]
    return copy.deepcopy(config)


@pytest.fixture(params=[False, True], ids=["up", "preview"])
def preview(request: pytest.FixtureRequest) -> bool:
    """Every test that takes it runs as a deployment and as a preview."""
    return bool(request.param)

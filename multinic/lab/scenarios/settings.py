"""The two columns of the comparison, as configuration of the `dev` stack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OURS: Mapping[str, Any] = {}
"""Nothing: the program's own defaults."""

REFERENCE: Mapping[str, Any] = {
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
    "routes": {"priority": 901},
    "updates": {"min_ready_sec": 120},
}
"""What the Terraform module terraform-google-multinic sends, applied with Google's provider 7.45; its balancing mode
UTILIZATION is refused today and is CONNECTION here. Keys of `multinic:router`."""

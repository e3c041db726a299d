"""The two columns of the comparison, as config of the `dev` stack."""

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
}
"""What reference 1's Terraform module sends (terraform-google-multinic, applied with Google's provider 7.45)."""

"""What each machine type may send."""

from __future__ import annotations

import pytest

from multinic.lab.cloud.catalog import MACHINE_TYPES


@pytest.mark.parametrize(
    ("name", "plain", "tier_1"),
    [
        ("n1-highcpu-2", 10, 10),
        ("n1-standard-1", 2, 2),
        ("n1-standard-96", 32, 32),
        ("n2-highcpu-4", 10, 10),
        ("n2-standard-32", 32, 50),
        ("n2-standard-64", 32, 75),
        ("n2-standard-128", 32, 100),
        ("n2d-standard-48", 32, 50),
        ("n4-standard-16", 32, 32),
        ("n4-standard-64", 45, 45),
        ("n4-standard-80", 50, 50),
        ("e2-micro", 1, 1),
        ("e2-medium", 2, 2),
        ("e2-standard-2", 4, 4),
        ("e2-standard-32", 16, 16),
        ("c2-standard-60", 32, 100),
        ("c2d-standard-56", 32, 50),
        ("c3-standard-4", 23, 23),
        ("c3-standard-88", 62, 100),
        ("c3-standard-176", 100, 200),
        ("c3d-standard-30", 20, 50),
        ("c3d-standard-60", 40, 75),
        ("c4-standard-2", 10, 10),
        ("c4-standard-24", 23, 23),
        ("c4-standard-192", 100, 200),
        ("t2d-standard-60", 32, 32),
    ],
)
def test_egress(name, plain, tier_1):
    assert MACHINE_TYPES[name].egress() == plain
    assert MACHINE_TYPES[name].egress(tier_1=True) == tier_1


def test_every_machine_type_has_a_cap():
    assert all(machine.egress() >= 1 for machine in MACHINE_TYPES.values())

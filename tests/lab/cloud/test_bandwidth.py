"""What each machine type may send."""

from __future__ import annotations

import pytest

from multinic import machines
from multinic.lab.cloud.catalog import MACHINE_TYPES, machine_type


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
def test_egress(name: str, plain: float, tier_1: float) -> None:
    assert MACHINE_TYPES[name].egress() == plain
    assert MACHINE_TYPES[name].egress(tier_1=True) == tier_1


def test_every_machine_type_has_a_cap() -> None:
    assert all(machine.egress() >= 1 for machine in MACHINE_TYPES.values())


def test_the_lab_has_every_machine_type_that_the_library_lets_through() -> None:
    for series, facts in machines.SERIES.items():
        for cpus in facts.gbps:
            for kind in ("standard", "highcpu", "highmem"):
                machine = machines.parse(f"{series}-{kind}-{cpus}")
                assert machine is not None
                sizes = machine.sizes if machine.is_known_kind else ()
                assert sizes is not None, machine.name
                if cpus in sizes:
                    found = machine_type(machine.name)
                    assert found, machine.name
                    assert found.egress() == machine.gbps, machine.name
                    assert found.egress(tier_1=True) == machine.cap(tier_1=True), machine.name


@pytest.mark.parametrize(
    ("name", "cpus", "gbps"),
    [
        ("n2-custom-6-6144", 6, 10),
        ("custom-2-4096", 2, 10),
        ("e2-custom-small-2048", 2, 4),
        ("n2-custom-2-65536-ext", 2, 10),
    ],
)
def test_custom_machine_types(name: str, cpus: int, gbps: float) -> None:
    found = machine_type(name)
    assert found is not None
    assert (found.cpus, found.egress()) == (cpus, gbps)


@pytest.mark.parametrize(
    "name", ["n2-custom-0-4096", "n2-custom-4-1000", "c3-custom-4-8192", "n2-highcpu-128", "custom"]
)
def test_what_is_no_machine_type(name: str) -> None:
    assert machine_type(name) is None

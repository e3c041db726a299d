"""All problems of one run are told together: no wrong input hides another one.

Each wrong value and each broken rule of the tables is put beside each other one. What one of them alone is told must be
told beside the other as well, unless its rule looks at the other's input, too.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pulumi
import pytest

import stacks
from multinic import Endpoints, NextHop, RoutedNetworks, parsing, testing
from multinic.problems import Problems
from stacks import dev
from tests.unit.shapes import changed, put
from tests.unit.test_parts import ENDS, HOP, NETWORKS, refused
from tests.unit.values import WRONG
from tests.unit.wrong_combinations import BREACHES

LOOKS_AT = {
    "backends": ("zones", "replicas"),
    "check-ports": ("health.traffic.port",),
    "check-timeout": ("health.traffic.interval_sec",),
    "cidr-nested": ("routes",),
    "cidr-own-subnet": ("networks.1.cidrs",),
    "cpu-platform": ("machine.type",),
    "failover": ("zones", "next_hop.failover_zones"),
    "heal-slower": ("health.traffic.interval_sec",),
    "link-form": ("networks.1.network",),
    "machine-confidential": ("machine.type",),
    "machine-image": ("machine.type", "machine.image"),
    "machine-nics": ("machine.type",),
    "machine-tier-1": ("machine.type",),
    "nic-type": ("machine.type", "networks.1.nic_type"),
    "schedules": ("replicas",),
    "standby": ("replicas",),
    "stateful": ("next_hop.persistence",),
    "subnet-region": ("region",),
    "tracking": ("next_hop.tracking_mode",),
    "zonal-affinity": ("next_hop.zonal_affinity",),
}
"""Rules of the table that look at inputs which another row of it changes as well."""


_THREE = ((0, 0), (1, 0), (1, 1))
_NIC_TYPE = "networks[0].nic_type"


def related(one: str, other: str) -> bool:
    """Whether one path is the other or a part of it."""
    return all(a == b for a, b in zip(one.split("."), other.split("."), strict=False))


def told(change: dict[str, Any]) -> dict[tuple[str, str], str]:
    found = Problems()
    parsing.router(changed(change), found)
    return {(problem.path, problem.rule): problem.message for problem in found.found}


def test_no_wrong_input_hides_another() -> None:
    # One row for each input and each rule: rows of the same ones differ in the value only.
    rows = {(tuple(change), ""): change for change, _ in WRONG}
    rows |= {(tuple(change), rule): change for change, rule, _ in BREACHES}
    alone = [(change, told(change)) for change in rows.values()]
    count, used = 0, set()
    for (change, first), (other, second) in combinations(alone, 2):
        if any(related(one, two) for one in change for two in other):
            continue
        count += 1
        both = told(change | other)
        for wanted, beside in ((first, other), (second, change)):
            for path, rule in wanted.keys() - both.keys():
                seen = [place for looked in LOOKS_AT.get(rule, ()) for place in beside if related(looked, place)]
                assert seen, f"{path} ({rule or 'value'}) is not told beside {beside}"
                used.add(rule)
    assert count > 2000
    assert used == LOOKS_AT.keys()


@pytest.mark.parametrize(
    ("change", "paths"),
    [
        ({"networks.0.cidrs": ["x"], "networks.1.cidrs": ["0.0.0.0/0"]}, {"networks[0].cidrs[0]"}),
        ({"networks.0.cidrs": ["x"], "networks.1.cidrs": ["y", "z"]}, {f"networks[{i}].cidrs[{k}]" for i, k in _THREE}),
        (
            {"networks.0.subnet_cidrs": ["x"], "networks.1.subnet_cidrs": ["0.0.0.0/0"]},
            {"networks[0].subnet_cidrs[0]", "networks[1].subnet_cidrs[0]", "networks[0].cidrs[0]"},
        ),
        ({"networks.0.subnet_cidrs": ["x"], "networks.0.address": "10.0.0.5"}, {"networks[0].subnet_cidrs[0]"}),
        ({"networks.0.cidrs": [7], "networks.1.address": "10.3.0.5"}, {"networks[0].cidrs[0]"}),
        ({"networks.0.mtu": 9, "machine.clamp_mss": 1400}, {"networks[0].mtu"}),
        ({"networks.0.nic_type": "x", "networks.0.queue_count": 17, "machine.type": "n2-standard-16"}, {_NIC_TYPE}),
        ({"machine.type": 5, "machine.tier_1": True, "machine.disk_type": "hyperdisk-extreme"}, {"machine.type"}),
        (
            {"health.traffic.interval_sec": 0, "health.heal": {"interval_sec": 1, "timeout_sec": 1}},
            {"health.traffic.interval_sec"},
        ),
        ({"replicas.max": "x", "replicas.min": 9, "standby.stopped": 1000}, {"replicas.max"}),
        ({"zones": ["us-central1-a", 5], "next_hop.failover_zones": ["us-central1-b"]}, {"zones[1]"}),
        ({"routes.allow_nested_cidrs": "no", "networks.1.cidrs": ["0.0.0.0/0"]}, {"routes.allow_nested_cidrs"}),
    ],
)
def test_nothing_is_said_about_what_could_not_be_read(change: dict[str, Any], paths: set[str]) -> None:
    found = told(change)
    assert {path for path, _ in found} == paths
    assert "255.255.255.255/32 of " not in "".join(found.values())


@pytest.mark.parametrize(
    ("component", "right", "wrong", "paths"),
    [
        (
            NextHop,
            HOP,
            {"region": "us", "network": "n", "policy.draining_sec": -1, "policy.stateful": True, "labels": {"A": "b"}},
            ("region", "network", "policy.draining_sec", "policy.persistence", "labels.A"),
        ),
        (
            Endpoints,
            ENDS,
            {"zones": ["x", 5], "image": "debian", "disk_gb": 1, "clients.network": "n", "machine_type": "n2-huge-4"},
            ("zones[0]", "zones[1]", "image", "disk_gb", "clients.network", "machine_type"),
        ),
        (
            RoutedNetworks,
            {"region": "us-central1", "networks": NETWORKS},
            {"region": "us", "networks.0.cidr": "x", "networks.1.mtu": 1, "networks.1.cidrs": ["10.0.0.1/24"]},
            ("region", "networks[0].cidr", "networks[1].mtu", "networks[1].cidrs[0]"),
        ),
    ],
)
def test_the_other_components_hide_nothing_either(
    component: Any, right: dict[str, Any], wrong: dict[str, Any], paths: tuple[str, ...]
) -> None:
    args = right
    for path, value in wrong.items():
        args = put(args, path, value)
    text = refused(component, args)
    assert text.startswith(f"{len(paths)} inputs cannot be used:"), text
    for path in paths:
        assert f"\n  {path}: " in text, text


def test_a_region_stack_hides_nothing_either() -> None:
    networks = [{"name": "Left", "cidrs": ["10.1.0.0/16"], "mtu": 9}, {"name": "right", "cidrs": ["10.1.0.0/16", "x"]}]
    config = {
        "gcp:region": "us",
        "multinic:program": "region",
        "multinic:networks_stack": "a/b",
        "multinic:networks": networks,
        "multinic:other_regions": [7, "a"],
        "multinic:router": {"machine": {"image": "debian"}, "replicas": {"min": 3, "max": 2}, "zones": []},
        "multinic:zones": ["us-central1-b", "b"],
    }
    with pytest.raises(pulumi.RunError) as caught:
        testing.run(stacks.run, config=config)
    assert [line.strip().partition(": ")[0] for line in str(caught.value).splitlines()[1:]] == [
        "multinic:router.zones",
        "multinic:networks_stack",
        "multinic:networks[0].name",
        "multinic:other_regions[0]",
        "multinic:other_regions[1]",
        "gcp:region",
        "multinic:networks[0].mtu",
        "multinic:networks[1].cidrs[1]",
        "multinic:router.machine.image",
        "multinic:networks[1].cidrs[0]",
        "multinic:zones[1]",
        "multinic:router.replicas.max",
    ], str(caught.value)


def test_a_stack_hides_nothing_either(dev_config: dict[str, Any]) -> None:
    dev_config["gcp:project"] = "MY-PROJECT"
    dev_config["gcp:region"] = "us-central"
    dev_config["multinic:networks"] = [
        {"name": "left", "cidr": "10.10.0.5/24", "mtu": 9},
        {"name": "right", "cidr": "10.20.0.0/24", "cidrs": ["10.20.0.0/16", "10.10.0.0/16"]},
        {"name": "far", "cidr": "10.30.0.0/30"},
    ]
    dev_config["multinic:zones"] = ["us-central1-b", "us-central1-B"]
    dev_config["multinic:router"]["machine"]["type"] = "e2-micro"
    with pytest.raises(pulumi.RunError) as caught:
        testing.run(dev.program, config=dev_config)
    heads = [line.strip().partition(": ")[0] for line in str(caught.value).splitlines()[1:]]
    assert sorted(heads) == [
        "gcp:project",
        "gcp:region",
        "multinic:networks[0].cidr",
        "multinic:networks[0].mtu",
        "multinic:networks[1].cidrs[1]",
        "multinic:networks[2].cidr",
        "multinic:router.machine.type",
        "multinic:zones[1]",
    ], str(caught.value)


@pytest.mark.parametrize("networks", [5, {}, [], [7, 8]])
def test_networks_that_cannot_be_read_are_told_once(dev_config: dict[str, Any], networks: Any) -> None:
    dev_config["multinic:networks"] = networks
    with pytest.raises(pulumi.RunError) as caught:
        testing.run(dev.program, config=dev_config)
    lines = str(caught.value).splitlines()[1:]
    assert len(lines) == (len(networks) if networks == [7, 8] else 1), lines
    assert all(line.startswith("  multinic:networks") for line in lines)

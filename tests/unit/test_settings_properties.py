"""Arbitrary inputs give settings or one readable error, never anything else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multinic import InputError, endpoints, networks, parsing
from multinic.problems import Problems
from multinic.settings import RouterSettings
from tests.unit.shapes import put, router_args

# Lone surrogates, which YAML and JSON can bring in, and numbers that are none, among it.
texts = st.text(st.characters(), max_size=8) | st.sampled_from(["\ud800", "a\0b", "\u0661\u0660.0.0.0/8"])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
anything = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3))

PATHS = [
    "access", "access.scopes", "access.service_account", "autoscaler", "autoscaler.metrics", "autoscaler.schedules",
    "generation", "health", "health.heal.interval_sec", "health.traffic", "labels", "machine", "machine.disk_kms_key",
    "machine.image", "machine.metadata", "machine.min_cpu_platform", "machine.startup_script", "machine.shielded",
    "machine.tags", "machine.type", "networks", "networks.0", "networks.0.address", "networks.0.cidrs",
    "networks.1.subnet_cidrs", "next_hop", "next_hop.failover_zones", "next_hop.persistence", "project", "region",
    "replicas", "replicas.max", "routes", "routes.tags", "standby", "standby.stopped", "updates", "updates.max_surge",
    "zones",
]  # fmt: skip


@given(path=st.sampled_from(PATHS), value=anything)
@settings(max_examples=400)
def test_one_arbitrary_input(path: str, value: Any) -> None:
    found = Problems()
    result = parsing.router(put(dict(router_args()), path, value), found)
    assert isinstance(result, RouterSettings)
    for problem in found.found:
        assert problem.message
        assert "\n" not in problem.path
        assert "\n" not in problem.message


@given(value=anything)
@settings(max_examples=200)
def test_arbitrary_inputs_altogether(value: Any) -> None:
    for parse in (parsing.router, parsing.fleet, networks.parse, endpoints.parse):
        found = Problems()
        parse(value, found)
        with pytest.raises(InputError):
            found.raise_if_any()


ranges = st.builds(lambda a, b, bits: f"{a}.{b}.0.0/{bits}", st.integers(10, 12), st.integers(0, 3), st.integers(8, 24))


@given(left=st.lists(ranges, min_size=1, max_size=4), right=st.lists(ranges, min_size=1, max_size=4))
@settings(max_examples=200)
def test_accepted_ranges_never_overlap(left: list[str], right: list[str]) -> None:
    args = put(put(dict(router_args()), "networks.0.cidrs", left), "networks.1.cidrs", right)
    found = Problems()
    result = parsing.router(args, found)
    if not found.found:
        one, other = result.fleet.networks
        assert not any(a.overlaps(b) for a in one.cidrs for b in other.cidrs)

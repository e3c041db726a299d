"""Inputs that the rules let through, brought up against the lab's API: it refuses nothing that could be foreseen."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from multinic import MultinicRouter, RoutedNetworks, parsing
from multinic.choices import (
    AutoscalerMode,
    MinimalAction,
    NicType,
    Persistence,
    SessionAffinity,
    TrackingMode,
    ZonalAffinity,
)
from multinic.lab.pulumi import in_process
from multinic.problems import Problems
from tests.engine.conftest import RunningLab, lab  # noqa: F401 - a fixture
from tests.unit.shapes import IMAGE, REGION, ZONES, router_args


def some(**values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=values)


def one_of(kind: Any) -> st.SearchStrategy[str]:
    return st.sampled_from([member.value for member in kind])


types = st.sampled_from(["n2-highcpu-4", "e2-standard-4", "c3-standard-44", "c4-standard-8", "n2d-standard-64"])
machines = st.sampled_from(
    [{"type": "n2d-standard-64", "confidential": True, "tier_1": True}, {"type": "c3-standard-44", "tier_1": True}]
)
inputs = st.fixed_dictionaries(
    {
        "machine": machines
        | some(
            type=types,
            spot=st.booleans(),
            disk_gb=st.integers(10, 100),
            tags=st.just(["router"]),
            min_cpu_platform=st.sampled_from(["Intel Ice Lake", "AMD Milan"]),
            metadata=st.just({"enable-oslogin": "TRUE"}),
            clamp_mss=st.integers(536, 8856),
            startup_script=st.just("#!/bin/sh\n"),
        ),
    },
    optional={
        "zones": st.lists(st.sampled_from(ZONES), max_size=3),
        "replicas": some(min=st.integers(0, 3), max=st.integers(1, 6)),
        "standby": some(stopped=st.integers(0, 2), suspended=st.integers(0, 2)),
        "autoscaler": some(
            metrics=st.just([{"name": "compute.googleapis.com/instance/network/sent_bytes_count", "target": 1e6}]),
            schedules=st.just([{"name": "d", "schedule": "0 8 * * *", "duration_sec": 300, "min_replicas": 1}]),
            mode=one_of(AutoscalerMode),
            cpu_target=st.floats(0.05, 1),
            cooldown_sec=st.integers(15, 600),
        ),
        "health": some(
            traffic=some(interval_sec=st.integers(1, 10), unhealthy_threshold=st.integers(1, 10)),
            heal=some(interval_sec=st.integers(5, 60), initial_delay_sec=st.integers(0, 3600)),
            regional=st.booleans(),
            log=st.booleans(),
        ),
        "next_hop": some(
            session_affinity=one_of(SessionAffinity),
            tracking_mode=one_of(TrackingMode),
            persistence=one_of(Persistence),
            idle_timeout_sec=st.integers(600, 57600),
            draining_sec=st.integers(0, 3600),
            failover_zones=st.lists(st.sampled_from(ZONES), max_size=2),
            failover_ratio=st.floats(0, 1),
            drop_if_unhealthy=st.booleans(),
            zonal_affinity=one_of(ZonalAffinity),
            spillover_ratio=st.floats(0, 1),
            log_sample_rate=st.floats(0, 1),
            stateful=st.booleans(),
        ),
        "routes": some(priority=st.integers(0, 65535), tags=st.just(["client"])),
        "access": some(iap_ssh=st.booleans()),
        "updates": some(
            minimal_action=one_of(MinimalAction), max_surge=st.integers(0, 3), max_unavailable=st.integers(0, 3)
        ),
        "labels": st.dictionaries(st.sampled_from(["team", "cost-centre"]), st.sampled_from(["", "net", "a_1"])),
        "generation": st.sampled_from(["v1", "blue"]),
    },
)


def problems_of(args: Any) -> list[str]:
    found = Problems()
    parsing.router(args, found)
    return [str(problem) for problem in found.found]


@pytest.mark.slow
@given(count=st.integers(2, 4), more=inputs, nic=st.none() | one_of(NicType))
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), database=None)
def test_what_passes_the_rules_passes_the_api(lab: RunningLab, count: int, more: Any, nic: str | None) -> None:  # noqa: F811
    args = router_args(count, **more)
    args["machine"]["image"] = IMAGE
    if nic:
        args["networks"][0]["nic_type"] = NicType(nic)
    assume(not problems_of(args))

    def program() -> None:
        ranges: Any = [{"name": f"net-{index}", "cidr": f"10.{index}.0.0/24"} for index in range(count)]
        made = RoutedNetworks("nets", {"region": REGION, "networks": ranges})
        for one, links in zip(args["networks"], made.router_networks, strict=True):
            one.update(links)
        MultinicRouter("router", args)

    config = {"gcp:project": "lab", "gcp:region": REGION}
    deployment = in_process.up(
        program, project="multinic", stack="dev", config=config, endpoint=lab.endpoint, token=lab.token
    )
    deployment.destroy()

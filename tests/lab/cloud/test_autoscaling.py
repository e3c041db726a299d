"""The autoscaler's decisions, as a table, and by what routers do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from multinic import machines
from multinic.lab.cloud import readings
from multinic.lab.cloud.autoscaling import SENT_BYTES, Load, Policy, needed, policy_of, recommend
from tests.lab.cloud.world import OpenWorld, Run, World

BASE = Policy(1, 10, target=0.2)
SLOW = Policy(1, 10, target=0.2, scaled_in=1, window=600)


@pytest.mark.parametrize(
    ("utilisations", "expected"),
    [([], 0), ([0.0], 0), ([0.2], 1), ([0.21], 2), ([0.4], 2), ([0.3, 0.3], 3), ([0.1, 0.1, 0.1], 2)],
)
def test_needed(utilisations: list[float], expected: int) -> None:
    assert needed(BASE, [Load(cpu) for cpu in utilisations]) == expected


def test_of_several_signals_the_one_that_asks_for_the_most_counts() -> None:
    both = Policy(1, 10, target=0.5, sent_bytes=100.0)
    assert needed(both, [Load(0.5, 100.0)]) == 1
    assert needed(both, [Load(0.5, 450.0)]) == 5
    assert needed(both, [Load(0.9, 10.0), Load(0.9, 10.0)]) == 4
    assert needed(Policy(1, 10, target=None), [Load(1.0)]) == 0


@pytest.mark.parametrize(
    ("policy", "size", "needs", "sizes", "expected"),
    [
        pytest.param(BASE, 1, [(1000, 3)], [], 3, id="out at once"),
        pytest.param(BASE, 1, [(1000, 30)], [], 10, id="not beyond the maximum"),
        pytest.param(BASE, 3, [(1000, 0)], [], 1, id="not below the minimum"),
        pytest.param(BASE, 4, [(500, 4), (1000, 1)], [], 4, id="the peak of the period holds"),
        pytest.param(BASE, 4, [(300, 4), (600, 2), (1000, 1)], [], 2, id="in to the peak of the period"),
        pytest.param(BASE, 4, [], [], 4, id="nothing known yet"),
        pytest.param(SLOW, 4, [(1000, 1)], [(900, 4)], 3, id="one VM in a window"),
        pytest.param(SLOW, 3, [(1000, 1)], [(900, 4)], 3, id="and no more in the same window"),
        pytest.param(SLOW, 3, [(1000, 1)], [(300, 4), (900, 3)], 2, id="the next in the next"),
        pytest.param(SLOW, 3, [(1000, 7)], [(900, 3)], 7, id="the control does not slow scale-out"),
        pytest.param(Policy(1, 10, only_out=True), 4, [(1000, 1)], [], 4, id="only out"),
    ],
)
def test_recommend(
    policy: Policy, size: int, needs: list[tuple[float, int]], sizes: list[tuple[float, int]], expected: int
) -> None:
    assert recommend(policy, size, 1000, needs, sizes) == expected


POLICY = {
    "minNumReplicas": 1,
    "maxNumReplicas": 3,
    "coolDownPeriodSec": 15,
    "stabilizationPeriodSec": 60,
    "mode": "ON",
    "cpuUtilization": {"utilizationTarget": 0.1},
}


async def _autoscaled(w: World, **policy: object) -> str:
    """A group with an autoscaler; its key."""
    await w.networks()
    await w.checks()
    await w.template("t1")
    key = await w.group(size=0)
    body = {"name": "as", "target": "zones/us-central1-a/instanceGroupManagers/fleet"}
    given = {name: value for name, value in (POLICY | policy).items() if value is not None}
    await w.do("autoscalers.insert", {**body, "autoscalingPolicy": given}, zone="us-central1-a")
    return key


def _meter(rate: list[float]) -> Callable[[str], float]:
    """What a machine has done so far: `rate[0]` more a real second."""
    seen: dict[str, tuple[float, float]] = {}

    def read(machine: str) -> float:
        at, total = seen.get(machine, (time.monotonic(), 0.0))
        now = time.monotonic()
        seen[machine] = (now, total + (now - at) * rate[0])
        return seen[machine][1]

    return read


@pytest.mark.parametrize(
    ("meter", "scale", "full"),
    [
        # An n2-highcpu-4 sends 10 Gbit/s at most, which is 11.5 % of its CPU: more than one VM shall have.
        pytest.param("egress_bytes", 1.0, 10e9 / 8, id="forwarded bytes"),
        pytest.param("egress_bytes", 0.01, 0.1e9 / 8, id="forwarded bytes under a scaled cap"),
        pytest.param("cpu_seconds", 1.0, 4 * 0.115, id="programs of the guest on four vCPUs"),
    ],
)
def test_a_fleet_under_load_grows_and_shrinks_again(
    world: OpenWorld, run: Run, meter: str, scale: float, full: float
) -> None:
    async def check() -> None:
        async with world(speed=100, egress_scale=scale) as w:
            rate = [0.0]
            setattr(w.substrate, meter, _meter(rate))
            key = await _autoscaled(w)
            await w.stable(key)
            assert len(w.members(key)) == 1
            rate[0] = full
            await w.until(lambda: len(w.members(key)) == 3, "grown to the maximum")
            rate[0] = 0.0
            await w.until(lambda: len(w.members(key)) == 1, "shrunk to the minimum")
            sizes = [e.detail["size"] for e in w.changes("group", "autoscaled", key)]
            assert sizes[:2] == [1, 2], "one VM at full rate needs two"

    run(check())


def test_the_lab_and_the_component_mean_the_same_cost_of_forwarding() -> None:
    assert readings.VCPUS_PER_GBPS == machines.VCPUS_PER_GBPS


def test_a_metric_of_sent_bytes_moves_a_group_and_another_metric_is_told(
    world: OpenWorld, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> None:
        async with world(speed=100) as w:
            rate = [0.0]
            monkeypatch.setattr(w.substrate, "egress_bytes", _meter(rate))
            metric = {"utilizationTarget": 60e6, "utilizationTargetType": "DELTA_PER_MINUTE"}
            key = await _autoscaled(w, cpuUtilization=None, customMetricUtilizations=[{"metric": SENT_BYTES, **metric}])
            await w.stable(key)
            rate[0] = 1.5e6
            await w.until(lambda: len(w.members(key)) > 1, "grown")
            where = {"zone": "us-central1-a", "autoscaler": "as"}
            assert (await w.do("autoscalers.get", **where))["status"] == "ACTIVE"
            policy = {"customMetricUtilizations": [{"metric": "custom.googleapis.com/queue", **metric}]}
            await w.do("autoscalers.patch", {"autoscalingPolicy": policy}, **where)
            answer = await w.do("autoscalers.get", **where)
            assert answer["status"] == "ERROR"
            assert answer["statusDetails"][0]["type"] == "CUSTOM_METRIC_DOES_NOT_EXIST"

    run(check())


def test_a_schedule_raises_the_least_size_and_prediction_is_taken(world: OpenWorld, run: Run) -> None:
    always = {"schedule": "* * * * *", "durationSec": 300, "minRequiredReplicas": 2}

    async def check() -> None:
        async with world(speed=100) as w:
            cpu = {"utilizationTarget": 0.2, "predictiveMethod": "OPTIMIZE_AVAILABILITY"}
            key = await _autoscaled(w, cpuUtilization=cpu, scalingSchedules={"day": always})
            await w.until(lambda: len(w.members(key)) == 2, "what the schedule asks for")
            where = {"zone": "us-central1-a", "autoscaler": "as"}
            answer = await w.do("autoscalers.get", **where)
            assert answer["scalingScheduleStatus"]["day"]["state"] == "ACTIVE"
            policy = POLICY | {"scalingSchedules": {"day": always | {"disabled": True}}}
            await w.do(
                "autoscalers.update", {"name": "as", "autoscalingPolicy": policy, "target": answer["target"]}, **where
            )
            await w.until(lambda: len(w.members(key)) == 1, "back at the minimum")

    run(check())


@pytest.mark.parametrize(
    ("policy", "fields"),
    [
        ({}, {"stabilization": 600.0, "scaled_in": None, "cooldown": 60.0}),
        ({"stabilizationPeriodSec": 0}, {"stabilization": 0.0}),
        ({"scaleInControl": {"maxScaledInReplicas": {"percent": 30}, "timeWindowSec": 60}},
         {"scaled_in": 3, "window": 60.0}),
        ({"mode": "ONLY_SCALE_OUT"}, {"only_out": True}),
        ({"cpuUtilization": {"utilizationTarget": 0.3}}, {"target": 0.3}),
    ],
)  # fmt: skip
def test_policy_of(policy: dict[str, Any], fields: dict[str, Any]) -> None:
    raw = {"minNumReplicas": 1, "maxNumReplicas": 10, "coolDownPeriodSec": 60, "mode": "ON"}
    made = policy_of({"autoscalingPolicy": raw | policy})
    assert {name: getattr(made, name) for name in fields} == fields
    assert policy_of({"autoscalingPolicy": raw | {"mode": "OFF"}}) is None

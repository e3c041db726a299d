"""The autoscaler's decisions, as a table, and by the bytes that routers send."""

from __future__ import annotations

import pytest

from multinic.lab.cloud.autoscaling import Policy, needed, recommend

BASE = Policy(1, 10, target=0.2)
SLOW = Policy(1, 10, target=0.2, scaled_in=1, window=600)


@pytest.mark.parametrize(
    ("utilisations", "expected"),
    [([], 0), ([0.0], 0), ([0.2], 1), ([0.21], 2), ([0.4], 2), ([0.3, 0.3], 3), ([0.1, 0.1, 0.1], 2)],
)
def test_needed(utilisations, expected):
    assert needed(BASE, utilisations) == expected


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
def test_recommend(policy, size, needs, sizes, expected):
    assert recommend(policy, size, 1000, needs, sizes) == expected


def test_a_fleet_under_load_grows_and_shrinks_again(world, run):
    async def check():
        async with world(speed=200) as w:
            await w.networks()
            await w.checks()
            await w.template("t1")
            load = {"bytes": 0, "rate": 0}

            def egress(machine):
                # Each look is a sample later; an n2-highcpu-4 sends 10 Gbit/s at most, which is 23 % of its CPU.
                load[machine] = load.get(machine, 0) + load["rate"]
                return load[machine]

            w.substrate.egress_bytes = egress
            key = await w.group(size=0)
            policy = {
                "minNumReplicas": 1,
                "maxNumReplicas": 3,
                "coolDownPeriodSec": 15,
                "stabilizationPeriodSec": 60,
                "mode": "ON",
                "cpuUtilization": {"utilizationTarget": 0.2},
            }
            body = {
                "name": "as",
                "target": "zones/us-central1-a/instanceGroupManagers/fleet",
                "autoscalingPolicy": policy,
            }
            await w.do("autoscalers.insert", body, zone="us-central1-a")
            await w.stable(key)
            load["rate"] = 10**12
            await w.until(lambda: len(w.members(key)) == 3, "grown to the maximum")
            load["rate"] = 0
            await w.until(lambda: len(w.members(key)) == 1, "shrunk to the minimum")

    run(check())

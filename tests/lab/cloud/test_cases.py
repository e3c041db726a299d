"""How systems like this one fail their users, as the lab's control plane shows it; the numbers are of kinds of cases.

Others are shown where their subject is: the storms of healing in `test_healing`, updates in `test_rolling`, draining
and shrinking in `test_resizing`, preemption in `test_preemption`, boots without the internet with the guests.
"""

from __future__ import annotations

import pytest

from multinic.lab.cloud.packet import trace
from multinic.lab.substrate import Probe, ProbeResult
from tests.lab.cloud.world import TRAFFIC, OpenWorld, Run, World


def _takes_new(w: World, network: str) -> list[bool]:
    (balancer,) = w.substrate.plans[f"projects/lab/global/networks/{network}"].balancers
    return [backend.takes_new for backend in balancer.backends]


def test_a_router_that_answers_by_its_first_nic_only_serves_the_first_network_only(
    world: OpenWorld, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kind 4: probes to the second network's rule arrive at the second NIC; healing asks the first and is content."""

    async def check() -> None:
        async with world() as w:
            key = await w.fleet(size=2)
            await w.serving("fr-b", 2)
            mute = w.members(key)[0]
            ask = w.substrate.probe

            async def probe(probe: Probe) -> ProbeResult:
                if probe.machine == mute and probe.network.endswith("/b"):
                    return ProbeResult(False, "timeout")
                return await ask(probe)

            monkeypatch.setattr(w.substrate, "probe", probe)
            await w.until(lambda: _takes_new(w, "b") == [False, True], "network b does without it")
            assert _takes_new(w, "a") == [True, True]
            assert not w.changes("group", "repairing", key)

    run(check())


def test_a_router_that_says_it_cannot_forward_loses_its_flows_and_keeps_its_vm(world: OpenWorld, run: Run) -> None:
    """Kind 5: what counts is what the traffic endpoint says, not that something answers; and it may take it back."""

    async def check() -> None:
        async with world() as w:
            key = await w.fleet(size=2)
            await w.serving("fr-b", 2)
            sick = w.members(key)[0]
            identity = w.identity(sick)

            async def until_served_by(network: str, taken: list[bool], what: str) -> None:
                await w.until(lambda: _takes_new(w, network) == taken, what)

            w.substrate.failing[TRAFFIC].add(sick)
            for network in "ab":
                await until_served_by(network, [False, True], "flows leave it in both networks")
            w.substrate.failing[TRAFFIC].clear()
            for network in "ab":
                await until_served_by(network, [True, True], "it serves again")
            assert w.identity(sick) == identity

    run(check())


def test_a_second_generation_takes_over_by_priority_and_the_first_one_stays_whole(world: OpenWorld, run: Run) -> None:
    """Kind 22: an upgrade that replaces nothing in place: both generations run, the routes' priority decides."""

    async def check() -> None:
        async with world() as w:
            old = await w.fleet()
            (vm,) = w.members(old)
            identity = w.identity(vm)
            new = await w.group("v2", baseInstanceName="v2")
            await w.stable(new)
            place = {"region": "us-central1"}
            service = {
                "name": "v2",
                "loadBalancingScheme": "INTERNAL",
                "protocol": "TCP",
                "network": "global/networks/a",
                "backends": [{"group": new.replace("Managers", "s")}],
                "healthChecks": ["global/healthChecks/traffic"],
            }
            await w.do("regionBackendServices.insert", service, **place)
            rule = {
                "name": "v2",
                "loadBalancingScheme": "INTERNAL",
                "backendService": "regions/us-central1/backendServices/v2",
                "subnetwork": "regions/us-central1/subnetworks/sub-a",
                "allPorts": True,
                "IPProtocol": "TCP",
            }
            await w.do("forwardingRules.insert", rule, **place)

            async def leads_to(name: str, priority: int, hop: str) -> None:
                route = {"name": name, "network": "global/networks/a", "destRange": "10.1.0.0/24"}
                hop = f"regions/us-central1/forwardingRules/{hop}"
                await w.do("routes.insert", {**route, "priority": priority, "nextHopIlb": hop})

            def through() -> set[str]:
                own, target = (w.cloud.store.require(vm)["networkInterfaces"][n]["networkIP"] for n in (0, 1))
                step = trace(w.cloud, own, target, "tcp", "80")["steps"][0]
                return {candidate["machine"] for candidate in step["candidates"]}

            await leads_to("one", 900, "fr-a")
            assert through() == {vm}
            await leads_to("two", 800, "v2")
            assert through() == set(w.members(new)), "the better priority decides, the other route is still there"
            await w.do("routes.delete", route="two")
            assert through() == {vm}, "and back"
            assert w.identity(vm) == identity
            assert not w.changes("group", "repairing") and not w.changes("group", "recreating")

    run(check())

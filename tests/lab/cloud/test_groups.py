"""Managed instance groups against a pretended substrate: made, probed, deleted, resumed after a kill."""

from __future__ import annotations

import re

import pytest

from tests.lab.cloud.fake_substrate import FakeSubstrate
from tests.lab.cloud.world import HEAL, TRAFFIC, OpenWorld, Run


def test_a_new_group_makes_its_vms_and_is_stable_once_they_are_healthy(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await w.fleet(size=3)
            names = [m.rpartition("/")[2] for m in w.members(key)]
            assert len(names) == 3
            assert all(re.fullmatch(r"r-[a-z0-9]{4}", name) for name in names)
            view = w.group_view(key)
            assert view["currentActions"]["none"] == 3
            assert view["status"]["versionTarget"]["isReached"]
            where = {"zone": "us-central1-a", "instanceGroupManager": "fleet"}
            managed = await w.do("instanceGroupManagers.listManagedInstances", **where)
            for item in managed["managedInstances"]:
                assert item["instanceStatus"] == "RUNNING"
                assert item["instanceHealth"][0]["detailedHealthState"] == "HEALTHY"
                assert item["version"]["instanceTemplate"].endswith("/instanceTemplates/t1")
            # Addresses: the subnet's own are left out, and each machine has one a NIC.
            for machine in w.substrate.running.values():
                assert [str(nic.gateway) for nic in machine.interfaces] == ["10.0.0.1", "10.1.0.1"]
            assert len({nic.address for m in w.substrate.running.values() for nic in m.interfaces}) == 6
            # n2-highcpu-4: 10 Gbit/s for all of its NICs together.
            assert {machine.egress for machine in w.substrate.running.values()} == {10_000_000_000}

    run(check())


def test_probes_go_to_the_rule_and_to_nic0(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            await w.fleet()
            machine = next(iter(w.substrate.running.values()))
            rules = {n: w.cloud.store.require(f"projects/lab/regions/us-central1/forwardingRules/fr-{n}") for n in "ab"}
            await w.serving("fr-b")
            seen = {(p.network.rpartition("/")[2], p.port, str(p.address)) for p in w.substrate.probes}
            assert seen == {
                ("a", HEAL, str(machine.interfaces[0].address)),
                ("a", TRAFFIC, rules["a"]["IPAddress"]),
                ("b", TRAFFIC, rules["b"]["IPAddress"]),
            }
            # A hundred times faster than life, guests get half a second all the same.
            assert {p.timeout for p in w.substrate.probes} == {0.5}

    run(check())


def test_a_regional_group_spreads_over_its_zones(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            await w.networks()
            await w.template("t1")
            body = {
                "name": "fleet",
                "baseInstanceName": "r",
                "targetSize": 4,
                "versions": [{"instanceTemplate": "global/instanceTemplates/t1"}],
            }
            await w.do("regionInstanceGroupManagers.insert", body, region="us-central1")
            key = "projects/lab/regions/us-central1/instanceGroupManagers/fleet"
            await w.stable(key)
            zones = sorted(vm.split("/")[3] for vm in w.members(key))
            assert zones == ["us-central1-a", "us-central1-a", "us-central1-b", "us-central1-c"]

    run(check())


def test_a_deleted_group_takes_its_vms_along(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            await w.networks()
            await w.checks()
            await w.template("t1")
            key = await w.group(size=2)
            await w.stable(key)
            operation = await w.do("instanceGroupManagers.delete", zone="us-central1-a", instanceGroupManager="fleet")
            assert operation["status"] == "DONE"
            assert "error" not in operation
            assert w.substrate.running == {}
            assert list(w.cloud.store.everywhere("instances")) == []
            assert list(w.cloud.store.everywhere("disks")) == []
            # Nothing holds the template and the networks any more.
            await w.do("instanceTemplates.delete", instanceTemplate="t1")
            for name in "ab":
                await w.do("subnetworks.delete", region="us-central1", subnetwork=f"sub-{name}")
                await w.do("networks.delete", network=name)
            await w.until(lambda: not w.substrate.plans, "the networks are removed below")

    run(check())


def test_a_killed_lab_comes_back_with_its_objects_and_starts_its_machines(
    world: OpenWorld, run: Run, fake_substrate: type[FakeSubstrate]
) -> None:
    async def first() -> tuple[str, dict[str, str]]:
        async with world() as w:
            key = await w.fleet(size=2)
            return key, {vm: w.cloud.store.require(vm)["id"] for vm in w.members(key)}

    async def second(key: str, before: dict[str, str]) -> None:
        async with world(substrate=fake_substrate()) as w:
            assert {vm: w.identity(vm) for vm in w.members(key)} == before
            assert sorted(w.substrate.kept) == sorted(int(identity) for identity in before.values())
            await w.until(lambda: set(w.substrate.running) == set(before), "the machines start again")
            await w.stable(key)
            await w.serving(count=2)
            assert {vm: w.identity(vm) for vm in w.members(key)} == before

    key, before = run(first())
    run(second(key, before))


@pytest.mark.parametrize("action", ["CREATING", "RECREATING", "RESTARTING", "DELETING"])
def test_a_lab_killed_in_the_middle_of_an_action_ends_it(
    world: OpenWorld, run: Run, fake_substrate: type[FakeSubstrate], action: str
) -> None:
    async def first() -> str:
        async with world() as w:
            key = await w.fleet(size=2)
            w.cloud.groups.open(key).members[w.members(key)[0].rpartition("/")[2]].action = action
            w.cloud.groups.open(key).members.save()
            return key

    async def second(key: str) -> None:
        async with world(substrate=fake_substrate()) as w:
            await w.stable(key)
            assert len(w.members(key)) == 2

    key = run(first())
    run(second(key))

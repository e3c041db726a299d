"""Managed instance groups against a pretended substrate: made, healed, rolled, drained, resumed after a kill."""

from __future__ import annotations

import re

import pytest

HEAL, TRAFFIC = 9000, 9001


def _changes(cloud, kind, what, subject=None):
    found = [e for e in cloud.events.after() if e.kind == kind and e.detail["what"] == what]
    return [e for e in found if subject in (None, e.subject)]


async def _fleet(w, size=1, draining=0, **fields):
    await w.networks()
    await w.checks()
    await w.template("t1")
    key = await w.group(size=size, **fields)
    await w.balancers([key], draining=draining)
    await w.stable(key)
    await w.serving(count=size)
    return key


def test_a_new_group_makes_its_vms_and_is_stable_once_they_are_healthy(world, run):
    async def check():
        async with world() as w:
            key = await _fleet(w, size=3)
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


def test_probes_go_to_the_rule_and_to_nic0(world, run):
    async def check():
        async with world() as w:
            await _fleet(w)
            machine = next(iter(w.substrate.running.values()))
            rules = {n: w.cloud.store.require(f"projects/lab/regions/us-central1/forwardingRules/fr-{n}") for n in "ab"}
            await w.serving("fr-b")
            seen = {(p.network.rpartition("/")[2], p.port, str(p.address)) for p in w.substrate.probes}
            assert seen == {
                ("a", HEAL, str(machine.interfaces[0].address)),
                ("a", TRAFFIC, rules["a"]["IPAddress"]),
                ("b", TRAFFIC, rules["b"]["IPAddress"]),
            }
            assert {p.timeout for p in w.substrate.probes if p.port == TRAFFIC} == {1.0}

    run(check())


def test_a_vm_that_fails_its_heal_check_is_made_anew_under_its_name(world, run):
    async def check():
        async with world() as w:
            key = await _fleet(w)
            (vm,) = w.members(key)
            before = w.identity(vm)
            w.substrate.failing[HEAL].add(vm)
            await w.until(lambda: _changes(w.cloud, "group", "repairing", key), "repair")
            w.substrate.failing[HEAL].clear()
            await w.until(lambda: w.identity(vm) not in (None, before), "a new VM of the same name")
            await w.stable(key)
            assert w.members(key) == [vm]
            (event,) = _changes(w.cloud, "group", "repairing", key)
            assert event.detail["cause"] == "unhealthy"

    run(check())


def test_a_panicked_vm_is_healed_though_it_stays_running(world, run):
    async def check():
        async with world() as w:
            key = await _fleet(w)
            (vm,) = w.members(key)
            before = w.identity(vm)
            await w.substrate.panic(vm)
            assert w.cloud.store.require(vm)["status"] == "RUNNING"
            await w.until(lambda: _changes(w.cloud, "group", "repairing", key), "repair")
            w.substrate.silent.clear()
            await w.until(lambda: w.identity(vm) not in (None, before), "a new VM of the same name")
            # Nobody hears a power button after a panic: no orderly stop was tried.
            assert ("stop", vm) not in w.substrate.log

    run(check())


def test_a_vm_that_comes_back_before_the_heal_check_gives_up_is_left_alone(world, run):
    async def check():
        async with world(speed=20) as w:
            key = await _fleet(w)
            (vm,) = w.members(key)
            before = w.identity(vm)
            await w.substrate.panic(vm)
            await w.until(lambda: _changes(w.cloud, "health", "UNHEALTHY", vm), "the traffic check notices")
            w.substrate.came_to_life(vm)
            await w.serving()
            assert w.identity(vm) == before
            assert not _changes(w.cloud, "group", "repairing")

    run(check())


def test_a_power_cut_is_repaired_at_once_without_a_heal_check(world, run):
    async def check():
        async with world() as w:
            key = await _fleet(w, autoHealingPolicies=[])
            (vm,) = w.members(key)
            before = w.identity(vm)
            await w.substrate.cut_power(vm)
            assert w.cloud.store.require(vm)["status"] == "TERMINATED"
            await w.until(lambda: w.identity(vm) not in (None, before), "a new VM of the same name")
            await w.stable(key)

    run(check())


def test_a_vm_that_never_gets_healthy_is_healed_only_after_the_initial_delay(world, run):
    async def check():
        async with world() as w:
            await w.networks()
            await w.checks()
            await w.template("t1")
            w.substrate.failing[HEAL].add("*")
            key = await w.group()
            await w.until(lambda: _changes(w.cloud, "group", "repairing", key), "repair")
            (running,) = _changes(w.cloud, "machine", "running")[:1]
            (repairing,) = _changes(w.cloud, "group", "repairing", key)[:1]
            # 60 s of initial delay and three probes 10 s apart, on a clock a hundred times faster.
            assert (repairing.time - running.time) * w.cloud.clock.speed >= 80
            assert not w.group_view(key)["status"]["isStable"]

    run(check())


def test_observe_only_groups_do_not_heal(world, run):
    async def check():
        async with world() as w:
            key = await _fleet(w, instanceLifecyclePolicy={"onFailedHealthCheck": "DO_NOTHING"})
            (vm,) = w.members(key)
            before = w.identity(vm)
            w.substrate.failing[HEAL].add(vm)
            await w.until(
                lambda: [e for e in _changes(w.cloud, "health", "UNHEALTHY", vm) if e.detail["purpose"] == "heal"],
                "the heal check fails",
            )
            await w.cloud.clock.sleep(60)
            assert w.identity(vm) == before

    run(check())


async def _roll(w, key, name="t2", **properties):
    await w.template(name, metadata={"items": [{"key": "startup-script", "value": name}]}, **properties)
    await w.do(
        "instanceGroupManagers.patch",
        {"versions": [{"instanceTemplate": f"global/instanceTemplates/{name}"}]},
        zone="us-central1-a",
        instanceGroupManager="fleet",
    )


def test_a_rolling_update_never_has_fewer_ready_vms_than_asked_for(world, run):
    async def check():
        async with world() as w:
            key = await _fleet(w, size=3, draining=5)
            old = set(w.members(key))
            await _roll(w, key)
            assert not w.group_view(key)["status"]["versionTarget"]["isReached"]
            fewest, most = 99, 0

            def done():
                nonlocal fewest, most
                fewest = min(fewest, len(w.substrate.running))
                most = max(most, len(w.members(key)))
                return w.group_view(key)["status"]["isStable"]

            await w.until(done, "the group is stable again")
            assert fewest >= 3
            assert most == 4, "surge is 1"
            assert old.isdisjoint(w.members(key)), "SUBSTITUTE gives new names"
            assert w.group_view(key)["status"]["versionTarget"]["isReached"]

    run(check())


def test_a_bad_template_stops_at_its_first_vm(world, run):
    async def check():
        async with world() as w:
            key = await _fleet(w, size=3)
            old = set(w.members(key))
            made_before = len(_changes(w.cloud, "group", "creating", key))
            running = set(w.substrate.running)

            # Every VM of the new template fails its heal check.
            real = w.substrate.probe

            async def probe(p):
                if p.port == HEAL and p.machine not in running:
                    w.substrate.failing[HEAL].add(p.machine)
                return await real(p)

            w.substrate.probe = probe
            await _roll(w, key)
            await w.until(lambda: _changes(w.cloud, "group", "repairing", key), "the new VM is healed in vain")
            assert old <= set(w.substrate.running)
            assert len(_changes(w.cloud, "group", "creating", key)) == made_before + 1
            assert not w.group_view(key)["status"]["isStable"]
            # The next good template goes through.
            w.substrate.probe = real
            w.substrate.failing[HEAL].clear()
            await _roll(w, key, "t3")
            await w.stable(key)
            assert w.group_view(key)["status"]["versionTarget"]["isReached"]
            assert old.isdisjoint(w.members(key))

    run(check())


def test_recreate_keeps_names(world, run):
    async def check():
        async with world() as w:
            policy = {
                "type": "PROACTIVE",
                "replacementMethod": "RECREATE",
                "maxSurge": {"fixed": 0},
                "maxUnavailable": {"fixed": 1},
            }
            key = await _fleet(w, size=2, updatePolicy=policy)
            before = {vm: w.identity(vm) for vm in w.members(key)}
            await _roll(w, key)
            await w.stable(key)
            assert set(w.members(key)) == set(before)
            assert all(w.identity(vm) != identity for vm, identity in before.items())

    run(check())


def test_opportunistic_groups_wait_to_be_told(world, run):
    async def check():
        async with world() as w:
            key = await _fleet(w, updatePolicy={"type": "OPPORTUNISTIC"})
            before = w.members(key)
            await _roll(w, key)
            view = w.group_view(key)["status"]
            assert view["isStable"]
            assert not view["versionTarget"]["isReached"]
            await w.do(
                "instanceGroupManagers.applyUpdatesToInstances",
                {"allInstances": True},
                zone="us-central1-a",
                instanceGroupManager="fleet",
            )
            await w.until(lambda: w.group_view(key)["status"]["versionTarget"]["isReached"], "updated")
            await w.stable(key)
            assert w.members(key) == before

    run(check())


def test_a_vm_drains_before_it_is_deleted(world, run):
    async def check():
        async with world() as w:
            await _fleet(w, size=2, draining=30)
            await w.do("instanceGroupManagers.resize", size=1, zone="us-central1-a", instanceGroupManager="fleet")
            network = "projects/lab/global/networks/a"

            def draining():
                backends = w.substrate.plans[network].balancers[0].backends
                return [b for b in backends if not b.takes_new and b.keeps_existing]

            (leaving,) = await w.until(draining, "a backend drains")
            assert leaving.machine in w.substrate.running
            await w.until(lambda: _changes(w.cloud, "machine", "deleted", leaving.machine), "it goes")
            assert leaving.machine not in w.substrate.running
            drained = _changes(w.cloud, "machine", "draining", leaving.machine)[0]
            gone = _changes(w.cloud, "machine", "deleted", leaving.machine)[0]
            assert (gone.time - drained.time) * w.cloud.clock.speed >= 30
            assert leaving.machine not in [b.machine for b in w.substrate.plans[network].balancers[0].backends]
            # Its shutdown script ran before it went.
            assert w.substrate.log.index(("stop", leaving.machine)) < w.substrate.log.index(("delete", leaving.machine))

    run(check())


def test_unhealthy_vms_go_first_when_a_group_shrinks(world, run):
    async def check():
        async with world() as w:
            key = await _fleet(w, size=3, instanceLifecyclePolicy={"defaultActionOnFailure": "DO_NOTHING"})
            sick = w.members(key)[1]
            w.substrate.failing[HEAL].add(sick)
            await w.until(
                lambda: [e for e in _changes(w.cloud, "health", "UNHEALTHY", sick) if e.detail["purpose"] == "heal"],
                "the heal check fails",
            )
            await w.do("instanceGroupManagers.resize", size=2, zone="us-central1-a", instanceGroupManager="fleet")
            await w.until(lambda: len(w.members(key)) == 2, "the group has shrunk")
            assert sick not in w.members(key)

    run(check())


def test_delete_instances_lowers_the_size_and_abandon_leaves_the_vm(world, run):
    async def check():
        async with world() as w:
            key = await _fleet(w, size=3)
            first, second, third = w.members(key)
            where = {"zone": "us-central1-a", "instanceGroupManager": "fleet"}
            await w.do("instanceGroupManagers.deleteInstances", {"instances": [first]}, **where)
            await w.until(lambda: w.members(key) == [second, third], "deleted")
            await w.do("instanceGroupManagers.abandonInstances", {"instances": [second]}, **where)
            assert w.members(key) == [third]
            assert second in w.substrate.running
            assert w.group_view(key)["targetSize"] == 1
            await w.stable(key)
            await w.do("instances.delete", zone="us-central1-a", instance=second.rpartition("/")[2])

    run(check())


def test_a_deleted_group_takes_its_vms_along(world, run):
    async def check():
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


def test_a_vm_that_cannot_be_made_is_reported_and_tried_again(world, run):
    async def check():
        async with world() as w:
            await w.networks()
            await w.checks()
            await w.template("t1")
            w.substrate.broken.add("*")
            key = await w.group()
            where = {"zone": "us-central1-a", "instanceGroupManager": "fleet"}
            await w.until(lambda: w.cloud.groups.open(key).errors, "an error is noted")
            errors = (await w.do("instanceGroupManagers.listErrors", **where))["items"]
            assert "no room for another guest" in errors[0]["error"]["message"]
            managed = (await w.do("instanceGroupManagers.listManagedInstances", **where))["managedInstances"]
            assert "no room" in managed[0]["lastAttempt"]["errors"]["errors"][0]["message"]
            w.substrate.broken.clear()
            await w.stable(key)

    run(check())


def test_the_autoscaler_sets_the_size_of_a_group_that_had_none(world, run):
    async def check():
        async with world() as w:
            await w.networks()
            await w.checks()
            await w.template("t1")
            key = await w.group(size=0)
            body = {
                "name": "as",
                "target": "zones/us-central1-a/instanceGroupManagers/fleet",
                "autoscalingPolicy": {"minNumReplicas": 2, "maxNumReplicas": 4, "cpuUtilization": {}},
            }
            await w.do("autoscalers.insert", body, zone="us-central1-a")
            await w.stable(key)
            assert len(w.members(key)) == 2
            body["autoscalingPolicy"] = {"minNumReplicas": 0, "maxNumReplicas": 1}
            await w.do("autoscalers.update", body, zone="us-central1-a", autoscaler="as")
            await w.until(lambda: len(w.members(key)) == 1, "no more than the maximum")

    run(check())


def test_a_regional_group_spreads_over_its_zones(world, run):
    async def check():
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


def test_a_killed_lab_comes_back_with_its_objects_and_starts_its_machines(world, run, fake_substrate):
    async def first():
        async with world() as w:
            key = await _fleet(w, size=2)
            return key, {vm: w.identity(vm) for vm in w.members(key)}

    async def second(key, before):
        async with world(substrate=fake_substrate()) as w:
            assert {vm: w.identity(vm) for vm in w.members(key)} == before
            await w.until(lambda: set(w.substrate.running) == set(before), "the machines start again")
            await w.stable(key)
            await w.serving(count=2)
            assert {vm: w.identity(vm) for vm in w.members(key)} == before

    key, before = run(first())
    run(second(key, before))


@pytest.mark.parametrize("action", ["CREATING", "RECREATING", "DELETING"])
def test_a_lab_killed_in_the_middle_of_an_action_ends_it(world, run, fake_substrate, action):
    async def first():
        async with world() as w:
            key = await _fleet(w, size=2)
            w.cloud.groups.open(key).members[w.members(key)[0].rpartition("/")[2]].action = action
            w.cloud.groups.open(key).members.save()
            return key

    async def second(key):
        async with world(substrate=fake_substrate()) as w:
            await w.stable(key)
            assert len(w.members(key)) == 2

    key = run(first())
    run(second(key))


def test_refresh_takes_over_metadata_in_place(world, run):
    async def check():
        async with world() as w:
            policy = {"type": "PROACTIVE", "minimalAction": "REFRESH"}
            key = await _fleet(w, updatePolicy=policy)
            (vm,) = w.members(key)
            before = w.identity(vm)
            w.substrate.told.clear()
            await _roll(w, key)
            await w.until(lambda: w.group_view(key)["status"]["versionTarget"]["isReached"], "refreshed")
            assert w.identity(vm) == before
            assert vm in w.substrate.told
            assert w.cloud.metadata(vm)["instance"]["attributes"]["startup-script"] == "t2"
            # What needs a new VM still gets one.
            await _roll(w, key, "t3", machineType="n2-highcpu-8")
            await w.until(lambda: w.members(key) != [vm], "replaced")
            await w.stable(key)

    run(check())

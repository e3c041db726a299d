"""The operator commands, one fleet beside another, in a lab without guests."""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import time

import pytest

from multinic.operate import rolling, upgrade
from multinic.operate.fleet import DRAIN_KEY

ZONES = ("us-central1-a", "us-central1-b", "us-central1-c")


@pytest.fixture
def fleet(multinic):
    """The first fleet, as `status` has it."""
    return lambda: multinic.json("status")["fleet"]


def in_zone(fleet, zone):
    return next(router["name"] for router in fleet["routers"] if router["zone"] == zone)


def healthy(fleet, network=0):
    name = fleet["hops"][network]["network"]
    return {router["name"] for router in fleet["routers"] if router["health"].get(name) == "HEALTHY"}


def test_status_tells_all_and_asks_as_often_for_many_vms_as_for_few(ground, multinic, fleet):
    text = multinic("status")
    for word in (*ZONES, "router-fleet-template-", "HEALTHY", "1 to 4, ON", "10.20.0.0/24", "v2-second-fleet"):
        assert word in text
    few = multinic.json("status")
    group = few["fleet"]["groups"][0]
    resize(ground, group, 4)
    try:
        many = wait_for(multinic, lambda found: len(found["fleet"]["routers"]) == 6)
        assert many["requests"] == few["requests"] == 5 + len(ZONES) * (2 + 2)
        # Not per VM; and one zone less costs what a zone costs.
        other = multinic.json("status", "--fleet", "v2-second-fleet")
        assert few["requests"] - other["requests"] == 4
    finally:
        resize(ground, group, 1)
        wait_for(multinic, lambda found: len(found["fleet"]["routers"]) == 3)


def resize(ground, group, size):
    def set_size(cloud):
        cloud.instance_group_managers.set_size(group["link"], size)

    ground.inside(set_size)


def wait_for(multinic, test):
    deadline = time.monotonic() + 60
    while not test(found := multinic.json("status")):
        assert time.monotonic() < deadline, found
    return found


def quiet(found):
    """Whether its groups have nothing to do and all that it has serves."""
    groups = found["fleet"]["groups"]
    return not any(group["actions"] for group in groups) and len(healthy(found["fleet"])) == len(groups)


@pytest.fixture(autouse=True)
def _settled(multinic):
    """Each test finds the fleet at rest, whatever the one before has set going."""
    wait_for(multinic, quiet)


def test_drain_and_undrain_a_vm_and_a_zone_twice(multinic, fleet):
    name = in_zone(fleet(), ZONES[0])
    assert f"set {DRAIN_KEY}=true on {name}" in multinic("drain", name, "--dry-run")
    assert name in healthy(fleet())
    text = multinic("drain", name)
    assert "the load balancers noticed after" in text and "2 of 3" in text
    now = fleet()
    assert name not in healthy(now, 0) | healthy(now, 1)
    assert f"{name} (drained)" in multinic("status")
    assert "is drained already" in multinic("drain", ZONES[0]), "its only VM"
    assert "healthy in every network" in multinic("undrain", ZONES[0])
    assert "is not drained" in multinic("undrain", name)
    assert len(healthy(fleet())) == 3


@pytest.mark.slow
def test_a_drain_leaves_other_metadata_alone(ground, multinic, fleet):
    router = fleet()["routers"][0]
    key = f"projects/lab/zones/{router['zone']}/instances/{router['name']}"

    def metadata(cloud):
        return {item["key"]: item["value"] for item in cloud.store.require(key)["metadata"]["items"]}

    before = ground.inside(metadata)
    multinic("drain", router["name"])
    assert ground.inside(metadata) == before | {DRAIN_KEY: "true"}
    multinic("undrain", router["name"])
    assert ground.inside(metadata) == before


@pytest.mark.slow
def test_the_last_healthy_router_is_not_taken_but_by_force(multinic, fleet):
    names = [in_zone(fleet(), zone) for zone in ZONES]
    multinic("drain", names[0])
    multinic("drain", names[1])
    for words in (("drain", names[2]), ("heal", names[2]), ("panic", names[2], "--yes")):
        said = multinic.refuses(*words, code=3)
        assert f"{names[2]} would be the last healthy router of network dev-left" in said and "--force" in said
    assert "busy" not in multinic.refuses("rolling-update", code=3)
    assert healthy(fleet()) == {names[2]}
    assert "would be refused" in multinic("drain", names[2], "--dry-run")
    # Healing one that gets no traffic anyway harms nobody; it comes back undrained.
    text = multinic("heal", names[0])
    assert "comes back undrained" in text and "serves in every network" in text
    assert healthy(fleet()) == {names[0], names[2]}
    multinic("drain", names[2], "--force")
    multinic("undrain", names[2])
    multinic("undrain", names[1])


@pytest.mark.slow
def test_heal_brings_another_vm_under_the_name(multinic, fleet):
    before = {router["name"]: router["id"] for router in fleet()["routers"]}
    name = in_zone(fleet(), ZONES[1])
    assert multinic.json("heal", name, "--dry-run")["done"] is False
    assert multinic.json("heal", name)["done"] is True
    after = {router["name"]: router["id"] for router in fleet()["routers"]}
    assert before.keys() == after.keys()
    assert [one for one in before if before[one] != after[one]] == [name]


def test_words_that_name_no_router_are_answered_with_those_that_do(ground, multinic, fleet):
    other = multinic.json("status", "--fleet", "v2-second-fleet")["fleet"]["routers"][0]["name"]
    client = ground.outputs["clients"][0]
    said = multinic.refuses("drain", other, code=2)
    assert f"{other} is a VM of fleet v2-second-fleet, not of router-fleet" in said
    assert "is a VM, but no router" in multinic.refuses("drain", client, code=2)
    said = multinic.refuses("heal", ZONES[0], code=2)
    assert "is a zone; this takes one VM: router-fleet-a-" in said
    assert "has no group in zone us-central1-f; its zones are" in multinic.refuses("drain", "us-central1-f", code=2)
    assert "whole region" in multinic.refuses("drain", "us-central1", code=2)
    assert "no VM or zone is called nobody" in multinic.refuses("drain", "nobody", code=2)
    assert "has several fleets: router-fleet, v2-second-fleet" in multinic.refuses(
        "status", "--region", "us-central1", code=2
    )
    assert "has no fleet nobody" in multinic.refuses("status", "--fleet", "nobody", code=2)
    assert "region us-east1 of project lab has no fleet" in multinic.refuses("status", "--region", "us-east1", code=1)
    assert "is the beginning of several" in multinic.refuses("withdraw", "dev", code=2)
    assert "is none of the fleet's" in multinic.refuses("restore", "nowhere", code=2)
    assert "or give --all" in multinic.refuses("withdraw", code=2)


@pytest.mark.slow
def test_a_group_of_size_0_says_so(ground, multinic, fleet):
    second = multinic.json("status", "--fleet", "v2-second-fleet")["fleet"]
    groups = [group["link"] for group in second["groups"]]

    def bounds(cloud, least):
        for key in groups:
            scaler = cloud.autoscalers.of(key)
            if scaler:
                value = cloud.store.require(scaler)
                policy = {**value["autoscalingPolicy"], "minNumReplicas": least, "mode": "ON" if least else "OFF"}
                cloud.store.put(scaler, {**value, "autoscalingPolicy": policy})
            cloud.instance_group_managers.set_size(key, least)

    ground.inside(lambda cloud: bounds(cloud, 0))
    try:
        deadline = time.monotonic() + 60
        while multinic.json("status", "--fleet", "v2-second-fleet")["fleet"]["routers"]:
            assert time.monotonic() < deadline
        assert "has no VM now; its group's size is 0" in multinic.refuses(
            "drain", ZONES[0], "--fleet", "v2-second-fleet", code=2
        )
        assert "the fleet has no VM" in multinic("rolling-update", "--fleet", "v2-second-fleet")
        said = multinic.refuses("upgrade", "--yes", code=3)
        assert "not ready" in said
        found = multinic.json("doctor", "--fleet", "v2-second-fleet", code=5)
        states = {one["what"]: one for one in found}
        assert states["group of us-central1-a"]["state"] == "warning"
        assert any(one["what"].startswith("health in") and one["state"] == "missing" for one in found)
    finally:
        ground.inside(lambda cloud: bounds(cloud, 1))
        deadline = time.monotonic() + 60
        while len(healthy(multinic.json("status", "--fleet", "v2-second-fleet")["fleet"])) < 2:
            assert time.monotonic() < deadline


@pytest.mark.slow
def test_a_rolling_update_replaces_all_and_stops_when_health_drops(ground, multinic, fleet, monkeypatch):
    before = {router["name"]: router["id"] for router in fleet()["routers"]}
    names = [in_zone(fleet(), zone) for zone in ZONES]
    apply = rolling.heal.apply

    def recreate_and_break(api, found, routers):
        apply(api, found, routers)
        # The new VM does not come up, and another one falls ill.
        ground.machines.dull.update((names[0], names[2]))

    with monkeypatch.context() as patch:
        patch.setattr(rolling.heal, "apply", recreate_and_break)
        said = multinic.refuses("rolling-update", code=4)
    assert f"{names[2]} does not serve any more" in said and "--resume" in said
    ground.machines.dull.clear()
    wait_for(multinic, quiet)
    assert "done before" in multinic("rolling-update", "--resume", "--dry-run")
    multinic("rolling-update", "--resume")
    after = {router["name"]: router["id"] for router in fleet()["routers"]}
    assert before.keys() == after.keys()
    assert all(before[name] != after[name] for name in before)
    assert "no update of router-fleet was stopped" in multinic.refuses("rolling-update", "--resume", code=2)


def test_withdraw_and_restore_bring_the_same_route_back(ground, multinic, fleet):
    def routes(cloud):
        fields = ("name", "network", "destRange", "priority", "nextHopIlb", "tags", "description")
        found = [value for _, value in cloud.store.everywhere("routes") if "nextHopIlb" in value]
        return sorted(({name: one.get(name) for name in fields} for one in found), key=lambda one: one["name"])

    before = ground.inside(routes)
    # The second fleet's routes take over, so nothing speaks against it.
    text = multinic("withdraw", "dev-left", "--yes")
    assert "goes on by route v2-second-route-nic0" in text
    assert "withdrawn already" in multinic("withdraw", "dev-left", "--yes")
    assert len(ground.inside(routes)) == len(before) - 1
    states = {one["route"]["network"].rpartition("-")[0]: one["state"] for one in multinic.json("routes")}
    assert states == {"dev-left": "withdrawn", "dev-right": "in force"}
    assert "multinic restore" in str(multinic.json("doctor"))
    said = multinic.refuses("withdraw", "dev-right", "--fleet", "v2-second-fleet", "--all", code=2)
    assert "give --all" in said
    # Whoever withdraws the other fleet's as well would stop the traffic.
    said = multinic.refuses("withdraw", "dev-left", "--yes", "--fleet", "v2-second-fleet", code=3)
    assert "nothing takes over" in said
    multinic("restore", "--all")
    assert ground.inside(routes) == before
    assert "has no withdrawn route" in multinic("restore", "--all")


@pytest.mark.slow
def test_a_withdrawal_that_was_cut_off_is_finished_by_giving_it_again(ground, multinic, fleet, monkeypatch):
    from multinic.operate import records

    def broken(api, route):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(records, "delete", broken)
        multinic("withdraw", "dev-left", "--yes", code=130)
    # The record is there, the route too: traffic goes on, and the record is known to stand for nothing.
    assert "the route is back: --cleanup" in multinic("routes")
    multinic("withdraw", "dev-left", "--yes")
    with monkeypatch.context() as patch:
        patch.setattr(records, "delete", broken)
        multinic("restore", "dev-left", code=130)
    assert "is back already" in multinic("restore", "dev-left")
    assert {one["state"] for one in multinic.json("routes")} == {"in force"}


@pytest.mark.slow
def test_routes_whose_load_balancer_is_gone_and_leftovers_are_deleted_when_asked_for(ground, multinic, fleet):
    network = fleet()["hops"][0]["network_link"]

    def add(cloud):
        for name, more in {
            "dead": {"nextHopIlb": "10.10.0.250"},
            "left": {
                "nextHopGateway": "https://www.googleapis.com/compute/v1/projects/lab/global/gateways/default-internet-gateway",
                "tags": ["multinic-withdrawn"],
                "description": "multinic withdrawn: "
                + json.dumps(
                    {
                        "name": "old",
                        "hop": "projects/lab/regions/us-central1/forwardingRules/gone",
                        "tags": [],
                        "text": "",
                    }
                ),
            },
        }.items():
            link = f"https://www.googleapis.com/compute/v1/{network}"
            value = {
                "name": name,
                "network": link,
                "destRange": "10.99.0.0/16",
                "priority": 800,
                "id": "1",
                "routeType": "STATIC",
                "kind": "compute#route",
                "creationTimestamp": "2026-01-01T00:00:00.000-00:00",
            }
            cloud.store.put(f"projects/lab/global/routes/{name}", value | more)

    ground.inside(add)
    assert "dead" in multinic("routes")
    multinic("routes", "--warnings", code=5)
    assert "NEXT_HOP_ADDRESS_NOT_ASSIGNED" in multinic.out and "exit" not in multinic.err
    assert "give --yes" in multinic.refuses("routes", "--delete-warnings", code=3)
    assert "deleted dead" in multinic("routes", "--delete-warnings", "--yes")
    assert "no route's load balancer is gone" in multinic("routes", "--delete-warnings", "--yes")
    assert "load balancer of the route that it stands for is gone" in multinic("routes", "--cleanup", "--dry-run")
    assert "deleted left" in multinic("routes", "--cleanup", "--yes")
    assert "nothing is left over" in multinic("routes", "--cleanup", "--yes")
    assert multinic.json("routes", "--warnings") == []


@pytest.mark.slow
def test_an_upgrade_moves_traffic_to_the_second_fleet_and_back(ground, multinic, fleet):
    client, server = ground.outputs["clients"][0], ground.outputs["servers"][0]

    def way(fleet_name):
        found = multinic.json("trace", client, server, "--fleet", fleet_name, code=0)
        return next(step["result"] for step in found["flow"]["forth"]["steps"] if step["what"] == "route")

    assert way("router-fleet").startswith("router-route-nic0")
    assert "cut-over" in multinic("upgrade", "--dry-run")
    # Two VMs instead of three: a person may think that enough.
    assert "not ready" in multinic.refuses("upgrade", "--yes", "--watch", "0", code=3)
    text = multinic("upgrade", "--yes", "--watch", "0.5", "--force")
    assert "carries the traffic" in text and "withdrew router-route-nic0" in text
    assert way("v2-second-fleet").startswith("v2-second-route-nic0")
    assert "not the fleet" in str(multinic.json("trace", client, server, code=5)) or "withdrawn" in multinic.out
    # Given again, it finds everything done.
    assert "are withdrawn already" in multinic("upgrade", "--yes", "--watch", "0", "--force")
    multinic("upgrade", "--back", "--yes")
    assert way("router-fleet").startswith("router-route-nic0")
    assert "nothing is cut over" in multinic("upgrade", "--back", "--yes")


@pytest.mark.slow
def test_an_upgrade_stops_where_the_new_fleet_falls_ill(ground, multinic, fleet, monkeypatch):
    second = [router["name"] for router in multinic.json("status", "--fleet", "v2-second-fleet")["fleet"]["routers"]]
    cut_over = upgrade.apply_cut_over

    def cut_over_and_break(*given):
        cut_over(*given)
        ground.machines.dull.update(second)

    with monkeypatch.context() as patch:
        patch.setattr(upgrade, "apply_cut_over", cut_over_and_break)
        try:
            said = multinic.refuses("upgrade", "--yes", "--watch", "60", "--force", code=4)
        finally:
            ground.machines.dull.clear()
    assert "health dropped" in said and "--back" in said
    assert [one["state"] for one in multinic.json("routes", "--fleet", "v2-second-fleet")].count("cut-over") == 2
    multinic("upgrade", "--back", "--yes")
    assert {one["state"] for one in multinic.json("routes", "--fleet", "v2-second-fleet")} == {"in force"}
    deadline = time.monotonic() + 60
    while len(healthy(multinic.json("status", "--fleet", "v2-second-fleet")["fleet"])) < 2:
        assert time.monotonic() < deadline


@pytest.mark.slow
def test_templates_that_nobody_uses_are_deleted(ground, multinic, fleet):
    used = fleet()["groups"][0]["template"]
    old = used[:-7] + "0000000"

    def copy(cloud):
        value = cloud.store.require(f"projects/lab/global/instanceTemplates/{used}")
        cloud.store.put(f"projects/lab/global/instanceTemplates/{old}", {**value, "name": old})

    ground.inside(copy)
    assert "unused" in str(multinic.json("doctor"))
    assert {one["name"]: bool(one["users"]) for one in multinic.json("templates")} == {used: True, old: False}
    multinic("templates", "--delete", "--dry-run")
    assert f"deleted {old}" in multinic("templates", "--delete", "--yes")
    assert [one["name"] for one in multinic.json("templates")] == [used]
    assert multinic.json("templates", "--delete", "--yes")["done"] is False


def test_logs_are_found_by_fleet_vm_event_and_severity(ground, multinic, fleet):
    names = [router["name"] for router in fleet()["routers"]]

    def write(cloud):
        rows = [("repaired", "WARNING", names[0]), ("drained", "NOTICE", names[1]), ("repaired", "WARNING", "other-vm")]
        entries = [
            {"severity": severity, "jsonPayload": {"event": event, "instance": name, "zone": "z", "count": 2}}
            for event, severity, name in rows
        ]
        cloud.log_entries.write({"logName": "projects/lab/logs/multinic", "entries": entries})

    ground.inside(write)
    text = multinic("logs")
    assert names[0] in text and names[1] in text and "count=2" in text and "other-vm" not in text
    assert names[1] not in multinic("logs", names[0])
    assert names[0] not in multinic("logs", "--event", "drained")
    assert "drained" not in multinic("logs", "--severity", "warning")
    assert {json.loads(line)["event"] for line in multinic("logs", "--json").splitlines()} == {"repaired", "drained"}
    assert "--since yesterday" in multinic.refuses("logs", "--since", "yesterday", code=2)
    assert "--severity loud" in multinic.refuses("logs", "--severity", "loud", code=2)


@pytest.mark.slow
def test_logs_follow_until_interrupted(ground, multinic, fleet):
    name = fleet()["routers"][0]["name"]

    def write(cloud):
        entry = {"severity": "NOTICE", "jsonPayload": {"event": "recovered", "instance": name}}
        cloud.log_entries.write({"logName": "projects/lab/logs/multinic", "entries": [entry]})

    def later():
        with contextlib.suppress(Exception):
            ground.inside(write)
        time.sleep(3)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Timer(1.5, later)
    thread.start()
    multinic("logs", "--follow", "--since", "1s", "--json", code=130)
    thread.join()
    assert [json.loads(line)["event"] for line in multinic.out.splitlines()].count("recovered") == 1


@pytest.mark.slow
def test_status_is_shown_again_and_again_until_interrupted(multinic):
    timer = threading.Timer(4.0, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    multinic("status", "--watch", "--every", "0.5", "--json", code=130)
    timer.join()
    found = [json.loads(line) for line in multinic.out.splitlines()]
    assert len(found) > 1 and all(len(one["fleet"]["routers"]) == 3 for one in found)


def test_a_trace_agrees_with_the_labs_own(ground, multinic, fleet):
    client, server = ground.outputs["clients"][0], ground.outputs["servers"][0]
    found = multinic.json("trace", client, server, "--port", "5201")
    forth, back = found["flow"]["forth"], found["flow"]["back"]
    assert found["arrives"] is True
    assert forth["nics"] == ["nic0", "nic1"] and back["nics"] == ["nic1", "nic0"]
    assert set(forth["routers"]) == set(back["routers"]) == healthy(fleet())
    addresses = [title.rpartition("(")[2].rstrip(")") for title in forth["title"].split(" → ")]

    def of_the_lab(cloud):
        from multinic.lab.cloud.packet import trace

        return trace(cloud, addresses[0], addresses[1], "tcp", "5201")

    theirs = ground.inside(of_the_lab)
    assert theirs["delivered"] is True
    candidates = {one["machine"].rpartition("/")[2] for one in theirs["steps"][0]["candidates"]}
    assert candidates == set(forth["routers"])
    # By addresses it is the same.
    assert multinic.json("trace", *addresses, "--port", "5201")["flow"]["forth"]["routers"] == forth["routers"]
    assert "it arrives" in multinic("trace", client, server)
    said = multinic.refuses("trace", client, "nobody", code=2)
    assert "no VM of project lab is called nobody" in said


def test_a_trace_tells_what_is_in_the_way(ground, multinic, fleet):
    client, server = ground.outputs["clients"][0], ground.outputs["servers"][0]
    rules = ground.inside(lambda cloud: {k: v for k, v in cloud.store.everywhere("firewalls") if "routed-nic0" in k})

    def put(cloud, change):
        for key, value in rules.items():
            cloud.store.put(key, {**value, **change})

    ground.inside(lambda cloud: put(cloud, {"disabled": True}))
    try:
        found = multinic.json("trace", client, server, code=5)
        assert "is not let into the routers" in str(found["flow"]["forth"]["problems"])
        problems = [one for one in multinic.json("doctor", code=5) if one["state"] == "missing"]
        assert [one["what"].partition(" of ")[0] for one in problems] == ["firewall"]
        assert "10.10.0.0/24" in problems[0]["detail"] and "pulumi up" in problems[0]["cure"]
    finally:
        ground.inside(lambda cloud: put(cloud, {"disabled": False}))
    names = [router["name"] for router in fleet()["routers"]]
    ground.machines.dull.update(names)
    try:
        wait_for(multinic, lambda found: not healthy(found["fleet"]))
        assert "no router is healthy" in multinic("trace", client, server, code=5)
        assert "NO_HEALTHY_ROUTER" in multinic("routes", "--warnings", code=5)
    finally:
        ground.machines.dull.clear()
        wait_for(multinic, lambda found: len(healthy(found["fleet"])) == 3)


def test_panic_asks_first_and_counts_the_seconds(multinic, fleet):
    name = fleet()["routers"][0]["name"]
    seconds = multinic.json("panic", name, "--yes")["seconds"]
    assert 0 < seconds["detected"] < seconds["serves"]
    assert "give --yes" in multinic.refuses("panic", name, code=3)
    assert "systemctl start kpanic" in multinic("panic", name, "--dry-run")


def test_what_an_api_says_is_one_sentence(ground, multinic, monkeypatch):
    monkeypatch.setenv("MULTINIC_LAB_TOKEN", "another")
    assert "does not accept the credentials" in multinic.refuses("status", code=1)
    monkeypatch.setenv("MULTINIC_LAB_ENDPOINT", "http://127.0.0.1:9")
    said = multinic.refuses("status", code=1)
    assert "the lab at http://127.0.0.1:9 does not answer" in said

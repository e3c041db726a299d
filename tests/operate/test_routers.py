"""The commands that change routers, one fleet beside another, in a lab without guests."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from multinic.lab.cloud import Cloud
from multinic.operate import heal
from multinic.operate.api import Api
from multinic.operate.fleet import DRAIN_KEY, Fleet, Router

from .conftest import Command, Ground
from .seen import ZONES, healthy, in_zone, quiet, wait_for


def test_drain_and_undrain_a_vm_and_a_zone_twice(multinic: Command, fleet: Callable[[], Any]) -> None:
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
def test_a_drain_leaves_other_metadata_alone(ground: Ground, multinic: Command, fleet: Callable[[], Any]) -> None:
    router = fleet()["routers"][0]
    key = f"projects/lab/zones/{router['zone']}/instances/{router['name']}"

    def metadata(cloud: Cloud) -> dict[str, str]:
        return {item["key"]: item["value"] for item in cloud.store.require(key)["metadata"]["items"]}

    before = ground.inside(metadata)
    multinic("drain", router["name"])
    assert ground.inside(metadata) == before | {DRAIN_KEY: "true"}
    multinic("undrain", router["name"])
    assert ground.inside(metadata) == before


@pytest.mark.slow
def test_the_last_healthy_router_is_not_taken_but_by_force(multinic: Command, fleet: Callable[[], Any]) -> None:
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
def test_heal_brings_another_vm_under_the_name(multinic: Command, fleet: Callable[[], Any]) -> None:
    before = {router["name"]: router["id"] for router in fleet()["routers"]}
    name = in_zone(fleet(), ZONES[1])
    assert multinic.json("heal", name, "--dry-run")["done"] is False
    assert multinic.json("heal", name)["done"] is True
    after = {router["name"]: router["id"] for router in fleet()["routers"]}
    assert before.keys() == after.keys()
    assert [one for one in before if before[one] != after[one]] == [name]


def test_words_that_name_no_router_are_answered_with_those_that_do(
    ground: Ground, multinic: Command, fleet: Callable[[], Any]
) -> None:
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
def test_a_group_of_size_0_says_so(ground: Ground, multinic: Command, fleet: Callable[[], Any]) -> None:
    second = multinic.json("status", "--fleet", "v2-second-fleet")["fleet"]
    groups = [group["link"] for group in second["groups"]]

    def bounds(cloud: Cloud, least: int) -> None:
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
def test_a_rolling_update_replaces_all_and_stops_when_health_drops(
    ground: Ground, multinic: Command, fleet: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {router["name"]: router["id"] for router in fleet()["routers"]}
    names = [in_zone(fleet(), zone) for zone in ZONES]
    apply = heal.apply

    def recreate_and_break(api: Api, found: Fleet, routers: Sequence[Router]) -> None:
        apply(api, found, routers)
        # The new VM does not come up, and another one falls ill.
        ground.machines.dull.update((names[0], names[2]))

    with monkeypatch.context() as patch:
        patch.setattr(heal, "apply", recreate_and_break)
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


def test_panic_asks_first_and_counts_the_seconds(multinic: Command, fleet: Callable[[], Any]) -> None:
    name = fleet()["routers"][0]["name"]
    seconds = multinic.json("panic", name, "--yes")["seconds"]
    assert 0 < seconds["detected"] < seconds["serves"]
    assert "give --yes" in multinic.refuses("panic", name, code=3)
    assert "systemctl start kpanic" in multinic("panic", name, "--dry-run")

"""The commands about routes, generations and templates, in a lab without guests."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Never

import pytest

from multinic.lab.cloud import Cloud
from multinic.operate import upgrade
from multinic.operate.api import Api
from multinic.operate.fleet import Route
from multinic.operate.waiting import Say

from .conftest import Command, Ground
from .seen import healthy


def test_withdraw_and_restore_bring_the_same_route_back(
    ground: Ground, multinic: Command, fleet: Callable[[], Any]
) -> None:
    def routes(cloud: Cloud) -> list[dict[str, Any]]:
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
def test_a_withdrawal_that_was_cut_off_is_finished_by_giving_it_again(
    ground: Ground, multinic: Command, fleet: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from multinic.operate import records

    def broken(api: Api, route: Route) -> Never:
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
def test_routes_whose_load_balancer_is_gone_and_leftovers_are_deleted_when_asked_for(
    ground: Ground, multinic: Command, fleet: Callable[[], Any]
) -> None:
    network = fleet()["hops"][0]["network_link"]

    def add(cloud: Cloud) -> None:
        added: dict[str, dict[str, Any]] = {
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
        }
        for name, more in added.items():
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
def test_an_upgrade_moves_traffic_to_the_second_fleet_and_back(
    ground: Ground, multinic: Command, fleet: Callable[[], Any]
) -> None:
    client, server = ground.outputs["clients"][0], ground.outputs["servers"][0]

    def way(fleet_name: str) -> str:
        found = multinic.json("trace", client, server, "--fleet", fleet_name, code=0)
        result: str = next(step["result"] for step in found["flow"]["forth"]["steps"] if step["what"] == "route")
        return result

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
def test_an_upgrade_stops_where_the_new_fleet_falls_ill(
    ground: Ground, multinic: Command, fleet: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    second = [router["name"] for router in multinic.json("status", "--fleet", "v2-second-fleet")["fleet"]["routers"]]
    cut_over = upgrade.apply_cut_over

    def cut_over_and_break(api: Api, pair: upgrade.Pair, items: Sequence[Route], say: Say) -> None:
        cut_over(api, pair, items, say)
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
def test_templates_that_nobody_uses_are_deleted(ground: Ground, multinic: Command, fleet: Callable[[], Any]) -> None:
    used = fleet()["groups"][0]["template"]
    old = used[:-7] + "0000000"

    def copy(cloud: Cloud) -> None:
        value = cloud.store.require(f"projects/lab/global/instanceTemplates/{used}")
        cloud.store.put(f"projects/lab/global/instanceTemplates/{old}", {**value, "name": old})

    ground.inside(copy)
    assert "unused" in str(multinic.json("doctor"))
    assert {one["name"]: bool(one["users"]) for one in multinic.json("templates")} == {used: True, old: False}
    multinic("templates", "--delete", "--dry-run")
    assert f"deleted {old}" in multinic("templates", "--delete", "--yes")
    assert [one["name"] for one in multinic.json("templates")] == [used]
    assert multinic.json("templates", "--delete", "--yes")["done"] is False

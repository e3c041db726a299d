"""What a change of inputs touches, and which URNs there are: renaming a child replaces it in every user's stack."""

from __future__ import annotations

from typing import Any

import pytest

from multinic import Endpoints, MultinicRouter, RoutedNetworks, testing
from tests.unit import snapshots
from tests.unit.shapes import IMAGE, REGION, ZONES, router_args


def declare(args: Any) -> testing.Declared:
    return testing.run(lambda: MultinicRouter("router", args))


def touched(before: Any, after: Any) -> dict[str, set[str]]:
    """Returns the names of the resources that are added, removed and changed by new inputs."""
    old = {one.urn: one for one in declare(before).resources if one.custom}
    new = {one.urn: one for one in declare(after).resources if one.custom}
    return {
        "added": {new[urn].name for urn in new.keys() - old.keys()},
        "removed": {old[urn].name for urn in old.keys() - new.keys()},
        "changed": {new[urn].name for urn in new.keys() & old.keys() if new[urn].inputs != old[urn].inputs},
    }


SHAPES: dict[str, Any] = {
    "two-networks": router_args(),
    "three-networks-fixed": router_args(3, replicas={"min": 2}, zones=ZONES[:2]),
    "generation-given-account": router_args(
        generation="v2", access={"service_account": "r@lab.iam.gserviceaccount.com", "iap_ssh": True}
    ),
    "off": router_args(replicas={"min": 0}, zones=ZONES[:1]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_urns_are_what_they_were(shape: str) -> None:
    snapshots.compare(f"urns-{shape}.txt", "\n".join(declare(SHAPES[shape]).urns) + "\n")


def test_urns_of_networks_and_endpoints_are_what_they_were() -> None:
    def program() -> None:
        made = RoutedNetworks(
            "dev",
            {
                "region": REGION,
                "networks": [{"name": "left", "cidr": "10.0.0.0/24"}, {"name": "right", "cidr": "10.1.0.0/24"}],
            },
        )
        ends = [{"network": one["network"], "subnetwork": one["subnetwork"]} for one in made.router_networks]
        args: Any = {
            "zones": ZONES,
            "image": IMAGE,
            "clients": {**ends[0], "count": 2},
            "servers": ends[1],
            "cidrs": ["10.0.0.0/8"],
        }
        Endpoints("ends", args)

    snapshots.compare("urns-endpoints.txt", "\n".join(testing.run(program).urns) + "\n")


def test_a_zone_more_touches_only_itself_and_the_backends() -> None:
    assert touched(router_args(zones=ZONES[:2]), router_args()) == {
        "added": {"router-fleet-group-us-central1-c", "router-fleet-autoscaler-us-central1-c"},
        "removed": set(),
        "changed": {"router-nic0-backend", "router-nic1-backend"},
    }


def test_zones_in_another_order_touch_no_group() -> None:
    found = touched(router_args(), router_args(zones=ZONES[::-1]))
    assert (found["added"], found["removed"]) == (set(), set())
    assert found["changed"] == set()


def test_a_range_more_behind_two_networks_touches_routes_and_firewall_only() -> None:
    after = router_args()
    after["networks"][1]["cidrs"] = ["10.1.0.0/16", "10.9.0.0/16"]
    assert touched(router_args(), after) == {
        "added": {"router-route-nic0-10-9-0-0-16"},
        "removed": set(),
        "changed": {"router-routed-nic0", "router-routed-nic1"},
    }


def test_a_range_more_behind_three_networks_rolls_the_fleet() -> None:
    after = router_args(3)
    after["networks"][1]["cidrs"] = ["10.1.0.0/16", "10.9.0.0/16"]
    assert "router-fleet-template" in touched(router_args(3), after)["changed"]


def test_ranges_in_another_order_touch_nothing() -> None:
    before, after = router_args(), router_args()
    before["networks"][1]["cidrs"] = ["10.1.0.0/16", "10.9.0.0/16"]
    after["networks"][1]["cidrs"] = ["10.9.0.0/16", "10.1.0.0/16"]
    assert touched(before, after) == {"added": set(), "removed": set(), "changed": set()}


def test_a_network_more_at_the_end_keeps_the_load_balancers_of_the_others() -> None:
    before = router_args(2, machine={"image": IMAGE, "metadata": {}})
    found = touched(before, router_args(3))
    assert found["removed"] == set()
    assert found["changed"] == {"router-fleet-template", "router-routed-nic0", "router-routed-nic1"}
    assert {"router-nic2-rule", "router-nic2-backend", "router-nic2-address"} <= found["added"]


def test_another_check_touches_no_template_unless_the_guest_must_know() -> None:
    health = {"heal": {"unhealthy_threshold": 5}}
    assert touched(router_args(), router_args(health=health))["changed"] == {"router-fleet-heal"}
    health = {"traffic": {"unhealthy_threshold": 3}}
    assert touched(router_args(), router_args(health=health))["changed"] == {"router-traffic", "router-fleet-template"}


def test_policy_of_the_load_balancers_never_reaches_the_forwarding_rule() -> None:
    # A changed rule is replaced, and until the new one is there no packet passes.
    policy = {
        "session_affinity": "CLIENT_IP",
        "tracking_mode": "PER_SESSION",
        "persistence": "DEFAULT_FOR_PROTOCOL",
        "idle_timeout_sec": 900,
        "draining_sec": 60,
        "log_sample_rate": 0.5,
        "failover_zones": ZONES[:1],
    }
    assert touched(router_args(), router_args(next_hop=policy))["changed"] == {
        "router-nic0-backend",
        "router-nic1-backend",
    }


def test_what_is_turned_off_again_is_said_to_be_off() -> None:
    # The provider keeps what it reads of these inputs for as long as a program says nothing of them.
    on = router_args(
        next_hop={"log_sample_rate": 0.5, "failover_zones": ZONES[:1]}, standby={"stopped": 1, "suspended": 1}
    )
    for kind in ("RegionBackendService", "InstanceGroupManager"):
        inputs = [declare(args).all(kind)[0].inputs for args in (on, router_args())]
        left_out = inputs[0].keys() - inputs[1].keys()
        # The provider takes a failover policy away; a policy for no VM on standby does nothing.
        assert left_out <= {"failoverPolicy", "standbyPolicy"}
    assert declare(router_args()).all("RegionBackendService")[0]["logConfig"] == {"enable": False}

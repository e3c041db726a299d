"""What the commands plan, and what they refuse, on plain data."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest

from multinic.operate import drain, heal, panic, records, rolling, routes, upgrade, withdraw, words
from multinic.operate.errors import OperateError, RefusedError, WordError
from multinic.operate.firewall import Party, Rule, Service, decide
from multinic.operate.fleet import Autoscaler, Fleet
from multinic.operate.flow import Flow
from multinic.operate.topology import End, Network, Subnet, Topology
from multinic.operate.trace import trace

from .fleets import NETWORKS, REGION, fleet, network_link, route, router, with_group, with_router

SICK = dict.fromkeys(NETWORKS, "UNHEALTHY")


def test_a_router_that_leaves_anyhow_does_not_count_as_left() -> None:
    found = with_router(fleet("ab"), "router-b-0", action="DELETING")
    plan = drain.plan(found, [found.routers[0]])
    assert "router-b-0 is about to go as well" in plan.refusal
    with pytest.raises(RefusedError, match="--force"):
        plan.require(force=False)
    plan.require(force=True)


def test_one_network_without_a_router_is_enough_to_refuse() -> None:
    found = with_router(fleet("ab"), "router-b-0", health={"left": "HEALTHY", "right": "UNHEALTHY"})
    assert "network right" in heal.plan(found, found.routers[0]).refusal
    assert not heal.plan(found, found.routers[1]).refusal, "router-a serves both"
    assert not panic.plan(fleet("ab"), fleet("ab").routers[0]).refusal


def test_what_gets_no_traffic_may_be_taken() -> None:
    found = with_router(fleet("a"), "router-a-0", health=SICK)
    assert not heal.plan(found, found.routers[0]).refusal


def test_a_heal_that_goes_on_already_is_not_begun_again() -> None:
    found = with_router(fleet(), "router-a-0", action="RECREATING", status="STOPPING")
    assert not heal.plan(found, found.routers[0]).items
    assert not panic.plan(found, found.routers[0]).items


def test_notes_of_a_drain() -> None:
    busy = with_group(
        fleet(), 0, reached=False, actions={"creating": 1}, size=2, autoscaler=Autoscaler("as", 1, 4, "ON")
    )
    notes = " ".join(drain.plan(busy, [busy.routers[0]]).warnings)
    for word in ("a rollout runs in us-central1-a (1 creating)", "autoscaler of us-central1-a may take", "undrained"):
        assert word in notes
    drained = with_router(fleet(), "router-a-0", drained=True)
    assert not drain.plan(drained, [drained.routers[0]]).warnings


def test_metadata_that_somebody_else_writes_meanwhile_is_kept() -> None:
    from google.cloud import compute_v1 as library

    class Raced:
        """Somebody adds a key between the first reading and the first writing."""

        def __init__(self) -> None:
            self.keys, self.print = ["a"], "1"

        def get(self, kind: str, **_: object) -> object:
            items = [library.Items(key=key, value="v") for key in self.keys]
            return library.Instance(metadata=library.Metadata(items=items, fingerprint=self.print))

        def do(self, kind: str, method: str, *, metadata_resource: dict[str, Any], **_: object) -> None:
            if self.print == "1":
                self.keys, self.print = ["a", "b"], "2"
                raise OperateError("Supplied fingerprint does not match current metadata fingerprint.")
            assert metadata_resource["fingerprint"] == "2"
            self.keys = [item.key for item in metadata_resource["items"]]

    api = Raced()
    drain.apply(api, fleet(), fleet().routers[:1], drained=True)  # type: ignore[arg-type]
    assert api.keys == ["a", "b", "multinic-drain"]


def test_a_rolling_update_waits_for_groups_that_are_busy_and_for_sick_routers() -> None:
    assert len(rolling.plan(fleet()).items) == 3
    assert "is busy (1 creating)" in rolling.plan(with_group(fleet(), 1, actions={"creating": 1})).refusal
    assert "`multinic heal router-c-0` first" in rolling.plan(with_router(fleet(), "router-c-0", health=SICK)).refusal
    assert "last healthy" in rolling.plan(fleet("a")).refusal
    old = rolling.plan(with_router(fleet(), "router-a-0", template="t-0000000"))
    assert any("router-a-0 will come back with the group's newest template" in note for note in old.warnings)


def test_a_resumed_update_does_what_is_left() -> None:
    plan = rolling.plan(fleet(), {"router-a-0": "another id", "router-c-0": "id-c-0"})
    assert [one.name for one in plan.items] == ["router-c-0"]
    assert rolling.plan(fleet(), {"router-a-0": "another id"}).items == ()


def test_what_is_left_of_an_update_is_kept(tmp_path: Path) -> None:
    kept = rolling.Round.of(fleet(), {"XDG_STATE_HOME": str(tmp_path)})
    assert kept.read() is None
    kept.write({"router-a-0": "1"})
    assert rolling.Round.of(fleet(), {"XDG_STATE_HOME": str(tmp_path)}).read() == {"router-a-0": "1"}
    kept.write({})
    assert kept.read() is None


def test_health_that_drops() -> None:
    before = fleet()
    now = with_router(before, "router-b-0", health={"left": "HEALTHY", "right": "UNHEALTHY"})
    assert heal.not_serving(now, before, before.routers[0]) == {"router-b-0"}
    gone = replace(before, routers=before.routers[:1])
    assert heal.not_serving(gone, before, before.routers[0]) == set(), "the autoscaler may take one away"
    assert heal.not_serving(now, before, before.routers[1]) == set(), "it is the one that is recreated"


def test_a_record_stands_for_its_route_and_for_nothing_else() -> None:
    original = route("left", "10.1.0.0/16", tags=("client",), description='says "hello"')
    record = records.record_of(original)
    assert records.original_of(record) == original
    assert record.tags == (records.TAG,) and "/gateways/" in record.next_hop
    assert records.original_of(original) is None
    assert records.original_of(replace(record, description="multinic withdrawn: {")) is None
    long = "r" * 63
    assert len(records.derived(long, "withdrawn")) == 63
    assert records.derived(long, "withdrawn") != records.derived("r" * 62 + "s", "withdrawn")


def test_withdrawing_is_refused_where_nothing_takes_over() -> None:
    found = fleet()
    plan = withdraw.plan(found, found.hops[:1])
    assert "left to 10.1.0.0/16 would stop" in plan.refusal
    wider = route("left", "10.0.0.0/8", prefix="wide", next_hop="projects/p/regions/r/forwardingRules/other")
    plan = withdraw.plan(replace(found, routes=(*found.routes, wider)), found.hops[:1])
    assert not plan.refusal and "goes on by route wide-left" in plan.traffic[0]
    narrow = replace(wider, destination="10.1.2.0/24")
    assert withdraw.plan(replace(found, routes=(*found.routes, narrow)), found.hops[:1]).refusal
    tagged = replace(wider, tags=("few",))
    assert withdraw.plan(replace(found, routes=(*found.routes, tagged)), found.hops[:1]).refusal


def test_restoring_to_sick_routers_is_refused() -> None:
    found = fleet("a")
    gone = replace(found, routes=(records.record_of(found.routes[0]), found.routes[1]))
    assert not withdraw.plan_restore(gone, gone.hops).refusal
    sick = with_router(gone, "router-a-0", health=SICK)
    assert "send to all of them" in withdraw.plan_restore(sick, sick.hops).refusal


def test_leftovers() -> None:
    found = replace(fleet(), rules=frozenset(hop.rule for hop in fleet().hops))
    record = records.record_of(found.routes[0])
    assert routes.plan_cleanup(replace(found, routes=(*found.routes, record))).items == (record,)
    alone = replace(found, routes=(record,))
    assert routes.plan_cleanup(alone).items == (), "somebody may want to restore it"
    assert routes.plan_cleanup(replace(alone, rules=frozenset())).items == (record,)
    copy = replace(found.routes[0], name="copy", priority=899, description=f"{records.CUT_OVER}router")
    assert routes.plan_cleanup(replace(found, routes=(*found.routes, copy))).items == (copy,)
    rival = replace(found.routes[0], name="old", next_hop="projects/p/regions/r/forwardingRules/old", priority=899)
    busy = replace(found, routes=(*found.routes, replace(copy, priority=898), rival))
    assert routes.plan_cleanup(busy).items == (), "the copy still wins over another fleet's route"


def generations(old: int = 900, new: int = 901) -> upgrade.Pair:
    one, two = fleet(priority=old), fleet(prefix="v2", priority=new)
    both = (*one.routes, *two.routes)
    return upgrade.Pair(replace(one, routes=both), replace(two, routes=both))


def test_a_cut_over_goes_by_routes_that_win() -> None:
    pair = generations()
    assert all(check.good for check in upgrade.checks(pair))
    assert not pair.leads() and upgrade.plan_withdraw(pair).refusal
    plan = upgrade.plan_cut_over(pair)
    assert [one.priority for one in plan.items] == [899, 899]
    moved = replace(pair.new, routes=(*pair.new.routes, *plan.items))
    after = upgrade.Pair(replace(pair.old, routes=moved.routes), moved)
    assert after.leads() and not upgrade.plan_cut_over(after).items
    assert len(upgrade.plan_withdraw(after).changes) == 4
    assert len(upgrade.plan_back(after).changes) == 2
    # The program's own priority may have done it.
    assert generations(902, 901).leads() and not upgrade.plan_cut_over(generations(902, 901)).items


def test_an_upgrade_wants_all_to_be_ready() -> None:
    pair = generations()
    for new, word in (
        (with_router(pair.new, "router-a-0", health=SICK), "2 of 3 routers of v2 are healthy in left"),
        (replace(pair.new, routers=pair.new.routers[:2]), "as many routers"),
        (with_group(pair.new, 0, actions={"creating": 1}), "no rollout runs"),
        (replace(pair.new, routes=pair.new.routes[:2]), "a route for every range"),
        (replace(pair.new, hops=pair.new.hops[:1]), "both fleets have the networks"),
    ):
        bad = [check.what for check in upgrade.checks(upgrade.Pair(pair.old, new)) if not check.good]
        assert any(word in what for what in bad), (word, bad)
    first = generations(0, 1)
    assert any("priority better" in check.what and not check.good for check in upgrade.checks(first))


def test_beginnings_of_names_are_enough_where_they_are_clear() -> None:
    found = fleet()
    assert words.hops(found, ["le", "left"]) == found.hops[:1]
    with pytest.raises(WordError, match="none of the fleet's: left, right"):
        words.hops(found, ["x"])
    assert words.routers(found, "projects/p/zones/us-central1-a/instances/router-a-0") == found.routers[:1]


LEFT, RIGHT = (network_link(name) for name in NETWORKS)
EVERYTHING = (IPv4Network("0.0.0.0/0"),)
OPEN = tuple(
    Rule(f"open-{i}", link, True, 900, True, EVERYTHING, services=(("all", ()),))
    for i, link in enumerate((LEFT, RIGHT))
)
AROUND = Topology(
    (Network(LEFT, "left", 1460), Network(RIGHT, "right", 1460)),
    tuple(
        Subnet(
            f"projects/p/regions/{REGION}/subnetworks/{name}",
            network_link(name),
            REGION,
            (IPv4Network(f"10.{i}.0.0/24"),),
        )
        for i, name in enumerate(NETWORKS)
    ),
    OPEN,
)
CLIENT = End("client", IPv4Address("10.0.0.50"), LEFT, REGION, machine=True)
SERVER = End("server", IPv4Address("10.1.0.50"), RIGHT, REGION, machine=True)
TCP = Service("tcp", 80)


def whole(**more: object) -> Fleet:
    return replace(fleet(), **more)  # type: ignore[arg-type]


def told(flow: Flow) -> str:
    return " ".join(problem.what + problem.cure for way in (flow.forth, flow.back) for problem in way.problems)


def test_a_flow_that_arrives() -> None:
    flow = trace(whole(), AROUND, CLIENT, SERVER, TCP)
    assert flow.arrives and flow.mtu == 1460
    assert flow.forth.nics == ("nic0", "nic1") and flow.back.nics == ("nic1", "nic0")
    assert len(flow.forth.routers) == 3
    two = trace(with_router(fleet(), "router-a-0", health=SICK), AROUND, CLIENT, SERVER, TCP)
    assert two.arrives and len(two.forth.routers) == 2


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"routes": ()}, "no route in left leads to 10.1.0.50"),
        (
            {"routes": (route("left", "10.1.0.0/16", tags=("few",)), route("right", "10.0.0.0/16"))},
            "for VMs with tags few only",
        ),
        (
            {"routes": (records.record_of(route("left", "10.1.0.0/16")), route("right", "10.0.0.0/16"))},
            "multinic restore left",
        ),
        (
            {
                "routes": (
                    *fleet().routes,
                    route("left", "10.1.0.0/24", 1000, next_hop="projects/p/regions/r/forwardingRules/x"),
                )
            },
            "wins over router-left",
        ),
        ({"hops": (replace(fleet().hops[0], protocol="L3_DEFAULT"), fleet().hops[1])}, "L3_DEFAULT drops"),
        ({"routers": ()}, "the fleet has no VM"),
        ({"routers": tuple(replace(one, health=SICK, drained=True) for one in fleet().routers)}, "multinic undrain"),
        ({"routers": tuple(replace(one, forwards=False) for one in fleet().routers)}, "canIpForward"),
        ({"routers": tuple(replace(one, nics=one.nics[:1]) for one in fleet().routers)}, "no NIC in right"),
    ],
)
def test_a_flow_that_does_not_arrive(change: dict[str, Any], word: str) -> None:
    flow = trace(whole(**change), AROUND, CLIENT, SERVER, TCP)
    assert not flow.arrives
    assert word in told(flow)


def test_the_ends_may_be_the_reason() -> None:
    far = replace(CLIENT, region="us-east1")
    here_only = whole(hops=tuple(replace(hop, everywhere=False) for hop in fleet().hops))
    assert "no global access" in told(trace(here_only, AROUND, far, SERVER, TCP))
    assert not trace(whole(), AROUND, CLIENT, replace(SERVER, running=False), TCP).arrives
    inside = replace(SERVER, network=LEFT, address=IPv4Address("10.0.0.60"))
    flow = trace(whole(), AROUND, CLIENT, inside, TCP)
    assert flow.arrives and "no router is used" in flow.forth.steps[1].result
    overlap = replace(
        AROUND, subnets=(replace(AROUND.subnets[0], ranges=(IPv4Network("10.0.0.0/8"),)), AROUND.subnets[1])
    )
    assert "a subnet's route always wins" in told(trace(whole(), overlap, CLIENT, SERVER, TCP))
    outside = End("192.0.2.1", IPv4Address("192.0.2.1"))
    assert not trace(whole(), AROUND, CLIENT, outside, TCP).arrives
    jumbo = replace(AROUND, networks=(AROUND.networks[0], Network(RIGHT, "right", 8896)))
    flow = trace(whole(), jumbo, CLIENT, SERVER, TCP)
    assert flow.arrives and flow.mtu == 1460 and "MTUs differ" in flow.notes[0].what


def test_each_firewall_rule_on_the_way_can_stop_it() -> None:
    def rule(network: str, **more: object) -> Rule:
        return replace(OPEN[0], name="deny", network=network, priority=100, allow=False, **more)  # type: ignore[arg-type]

    for denial in (
        rule(LEFT, target_accounts=frozenset({"routers@p"})),
        rule(RIGHT, target_accounts=frozenset({"routers@p"})),
        rule(RIGHT),
        rule(LEFT, ingress=False),
        rule(RIGHT, ingress=False, target_accounts=frozenset({"routers@p"})),
        rule(RIGHT, services=(("tcp", ("1-79", "80")),)),
    ):
        assert not trace(whole(), replace(AROUND, rules=(*OPEN, denial)), CLIENT, SERVER, TCP).arrives, denial
    for harmless in (
        rule(RIGHT, services=(("udp", ()),)),
        rule(RIGHT, services=(("tcp", ("81-90",)),)),
        rule(RIGHT, target_tags=frozenset({"others"})),
        rule(RIGHT, ranges=(IPv4Network("10.9.0.0/16"),)),
    ):
        assert trace(whole(), replace(AROUND, rules=(*OPEN, harmless)), CLIENT, SERVER, TCP).arrives, harmless


def test_at_one_priority_a_denial_wins() -> None:
    deny = replace(OPEN[0], name="deny", allow=False)
    mine, other = Party.at("10.0.0.1"), Party.at("10.1.0.1")
    assert not decide((OPEN[0], deny), LEFT, mine, other, TCP, ingress=True).allowed
    assert decide((OPEN[0], replace(deny, priority=901)), LEFT, mine, other, TCP, ingress=True).allowed
    assert decide((), LEFT, mine, other, TCP, ingress=False).allowed
    assert not decide((), LEFT, mine, other, TCP, ingress=True).allowed
    one = replace(OPEN[0], ranges=(), source_tags=frozenset({"probe"}))
    assert decide((one,), LEFT, mine, Party.at("10.1.0.1", frozenset({"probe"})), TCP, ingress=True).allowed


def test_vms_of_several_zones_keep_their_names() -> None:
    assert router("us-central1-a", 3).name == "router-a-3"

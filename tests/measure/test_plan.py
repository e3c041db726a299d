from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multinic.machines import cpu_target, parse
from multinic.measure.errors import MeasureError, WordError
from multinic.measure.plan import availability, text
from multinic.measure.plan.limits import FILE, load
from multinic.measure.plan.planner import Demand, Plan, plan

LIMITS = load()

demands = st.builds(
    Demand,
    gbps=st.floats(0.1, 400),
    packets=st.floats(0, 2e7),
    availability=st.sampled_from([0.5, 0.99, 0.999, 0.9999, 0.99999]),
    mtu=st.sampled_from([1300, 1460, 1500, 8896]),
    networks=st.integers(2, 4),
    tier_1=st.booleans(),
)


def made(demand: Demand) -> Plan | None:
    try:
        return plan(demand, LIMITS)[0]
    except MeasureError:
        return None


@settings(max_examples=20, deadline=None)
@given(demands)
def test_what_is_planned_does_what_is_asked(demand: Demand) -> None:
    found = made(demand)
    if found is None:
        return
    assert found.capacity >= demand.gbps * (1 - 1e-6)
    assert found.packets >= demand.packets * (1 - 1e-6)
    assert found.least <= found.most
    assert found.routers <= 250
    assert found.router <= found.type.gbps
    limits = {key: LIMITS.number("availability", key) for key in ("zone", "vm")}
    assert availability.sure(found.zones, found.least, demand.availability, **limits) == found.sure
    if found.least > 1:
        fewer = availability.sure(found.zones, found.least - 1, demand.availability, **limits)
        assert fewer * found.router < demand.gbps * (1 + 1e-6), "one router a zone less would do too"


@settings(max_examples=20, deadline=None)
@given(demands, st.floats(1, 5))
def test_more_demand_never_gives_less(demand: Demand, times: float) -> None:
    """More Gbit/s with packets of the same size, or more availability: never less capacity, never cheaper."""
    more = replace(demand, gbps=demand.gbps * times, packets=demand.packets * times)
    small, large = made(demand), made(more)
    if large is None:
        return
    assert small is not None, "the larger demand can be met, so the smaller one can"
    assert large.capacity >= small.capacity * (1 - 1e-6)
    assert large.monthly >= small.monthly * (1 - 1e-6)


@settings(max_examples=12, deadline=None)
@given(demands, st.floats(1, 5))
def test_more_packets_never_cost_less(demand: Demand, times: float) -> None:
    demand = replace(demand, packets=max(demand.packets, demand.gbps * 1e9 / 8 / 200))
    small, large = made(demand), made(replace(demand, packets=demand.packets * times))
    if large is None:
        return
    assert small is not None
    assert large.packets >= small.packets * (1 - 1e-6)
    assert large.monthly >= small.monthly * (1 - 1e-6)


@settings(max_examples=10, deadline=None)
@given(demands)
def test_more_availability_never_costs_less(demand: Demand) -> None:
    costs = [one.monthly for level in (0.5, 0.99, 0.999, 0.9999) if (one := made(replace(demand, availability=level)))]
    assert costs == sorted(costs)


@settings(max_examples=10, deadline=None)
@given(demands)
def test_the_first_is_the_cheapest_that_fits(demand: Demand) -> None:
    found = made(demand)
    if found is None:
        return
    assert found.monthly == min(one.monthly for one in plan(demand, LIMITS))
    for zones in range(1, 4):
        try:
            alone = plan(replace(demand, zone_count=zones), LIMITS)
        except MeasureError:
            continue
        assert all(other.monthly >= found.monthly - 1e-6 for other in alone)


def test_three_nines_need_more_than_one_zone() -> None:
    assert plan(Demand(5, availability=0.998), LIMITS)[0].zones == 1
    assert plan(Demand(5, availability=0.99999), LIMITS)[0].zones >= 2


def test_a_zone_lost_leaves_enough() -> None:
    found = plan(Demand(40, availability=0.9995), LIMITS)[0]
    assert (found.zones - 1) * found.least * found.router >= 40


def test_small_packets_bind_before_bytes() -> None:
    few, many = plan(Demand(5), LIMITS)[0], plan(Demand(5, packets=5e9 / 8 / 100), LIMITS)[0]
    assert few.bounds[0].name == "bytes of a VM" or few.bounds[0].allows <= few.bounds[1].allows
    assert many.bounds[0].name == "packets of a VM"
    assert many.monthly > few.monthly


def test_a_worked_example_by_hand() -> None:
    """n2-highcpu-8: 16 Gbit/s, 14.3 of it reached; 60 Gbit/s need 5 routers; over 3 zones with one lost, 3 a zone."""
    found = plan(Demand(60, availability=0.9995, machine="n2-highcpu-8", zone_count=3, mtu=8896), LIMITS)[0]
    assert found.router == pytest.approx(14.304)
    assert found.least == 3
    hourly = 8 * (0.031611 + 0.004237)
    assert found.monthly == pytest.approx(9 * (hourly * 730 + 1) + 0.025 * 730)
    assert (found.detect, found.pause) == (3, 3.1)


def test_reference_ones_checks_pause_longer() -> None:
    found = plan(Demand(5, interval=3, timeout=2, unhealthy=2), LIMITS)[0]
    assert (found.detect, found.pause) == (8, 13.2)


@pytest.mark.parametrize(
    ("demand", "reason"),
    [
        (Demand(0), "gbps: 0"),
        (Demand(5, availability=1), "never all of the time"),
        (Demand(5, peak=1), "peak: 1 is less"),
        (Demand(5, mtu=9001), "mtu: 9001"),
        (Demand(5, networks=9), "networks: 9"),
        (Demand(5, interval=1, timeout=2), "must fit in"),
        (Demand(5, zone_count=4), "zones: 4 of 3"),
        (Demand(5, per_stream=15), "whatever the number of routers"),
        (Demand(5, machine="m9-mega-7"), "no price"),
        (Demand(5, networks=4, machine="n2-highcpu-2"), "takes 2 NICs"),
        (Demand(5, availability=0.9999, zones=1), "cannot give 0.9999"),
        (Demand(20_000), "more than"),
    ],
)
def test_what_cannot_work_is_refused(demand: Demand, reason: str) -> None:
    with pytest.raises(MeasureError, match=reason):
        plan(demand, LIMITS)


def test_all_problems_at_once() -> None:
    with pytest.raises(MeasureError, match=r"gbps.*mtu.*networks"):
        plan(Demand(-1, mtu=100, networks=1), LIMITS)


@pytest.mark.parametrize(("routers", "zone", "vm"), [(1, 0.9, 0.8), (3, 0.99, 0.9)])
def test_availability_by_counting_every_case(routers: int, zone: float, vm: float) -> None:
    zones = 2
    wanted = 0.7
    chances = [0.0] * (zones * routers + 1)

    def go(left: int, chance: float, up: int) -> None:
        if left == 0:
            chances[up] += chance
            return
        go(left - 1, chance * (1 - zone), up)
        for pattern in range(2**routers):
            there = pattern.bit_count()
            go(left - 1, chance * zone * vm**there * (1 - vm) ** (routers - there), up + there)

    go(zones, 1.0, 0)
    assert sum(chances) == pytest.approx(1)
    found = availability.sure(zones, routers, wanted, zone=zone, vm=vm)
    assert sum(chances[found:]) >= wanted > sum(chances[found + 1 :])


def test_each_table_of_the_data_file_has_a_source_and_a_date() -> None:
    for name, table in LIMITS.tables.items():
        if name != "series":
            assert table["source"] and table["date"], name


def test_a_data_file_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(FILE.read_text().replace("gbps = 10.0", "gbps = 3.0"))
    assert plan(Demand(5), load(own))[0].stream == pytest.approx(3.0)
    own.write_text("[series.z9]\nkind = 'mega'\n")
    with pytest.raises(MeasureError, match="z9"):
        load(own)
    with pytest.raises(MeasureError):
        load(tmp_path / "none.toml")


def test_tier_1s_charge_is_told_to_be_missing() -> None:
    found = plan(Demand(60, machine="n2-highcpu-32", tier_1=True), LIMITS)
    (one,) = [each for each in found if each.type.tier_1]
    assert dict(text.rows(one)[1:])["cost a month"].startswith(f"${one.monthly:,.0f} and Tier_1's charge")
    assert any("Tier_1's charge" in row[-1] for row in text.others(found))
    assert any("not in the cost" in note for note in text.notes(one, LIMITS))
    assert text.as_json(one)["not_in_the_cost"] == ["Tier_1"]


@pytest.mark.parametrize("machine", ["n2-highcpu-4", "n1-highcpu-2", "e2-highcpu-8", "n2d-highcpu-16"])
def test_the_planned_cpu_target_is_within_reach_and_near_the_components_default(machine: str) -> None:
    """The planner knows the share of the cap that is really reached, the component only the cap."""
    found = plan(Demand(20, machine=machine), LIMITS)[0]
    known = parse(machine)
    assert known is not None and known.gbps is not None
    assert found.target < found.cpu
    if found.bounds[0].name == "bytes of a VM":
        assert found.target == pytest.approx(cpu_target(known.cpu(known.gbps)), abs=0.02)


def test_a_machine_whose_cpu_says_nothing_is_told_of() -> None:
    found = plan(Demand(100, machine="n2-highcpu-64"), LIMITS)[0]
    assert found.target > found.cpu
    assert any("no CPU target notices" in note for note in text.notes(found, LIMITS))


def test_words() -> None:
    found = plan(Demand(30, streams=5), LIMITS)[0]
    rows = dict(text.rows(found)[1:])
    assert rows["machine type"] == found.type.name
    assert "5 streams together" in rows
    assert any("the hash will leave some idle" in note for note in text.notes(found, LIMITS))
    explained = text.explanation(found)
    assert sum(line.endswith(", binds") for line in explained) == 1
    assert all(word in "\n".join(explained) for word in ("source:", "read 20"))


@pytest.mark.parametrize(
    "demand",
    [
        Demand(5, peak=float("nan")),
        Demand(5, peak=float("inf")),
        Demand(5, packets=float("nan")),
        Demand(5, packets=float("inf")),
        Demand(5, per_stream=float("nan")),
        Demand(5, availability=float("nan")),
        Demand(5, interval=float("nan")),
        Demand(5, zones=99_999),
    ],
)
def test_numbers_that_are_none_are_wrong_words(demand: Demand) -> None:
    with pytest.raises(WordError):
        plan(demand, LIMITS)

"""The decisions of a managed group, as tables and as properties."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multinic.lab.cloud.group_plan import Decision, Member, Target, decide
from multinic.lab.cloud.group_updates import ACTIONS


def old(name: str, **more: Any) -> Member:
    return Member(name, current=False, **more)


@pytest.mark.parametrize(
    ("target", "members", "expected"),
    [
        pytest.param(Target(2), [], Decision(create=2), id="empty group"),
        pytest.param(Target(1), [Member("a")], Decision(), id="content"),
        pytest.param(Target(0), [Member("a"), Member("b")], Decision(delete=("a", "b")), id="switched off"),
        pytest.param(
            Target(1), [Member("a"), Member("b", ready=False)], Decision(delete=("b",)), id="unready ones go first"
        ),
        pytest.param(
            Target(1), [Member("a", age=1), Member("b", age=9)], Decision(delete=("a",)), id="then the youngest"
        ),
        pytest.param(Target(1), [Member("a", failed=True)], Decision(repair=("a",)), id="repair"),
        pytest.param(Target(1, repair=False), [Member("a", failed=True)], Decision(), id="repair switched off"),
        pytest.param(Target(1), [Member("a", busy=True, failed=True)], Decision(), id="already being made"),
        pytest.param(Target(1), [Member("a", leaving=True)], Decision(create=1), id="replaced while it goes"),
        pytest.param(Target(1), [old("a")], Decision(create=1), id="surge first"),
        pytest.param(Target(1), [old("a"), Member("b", ready=False)], Decision(), id="wait for the new one"),
        pytest.param(Target(1), [old("a"), Member("b")], Decision(delete=("a",)), id="then the old one goes"),
        pytest.param(
            Target(3), [old("a"), old("b"), old("c"), Member("d")], Decision(delete=("a",)), id="one at a time"
        ),
        pytest.param(
            Target(3),
            [old("a", leaving=True), old("b"), old("c"), Member("d")],
            Decision(),
            id="what is still going counts against the surge",
        ),
        pytest.param(Target(2, surge=0, unavailable=1), [old("a"), old("b")], Decision(delete=("a",)), id="no surge"),
        pytest.param(Target(2), [old("a", update=None), old("b", update=None)], Decision(), id="not by itself"),
        pytest.param(
            Target(2, surge=0, unavailable=1),
            [old("a", update="REFRESH"), old("b", update="NONE")],
            Decision(refresh=("a", "b")),
            id="what costs nothing is done at once",
        ),
        pytest.param(Target(1), [old("a", update="REFRESH", busy=True)], Decision(), id="refreshed when it is made"),
        pytest.param(
            Target(1), [old("a", update="REFRESH", failed=True)], Decision(repair=("a",)), id="repaired, then refreshed"
        ),
        pytest.param(
            Target(2), [old("a", update="RESTART"), old("b", update="RESTART")], Decision(create=1), id="stand-in first"
        ),
        pytest.param(
            Target(2),
            [old("a", update="RESTART"), old("b", update="RESTART", age=1), Member("s", ready=False)],
            Decision(),
            id="a stand-in that does not serve stops it",
        ),
        pytest.param(
            Target(2),
            [old("a", update="RESTART"), old("b", update="RESTART", age=1), Member("s")],
            Decision(restart=("b",)),
            id="one at a time",
        ),
        pytest.param(
            Target(2, surge=0, unavailable=1),
            [old("a", update="RESTART"), old("b", update="RESTART")],
            Decision(restart=("a",)),
            id="one may be missing",
        ),
        pytest.param(
            Target(1), [Member("a", ready=False, returning=True), Member("s")], Decision(), id="the stand-in waits"
        ),
        pytest.param(
            Target(1), [Member("a", age=5), Member("s")], Decision(delete=("s",)), id="the stand-in goes in the end"
        ),
        pytest.param(
            Target(2, surge=0, unavailable=1, keep_names=True),
            [old("a"), old("b")],
            Decision(recreate=("a",)),
            id="recreate",
        ),
        pytest.param(
            Target(2, surge=0, unavailable=1, keep_names=True),
            [Member("a", busy=True, ready=False), old("b")],
            Decision(),
            id="recreate waits",
        ),
        pytest.param(
            Target(1), [old("a"), old("bad", ready=False)], Decision(delete=("bad",)), id="a bad version goes first"
        ),
    ],
)
def test_decisions(target: Target, members: list[Member], expected: Decision) -> None:
    assert decide(target, members) == expected


ACTION = st.sampled_from([None, *ACTIONS])


@st.composite
def situations(draw: st.DrawFn) -> tuple[Target, list[Member]]:
    surge = draw(st.integers(0, 3))
    target = Target(
        size=draw(st.integers(0, 6)),
        surge=surge,
        unavailable=draw(st.integers(0 if surge else 1, 3)),
    )
    flags = st.booleans()
    members = [
        Member(
            f"m{i}",
            current=draw(flags),
            update=draw(ACTION),
            busy=draw(flags),
            leaving=draw(flags),
            ready=draw(flags),
            failed=draw(flags),
        )
        for i in range(draw(st.integers(0, 8)))
    ]
    return target, [Member(**{**vars(m), "ready": m.ready and not (m.busy or m.leaving or m.failed)}) for m in members]


@given(situations())
def test_no_update_goes_below_what_must_be_ready(situation: tuple[Target, list[Member]]) -> None:
    target, members = situation
    decision = decide(target, members)
    ready = {m.name for m in members if m.ready and not m.leaving}
    floor = min(len(ready), target.size - target.unavailable)
    touched = [*decision.delete, *decision.recreate, *decision.restart, *decision.refresh, *decision.repair]
    assert len(ready - {*decision.delete, *decision.recreate, *decision.restart}) >= min(floor, target.size)
    # Nothing is begun on what is already busy or going (but a busy VM may be surplus).
    going = {m.name for m in members if m.leaving}
    assert going.isdisjoint(touched)
    assert len(set(touched)) == len(touched), "one thing at a time"


@given(st.integers(0, 6), st.lists(ACTION, max_size=6), st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_every_update_ends(size: int, before: list[str | None], surge: int, unavailable: int, keep_names: bool) -> None:
    if keep_names:
        surge = 0
    if not surge and not unavailable:
        unavailable = 1
    target = Target(size, surge=surge, unavailable=unavailable, keep_names=keep_names)
    members = {f"o{i}": old(f"o{i}", update=update) for i, update in enumerate(before)}
    for turn in range(100):
        decision = decide(target, list(members.values()))
        if decision == Decision():
            break
        for name in decision.delete:
            del members[name]
        for name in (*decision.recreate, *decision.refresh, *decision.restart):
            members[name] = Member(name)
        for index in range(decision.create):
            members[f"n{turn}.{index}"] = Member(f"n{turn}.{index}")
        assert len(members) <= max(size, len(before)) + surge
    assert len(members) == size
    assert all(member.current or member.update is None for member in members.values())

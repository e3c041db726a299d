"""Which events the watcher tells of its verdicts, and how often."""

import json
import time

import events
import pytest
import verdict
import watch
from differences import Difference
from model import parse
from reconcile import Outcome
from trees import tree

WRONG = (Difference("route-missing", "x"),)
GOOD, REPAIRED, LEFT = Outcome((), ()), Outcome(WRONG, ()), Outcome(WRONG, WRONG)
OTHER = Outcome(WRONG, (Difference("link-down", "y"),))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of events, in order; no file is written."""
    names: list[str] = []
    monkeypatch.setattr(events, "emit", lambda event, *_, **__: names.append(event))
    monkeypatch.setattr(verdict, "store", lambda _: None)
    monkeypatch.setattr(verdict, "load", dict)
    return names


def passes(watcher: watch.Watcher, *outcomes: Outcome, seconds: float = 1.0) -> None:
    for outcome in outcomes:
        now = watcher.last.get("monotonic", 100.0) + seconds
        watcher.publish(verdict.judge(watcher.last, parse(tree()), outcome, now=now), outcome)


def test_what_was_degraded_recovers_also_by_a_repair(told: list[str]) -> None:
    passes(watch.Watcher(), GOOD, LEFT, LEFT, OTHER, REPAIRED, GOOD)
    assert told == ["degraded", "degraded", "repaired", "recovered"]


def test_a_fight_does_not_fill_the_log(told: list[str]) -> None:
    """Somebody undoes our repairs faster than we see them: ten of each event a minute, and the last state is told."""
    watcher = watch.Watcher()
    passes(watcher, *(LEFT, REPAIRED) * 200, seconds=0.05)
    assert {name: told.count(name) for name in told} == {"degraded": 10, "repaired": 10, "recovered": 10}
    told.clear()
    passes(watcher, *[LEFT] * 60)
    assert told == ["degraded"], "late, but told"


def test_a_watcher_that_is_started_again_says_nothing_twice(told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    held = verdict.judge({}, parse(tree()), LEFT, now=time.monotonic())
    monkeypatch.setattr(verdict, "load", lambda: json.loads(json.dumps(held)))
    passes(watch.Watcher(), LEFT, GOOD)
    assert told == ["recovered"]

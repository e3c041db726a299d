"""What the two endpoints say about which verdict: traffic follows it at once, healing is the last resort."""

import json
import subprocess
from pathlib import Path
from typing import Any

import paths
import pytest
import routing
import verdict
from differences import Difference
from model import parse
from reconcile import Outcome
from trees import tree
from wire import GUEST, PYTHON

ROUTER = parse(tree())
GOOD = Outcome((), ())
BAD = Outcome((Difference("route-missing", "x"),), (Difference("route-missing", "x"),), ("ip route: no",))
REPAIRED = Outcome((Difference("rule-missing", "y"),), ())


def names(reasons: list[dict[str, str]]) -> list[str]:
    return [reason["name"] for reason in reasons]


def after(*steps: tuple[float, Outcome | None]) -> dict[str, Any]:
    held: dict[str, Any] = {}
    for now, outcome in steps:
        held = verdict.judge(held, ROUTER, outcome, now=now)
    return held


def test_nothing_is_healthy_before_the_first_verdict() -> None:
    assert names(verdict.traffic({}, 5.0)) == ["starting"]
    assert "never-good" in names(verdict.heal({}, 5.0))


def test_a_bad_template_never_gets_its_heal_check_open() -> None:
    """A rollout stops at its first VM: 9000 is not 200 before the first good verdict, however long that takes."""
    held = after(*[(float(now), BAD) for now in range(100)])
    assert names(verdict.heal(held, 100.0)) == ["route-missing", "repair-failed", "never-good"]
    assert verdict.heal(after((1.0, BAD), (2.0, GOOD)), 2.0) == []


def test_whatever_is_said_an_answer_stays_short() -> None:
    """A table of thousands of ranges that nft refuses is in what nft says."""
    outcome = Outcome(BAD.found, BAD.left, ("x" * 10**6,) * 100, ("y" * 10**6,))
    held = verdict.judge({}, ROUTER, outcome, [("program-failed", "z" * 10**6)])
    assert len(json.dumps(held)) < 40_000


def test_an_id_may_be_any_text() -> None:
    """Surrogates, which JSON can hold: the watcher once died of them."""
    assert verdict.judge({}, ROUTER._replace(instance_id="\ud800"), GOOD)["ok"]


FULL = """
import sys
sys.path.insert(0, sys.argv[1])
import paths, verdict
def store(**more):
    verdict.store({**verdict.judge({}, None, None, [("x", "y" * 300)]), **more})
store()
try:
    with open(paths.RUN + "/log", "wb", 0) as log:
        while True:
            log.write(bytes(4096))
except OSError:
    pass
store(repairs=7)
import os
assert verdict.load()["repairs"] == 7
assert sorted(os.listdir(paths.RUN)) == ["log", "verdict.json"]
try:
    paths.write(paths.METADATA, "{}")
except OSError as error:
    assert error.errno == 28, error
"""


@pytest.mark.root
def test_a_full_run_makes_no_verdict_old(tmp_path: Path) -> None:
    """Kind 6: else whatever fills /run on all VMs of a fleet would close and replace routers that forward."""
    steps = 'mount -t tmpfs -o size=64k tmpfs "$1" && RUNTIME_DIRECTORY="$1" exec "$2" -ISc "$3" "$4"'
    words = [str(tmp_path), PYTHON, FULL, str(GUEST / "lib")]
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-c", steps, "-", *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_stopped_has_the_last_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass of the watcher that was under way when `stop` began tells how it went, and `stop` after it."""
    for name in ("RUN", "VERDICT", "STOPPED", "LOCK"):
        monkeypatch.setattr(paths, name, str(tmp_path / name.lower()) if name != "RUN" else str(tmp_path))

    def remove() -> list[str]:
        verdict.store(after((1.0, GOOD)))
        return []

    monkeypatch.setattr(routing, "remove", remove)
    assert routing.stop() == 0
    assert verdict.load()["state"] == "stopped"


def test_traffic_closes_at_once_and_reopens_by_itself() -> None:
    """Kind 5: U3, S12."""
    assert verdict.traffic(after((1.0, GOOD)), 1.0) == []
    assert names(verdict.traffic(after((1.0, GOOD), (2.0, BAD)), 2.0)) == ["route-missing", "repair-failed"]
    assert verdict.traffic(after((1.0, GOOD), (2.0, BAD), (3.0, REPAIRED)), 3.0) == []


def test_an_old_verdict_closes_traffic_then_asks_for_healing() -> None:
    """The watcher is dead and does not come back."""
    held = after((100.0, GOOD))
    limit = verdict.HEAL_MAX_AGE + held["heal_jitter"]
    assert verdict.traffic(held, 100.0 + verdict.TRAFFIC_MAX_AGE) == []
    assert names(verdict.traffic(held, 100.1 + verdict.TRAFFIC_MAX_AGE)) == ["verdict-old"]
    assert verdict.heal(held, 100.0 + limit) == []
    assert names(verdict.heal(held, 100.1 + limit)) == ["watcher-dead"]


def test_healing_only_after_repair_failed_several_times_for_a_while() -> None:
    """Kind 6, U24: one wiped table, on all VMs of a fleet in the same hour, must not rebuild the fleet."""
    assert verdict.heal(after((1.0, GOOD), (2.0, REPAIRED)), 2.0) == []
    few = after((1.0, GOOD), (2.0, BAD), (100.0, BAD))
    assert verdict.heal(few, 100.0) == []
    quick = after((1.0, GOOD), *[(2.0 + n / 10, BAD) for n in range(10)])
    assert verdict.heal(quick, 3.0) == []
    wait = verdict.HEAL_AFTER + quick["heal_jitter"]
    assert verdict.heal(quick, 2.0 + wait) != []
    again = verdict.judge(quick, ROUTER, GOOD, now=2.0 + wait)
    assert verdict.heal(again, 2.0 + wait) == []
    assert again["failed_repairs"] == 0


def test_jitter_differs_between_vms_and_stays_within_its_limit() -> None:
    jitters = {
        verdict.judge({}, ROUTER._replace(instance_id=str(number)), GOOD, now=1.0)["heal_jitter"]
        for number in range(200)
    }
    assert len(jitters) > 10
    assert max(jitters) <= verdict.HEAL_JITTER


def test_the_metadata_server_alone_never_asks_for_healing() -> None:
    held = after((1.0, GOOD))
    for now in range(2, 200):
        held = verdict.judge(held, None, None, [("metadata-unavailable", "timed out")], now=float(now))
    assert verdict.heal(held, 199.0) == []


def test_drain_closes_traffic_and_not_healing() -> None:
    drained = verdict.judge(after((1.0, GOOD)), ROUTER._replace(drain=True), GOOD, now=2.0)
    assert names(verdict.traffic(drained, 2.0)) == ["drained"]
    assert verdict.heal(drained, 2.0) == []
    assert drained["state"] == "drained"


@pytest.mark.parametrize("stored", ["", "{", "[]", "null"])
def test_a_broken_verdict_file_is_no_verdict(stored: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "verdict.json"
    path.write_text(stored)
    monkeypatch.setattr("paths.VERDICT", str(path))
    assert verdict.load() == {}


def test_stopped_by_hand_is_no_case_for_healing(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paths.VERDICT", str(tmp_path / "verdict.json"))
    verdict.store(after((1.0, GOOD)))
    stopped = verdict.stopped()
    assert names(verdict.traffic(stopped, stopped["monotonic"])) == ["stopped"]
    assert verdict.heal(stopped, stopped["monotonic"] + 10_000) == []


def test_a_broken_program_counts_as_a_failed_repair_and_bad_metadata_does_not() -> None:
    held = after((1.0, GOOD))
    broken, unread = held, held
    for now in range(2, 100):
        broken = verdict.judge(broken, ROUTER, None, [("program-failed", "ip: not found")], now=float(now))
        unread = verdict.judge(unread, None, None, [("metadata-invalid", "ip")], now=float(now))
    assert names(verdict.heal(broken, 99.0)) == ["program-failed"]
    assert verdict.heal(unread, 99.0) == []

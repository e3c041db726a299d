"""The verdict: whether this router forwards as it should, in a file that the health endpoints answer from.

The writer is `policy-routing`; what it says is true for a limited time only, on the monotonic clock, which no change of
the wall clock moves. Reasons have stable names: see `docs/playbook.md`.
"""

from __future__ import annotations

import json
import time
import zlib

import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    # The endpoints read verdicts only: without these at run time each of them is two megabytes smaller.
    from typing import Any, Iterable

    from model import Router
    from reconcile import Outcome

TRAFFIC_MAX_AGE = 20.0
"""Seconds until an unrenewed verdict closes the traffic port: four periods of the watcher."""

HEAL_MAX_AGE = 60.0
"""Seconds, before jitter, until a silent watcher asks for healing: systemd has restarted it several times by then."""

HEAL_FAILURES, HEAL_AFTER = 5, 30.0
"""Repairs that failed in a row, and seconds (before jitter) that they must span, before healing is asked for."""

BROKEN = ("program-failed", "internal-error")
"""Problems that count as a failed repair. Missing or bad metadata does not: a new VM would get the same."""

MAX_TEXT = 500
"""Characters of a reason's detail or of a warning: a probe's answer must fit into one packet or few."""

HEAL_JITTER = 30
"""Seconds over which a fleet that breaks at one moment (by an update of its images' agent, say) spreads its healing."""


def load() -> dict[str, Any]:
    """The last verdict of this boot; empty before the first."""
    try:
        held = json.loads(paths.read(paths.VERDICT) or "{}")
    except (ValueError, OSError):
        return {}
    return held if isinstance(held, dict) else {}


def judge(
    last: dict[str, Any],
    router: Router | None,
    outcome: Outcome | None,
    problems: Iterable[tuple[str, str]] = (),
    now: float | None = None,
) -> dict[str, Any]:
    """The next verdict.

    Args:
        last: The one before, whose counts go on.
        router: What the metadata says, None before any usable answer.
        outcome: Of the last pass over the kernel; None when there was none.
        problems: (name, detail) of what else stands against forwarding.
        now: Monotonic seconds.
    """
    now = time.monotonic() if now is None else now
    problems = list(problems)
    reasons = [{"name": name, "detail": detail} for name, detail in problems]
    warnings: list[str] = []
    if outcome is not None:
        reasons += [{"name": held.reason, "detail": held.detail} for held in (*outcome.left, *outcome.blocked)]
        warnings += outcome.warnings
        if outcome.left:
            reasons += [{"name": "repair-failed", "detail": error} for error in outcome.errors]
    for reason in reasons:
        reason["detail"] = reason["detail"][:MAX_TEXT]
    ok = not reasons and outcome is not None
    repaired = bool(outcome is not None and outcome.found and not outcome.left)
    failed = bool(outcome is not None and outcome.left) or any(name in BROKEN for name, _ in problems)
    return {
        "version": 1,
        "ok": ok,
        "state": "drained" if ok and router is not None and router.drain else "ok" if ok else "degraded",
        "reasons": reasons[:50],
        "warnings": [warning[:MAX_TEXT] for warning in warnings],
        "drops": dict(outcome.drops) if outcome is not None else last.get("drops", {}),
        "drain": bool(router is not None and router.drain),
        "time": round(time.time(), 3),
        "monotonic": now,
        "first_good": last.get("first_good") if last.get("first_good") is not None else (now if ok else None),
        "failing_since": None if ok else last.get("failing_since") or now,
        "repairs": int(last.get("repairs") or 0) + repaired,
        "failed_repairs": 0 if ok else int(last.get("failed_repairs") or 0) + failed,
        "heal_jitter": zlib.crc32(router.instance_id.encode(errors="backslashreplace")) % (HEAL_JITTER + 1)
        if router is not None
        else int(last.get("heal_jitter") or 0),
    }


def store(verdict: dict[str, Any]) -> None:
    """Publishes it."""
    paths.write(paths.VERDICT, json.dumps(verdict, indent=1) + "\n")


def stopped() -> dict[str, Any]:
    """The verdict while routing is stopped by hand: closed for traffic, and no case for healing."""
    last = load()
    verdict = judge(last, None, None, [("stopped", "policy-routing is stopped")])
    return {**verdict, "state": "stopped", "drain": bool(last.get("drain"))}


def traffic(verdict: dict[str, Any], now: float) -> list[dict[str, str]]:
    """Reasons why this router should get no new connections; empty means that it should."""
    if not verdict:
        return [{"name": "starting", "detail": "no verdict yet"}]
    reasons = [*verdict.get("reasons", [])]
    if verdict.get("drain"):
        reasons.append({"name": "drained", "detail": "multinic-drain is set in the metadata"})
    age = now - float(verdict.get("monotonic") or 0)
    if not 0 <= age <= TRAFFIC_MAX_AGE:
        reasons.append({"name": "verdict-old", "detail": f"{age:.0f} s, limit {TRAFFIC_MAX_AGE:.0f} s"})
    if not reasons and not verdict.get("ok"):
        reasons.append({"name": "unknown", "detail": "verdict without reasons"})
    return reasons


def heal(verdict: dict[str, Any], now: float) -> list[dict[str, str]]:
    """Reasons why this VM should be replaced; empty means that it should not."""
    if not verdict or verdict.get("first_good") is None:
        return [*verdict.get("reasons", []), {"name": "never-good", "detail": "no good verdict since boot"}]
    if verdict.get("state") == "stopped":
        return []
    jitter = float(verdict.get("heal_jitter") or 0)
    age = now - float(verdict.get("monotonic") or 0)
    if not 0 <= age <= HEAL_MAX_AGE + jitter:
        return [
            {"name": "watcher-dead", "detail": f"last verdict {age:.0f} s ago, limit {HEAL_MAX_AGE + jitter:.0f} s"}
        ]
    since = verdict.get("failing_since")
    if (
        since is None
        or int(verdict.get("failed_repairs") or 0) < HEAL_FAILURES
        or now - float(since) < HEAL_AFTER + jitter
    ):
        return []
    return [*verdict.get("reasons", [])]

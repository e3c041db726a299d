"""The subcommands of `policy-routing`."""

from __future__ import annotations

import json
import os
import sys
import time

import events
import metadata
import paths
import verdict
from model import InvalidError, Router, parse
from program import KernelError
from reconcile import Lock, Outcome, reconcile, remove

START_WAIT = 20.0
"""Seconds that `start` waits for metadata and late NICs; the watcher goes on after it."""

FRESH = 10.0
"""Seconds during which the answer that the start-up script has fetched saves `start` a request."""


USAGE = """\
usage: policy-routing start | stop | verify | watch

Policy routing of a multinic router, computed from its metadata.

  start   bring it up, or what is missing of it, once
  stop    close the traffic port, then take away rules, routes and filter
  verify  look only, and print what is not as wanted
  watch   keep it up (policy-routing-watch.service does)
"""


def main() -> int:
    """Runs one subcommand; the code is 0 when the router forwards as wanted."""
    # By hand: an argument parser would take a tenth of the time from boot to traffic.
    command = sys.argv[1] if len(sys.argv) == 2 else ""
    if command in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    if command not in ("start", "stop", "verify", "watch"):
        print(USAGE, end="", file=sys.stderr)
        return 2
    if os.geteuid() != 0:
        print("policy-routing: needs root", file=sys.stderr)
        return 2
    try:
        if command == "watch":
            from watch import Watcher  # Its modules cost `start` a tenth of its time.

            return Watcher().run()
        return {"start": start, "stop": stop, "verify": verify}[command]()
    except (KernelError, OSError) as error:
        print(f"policy-routing: {error}", file=sys.stderr)
        return 1


def router_now(max_age: float) -> tuple[Router, str]:
    """The router by the newest metadata that can be used, and what is wrong with newer ones.

    As for the watcher, the last good description stays in force: whoever calls us to repair a router must not close it.
    """
    kept = metadata.saved(max_age)
    if kept is not None:
        return parse(kept[1]), ""
    try:
        etag, tree = metadata.tree()
        router = parse(tree)
    except (metadata.UnavailableError, InvalidError) as error:
        kept = metadata.saved(float("inf"))
        if kept is None:
            raise
        return parse(kept[1]), f"{reason(error)}: {error}"
    metadata.save(etag, tree)
    return router, ""


def reason(error: metadata.UnavailableError | InvalidError) -> str:
    """Its stable name."""
    return "metadata-invalid" if isinstance(error, InvalidError) else "metadata-unavailable"


def start() -> int:
    """Brings everything up, waits for what is late, and leaves the first verdict."""
    began = time.monotonic()
    if os.path.exists(paths.STOPPED):
        os.unlink(paths.STOPPED)
    router: Router | None = None
    max_age = FRESH
    while True:
        outcome: Outcome | None = None
        problems: list[tuple[str, str]] = []
        try:
            router, warning = router_now(max_age)
            with Lock():
                outcome = reconcile(router)
            if warning:
                outcome = outcome._replace(warnings=(*outcome.warnings, warning))
        except (metadata.UnavailableError, InvalidError) as error:
            problems.append((reason(error), str(error)))
        except KernelError as error:
            problems.append(("program-failed", str(error)))
        result = verdict.judge(verdict.load(), router, outcome, problems)
        verdict.store(result)
        if result["ok"]:
            events.emit(
                "routing-up", seconds=round(time.monotonic() - began, 3), changes=len(outcome.found) if outcome else 0
            )
            return 0
        if time.monotonic() - began > START_WAIT:
            events.emit("routing-not-up", "ERROR", reasons=result["reasons"][:20])
            return 1
        time.sleep(0.25)
        max_age = 0.0  # What has not sufficed once is asked for again.


def stop() -> int:
    """Closes the traffic port by the verdict, then takes our rules, routes and filter away."""
    os.makedirs(paths.RUN, exist_ok=True)
    with open(paths.STOPPED, "w", encoding="ascii"):
        pass
    verdict.store(verdict.stopped())
    with Lock():
        errors = remove()
    # Again: the watcher may have been in the middle of a pass, and have told how it went.
    verdict.store(verdict.stopped())
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


def verify() -> int:
    """Looks, changes nothing, and prints what is not as wanted."""
    try:
        router, warning = router_now(max_age=0.0)
    except (metadata.UnavailableError, InvalidError) as error:
        print(json.dumps({"ok": False, "reasons": [{"name": reason(error), "detail": str(error)}]}))
        return 1
    outcome = reconcile(router, change=False)
    reasons = [
        {"name": difference.reason, "detail": difference.detail} for difference in (*outcome.left, *outcome.blocked)
    ]
    warnings = [*outcome.warnings, *filter(None, [warning])]
    result = {"ok": not reasons, "reasons": reasons, "warnings": warnings, "drops": outcome.drops}
    print(json.dumps(result, indent=1))
    return 1 if reasons else 0

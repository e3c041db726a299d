"""Lets one scenario happen, and notes what the connections noticed of it."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Any

from multinic.lab.scenarios import flows, memory
from multinic.lab.scenarios.scenario import Scenario
from multinic.lab.scenarios.stage import Stage

RANDOM_SECONDS = 2.0
"""The event comes at a random moment of this span, so that no probe's phase is favoured."""


@dataclass(frozen=True)
class Observation:
    """What was seen.

    Attributes:
        noticed: By the connections and of memory, as fields of `Figures`.
        ready_s: From the event until the whole fleet served again.
        events: The lab's events of the router that carried the first stream, from the event until then.
    """

    noticed: dict[str, Any]
    ready_s: float
    events: list[dict[str, Any]]


def observe(scenario: Scenario, stage: Stage, within: float = RANDOM_SECONDS) -> Observation:
    """Runs a scenario on a stage; its marks are the stage's afterwards.

    Args:
        scenario: What happens.
        stage: What it happens to.
        within: The event comes at a random moment of so many seconds.

    Raises:
        LabError: The fleet did not become whole, no stream could be opened, or something is not as it should be.
    """
    stage.before()
    stage.wait_until_serving()
    if scenario.prepare:
        scenario.prepare(stage)
    fleet = stage.wait_until_serving()
    assert stage.lab.process is not None
    own, guests = memory.megabytes(stage.lab.process)
    accepts = scenario.through
    through = (lambda router: accepts(stage, router)) if accepts else (lambda router: True)
    with flows.opened(stage.lab, fleet, stage.pairs, through=through, beside=scenario.beside) as live:
        stage.say(f"streams {live.title} run, the first through {live.router.name}")
        time.sleep(flows.WARM_UP_SECONDS + random.uniform(0, within))  # noqa: S311 - not a secret
        stage.begin(live)
        scenario.act(stage)
        ready = stage.wait_until_whole()
        seen = stage.events_of(live.router.key)
        noticed = live.finish(stage.zero, time.monotonic(), stage.changes())
    whole = stage.zero + ready
    sizes = {"lab_mb": round(own, 1), "guest_mb": round(max(guests), 1)}
    return Observation(noticed | sizes, round(ready, 2), [event for event in seen if event["time"] <= whole])

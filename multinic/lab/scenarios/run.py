"""Runs scenarios one after another on one fleet of the dev stack."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from multinic.lab.client import Lab, require_free_port, running
from multinic.lab.errors import LabError
from multinic.lab.guests import doctor, image
from multinic.lab.scenarios import (
    all_unhealthy,
    bad_template,
    drain,
    flows,
    heal,
    memory,
    outcome,
    power_cut,
    rolling_update,
    route_replaced,
    route_withdrawn,
    zone_outage,
)
from multinic.lab.scenarios.fleet import wait_until_serving
from multinic.lab.scenarios.outcome import Outcome
from multinic.lab.scenarios.program import Config, Program, Say, choose
from multinic.lab.scenarios.scenario import Scenario
from multinic.lab.scenarios.stage import Stage

MODULES = (
    drain,
    heal,
    route_replaced,
    route_withdrawn,
    all_unhealthy,
    power_cut,
    zone_outage,
    rolling_update,
    bad_template,
)
SCENARIOS = {module.SCENARIO.name: module.SCENARIO for module in MODULES}
"""All scenarios by name, in the order in which ``all`` runs them."""
RANDOM_SECONDS = 2.0
"""The event comes at a random moment of this span, so that no probe's phase is favoured."""


@dataclass(frozen=True)
class Options:
    """What `multinic lab run` may be told.

    Attributes:
        folder: The lab's folder meanwhile; removed at the end.
        report: Where the results go.
        boot_delay: Seconds added to each boot.
        port: Of the lab's front door.
        engine: ``auto``, ``pulumi`` or ``in-process``.
        router: Laid over ``multinic:router`` of the dev stack.
    """

    folder: Path
    report: Path
    boot_delay: float
    port: int
    engine: str
    router: Config


def pick(names: Sequence[str]) -> list[Scenario]:
    """The scenarios of these names; ``all`` is every one.

    Raises:
        LabError: There is none of a name.
    """
    for name in names:
        if name not in SCENARIOS and name != "all":
            raise LabError(f"there is no scenario {name!r}; there are {', '.join(SCENARIOS)}, and all")
    return list(SCENARIOS.values()) if "all" in names else [SCENARIOS[name] for name in names]


def run(names: Sequence[str], options: Options, say: Say) -> list[Outcome]:
    """Brings a fleet up, runs the scenarios on it, writes the report and takes the fleet down.

    Raises:
        LabError: What a user can mend; a scenario that did not end; or a planned event that cost something. The report
            is written in the last two cases, too.
    """
    chosen = pick(names)
    program = choose(options.engine)
    changing = [scenario.name for scenario in chosen if scenario.changes_program]
    if changing and not program.pulumi:
        raise LabError(f"{', '.join(changing)}: needs the real Pulumi engine (`make pulumi` builds it; --engine auto)")
    config = program.config(options.router)
    program.check(config)
    require_free_port(options.port)
    if missing := doctor.why_no_guests():
        raise LabError(f"scenarios need guests. {missing}")
    image.ensure(say)
    outcomes: list[Outcome] = []
    with running(options.folder, port=options.port, boot_delay=options.boot_delay) as lab:
        try:
            with _fleet(lab, program, config, options.boot_delay, say) as (stage, up_seconds):
                for scenario in chosen:
                    say(f"\n── {scenario.title} ──")
                    outcomes.append(_one(scenario, stage, up_seconds))
        finally:
            if outcomes:
                files = outcome.write(outcomes, options.report)
                for line in ["", *outcome.as_text(outcomes), "", f"Written: {', '.join(map(str, files))}"]:
                    say(line)
    broken = [one.label for one in outcomes if one.kept is False]
    if broken:
        raise LabError(f"planned events that cost something: {', '.join(broken)}; see {options.report}/report.md")
    return outcomes


@contextmanager
def _fleet(lab: Lab, program: Program, config: Config, boot_delay: float, say: Say) -> Iterator[tuple[Stage, float]]:
    """A serving fleet, and how long it took until it served."""
    began = time.monotonic()
    deployment = program.up(lab, config, say)
    try:
        stage = Stage(lab, program, deployment, config, boot_delay, say)
        say("waiting until all routers serve")
        fleet = wait_until_serving(lab, stage.region, timeout=300 + 4 * boot_delay)
        seconds = time.monotonic() - began
        say(f"{len(fleet)} routers serve, {seconds:.1f} s after the program began")
        yield stage, seconds
    finally:
        say("taking the fleet down")
        program.down(deployment, say)


def _one(scenario: Scenario, stage: Stage, up_seconds: float) -> Outcome:
    fleet = wait_until_serving(stage.lab, stage.region, timeout=300 + 4 * stage.boot_delay)
    assert stage.lab.process is not None
    own, guests = memory.megabytes(stage.lab.process)
    accepts = scenario.through
    through = (lambda router: accepts(stage, router)) if accepts else (lambda router: True)
    with flows.opened(stage.lab, fleet, stage.client, stage.server, through=through) as live:
        stage.say(f"streams {live.title} run through {live.router.name}")
        time.sleep(flows.WARM_UP_SECONDS + random.uniform(0, RANDOM_SECONDS))  # noqa: S311 - not a secret
        stage.begin(live)
        scenario.act(stage)
        whole = stage.wait_until_whole()
        noticed = live.finish(stage.zero, time.monotonic())
    costs = (noticed["longest_gap_s"], noticed["failed_connections"], noticed["lost_streams"])
    return Outcome(
        scenario=scenario.name,
        label=scenario.title,
        planned=scenario.planned,
        kept=outcome.promise(*costs) if scenario.planned else None,
        why=scenario.why,
        marks_s=dict(stage.marks),
        engine=stage.program.title,
        boot_delay_s=stage.boot_delay,
        up_s=round(up_seconds, 2),
        ready_s=round(whole, 2),
        lab_mb=round(own, 1),
        guest_mb=round(max(guests), 1),
        **noticed,
    )

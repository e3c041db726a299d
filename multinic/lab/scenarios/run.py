"""Runs scenarios one after another, those that can on one fleet."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from multinic.lab.client import require_free_port, running
from multinic.lab.errors import LabError
from multinic.lab.guests import doctor, image
from multinic.lab.scenarios import (
    all_unhealthy,
    asymmetric,
    bad_template,
    drain,
    heal,
    multi_region,
    outcome,
    panic,
    path_mtu,
    rolling_update,
    route_replaced,
    route_withdrawn,
    scale_in,
    scale_out,
    stopped_vm,
    upgrade,
    zone_outage,
)
from multinic.lab.scenarios.bring_up import Planned, brought_up, dev, regions
from multinic.lab.scenarios.observe import observe
from multinic.lab.scenarios.outcome import Outcome
from multinic.lab.scenarios.program import Config, Program, Say, choose
from multinic.lab.scenarios.scenario import Scenario
from multinic.lab.scenarios.stage import Stage

SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        drain.SCENARIO,
        heal.SCENARIO,
        route_replaced.SCENARIO,
        route_withdrawn.SCENARIO,
        asymmetric.SCENARIO,
        all_unhealthy.SCENARIO,
        panic.SCENARIO,
        stopped_vm.POWER_CUT,
        zone_outage.SCENARIO,
        rolling_update.SCENARIO,
        bad_template.SCENARIO,
        stopped_vm.PREEMPTION,
        scale_out.SCENARIO,
        scale_in.SCENARIO,
        path_mtu.NARROW_SERVER,
        path_mtu.NARROW_CLIENT,
        multi_region.SCENARIO,
        upgrade.SCENARIO,
    )
}
"""All scenarios by name, in the order in which ``all`` runs them."""


@dataclass(frozen=True)
class Options:
    """What `multinic lab run` may be told.

    Attributes:
        folder: The lab's folder meanwhile; removed at the end.
        report: Where the results go.
        boot_delay: Seconds added to each boot.
        port: Of the lab's front door.
        engine: ``auto``, ``pulumi`` or ``in-process``.
        router: Laid over ``multinic:router`` of the stacks.
        egress_scale: Factor on what each machine type may send.
        repeat: How often each scenario runs; the table shows medians.
    """

    folder: Path
    report: Path
    boot_delay: float
    port: int
    engine: str
    router: Config
    egress_scale: float = 1.0
    repeat: int = 1


def listed() -> list[str]:
    """A line for each scenario: its name, what happens, and what it needs."""
    width = max(map(len, SCENARIOS))
    lines = []
    for scenario in SCENARIOS.values():
        needs = " (needs the real Pulumi engine)" if scenario.needs_engine else ""
        lines.append(f"{scenario.name:{width}}  {scenario.title}{needs}")
    return lines


def pick(names: Sequence[str]) -> list[Scenario]:
    """The scenarios of these names; ``all`` is every one.

    Raises:
        LabError: There is none of a name.
    """
    unknown = [name for name in names if name not in SCENARIOS and name != "all"]
    if unknown:
        raise LabError("; ".join(map(_unknown, unknown)) + f". There are {', '.join(SCENARIOS)}, and all")
    return list(SCENARIOS.values()) if "all" in names else [SCENARIOS[name] for name in names]


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name, [*SCENARIOS, "all"], n=1)
    return f"there is no scenario {name!r}" + (f"; did you mean {close[0]}?" if close else "")


def run(names: Sequence[str], options: Options, say: Say) -> list[Outcome]:
    """Brings fleets up, runs the scenarios on them, writes the report and takes the fleets down.

    Raises:
        LabError: What a user can mend; a scenario that did not end; or a planned event that cost something. The report
            is written in the last two cases, too.
    """
    chosen = pick(names)
    program = choose(options.engine)
    needing = [scenario.name for scenario in chosen if scenario.needs_engine]
    if needing and not program.pulumi:
        raise LabError(f"{', '.join(needing)}: needs the real Pulumi engine (`make pulumi` builds it; --engine auto)")
    shared = _shared(chosen, program, options)
    for one in shared:
        for stack in one.stacks:
            # Stacks that read others' outputs can be judged only by the engine, once those are there.
            if "multinic:networks_stack" not in stack.config:
                stack.program.check(stack.config)
    require_free_port(options.port)
    if missing := doctor.why_no_guests():
        raise LabError(f"scenarios need guests. {missing}")
    image.ensure(say)
    outcomes: list[Outcome] = []
    try:
        for one in shared:
            outcomes += _on_one_fleet(one, program, options, say)
    finally:
        if outcomes:
            files = outcome.write(outcomes, options.report)
            for line in ["", *outcome.as_text(outcomes), "", f"Written: {', '.join(map(str, files))}"]:
                say(line)
    broken = [one.label for one in outcomes if one.kept is False]
    if broken:
        raise LabError(f"planned events that cost something: {', '.join(broken)}; see {options.report}/report.md")
    return outcomes


@dataclass(frozen=True)
class _Shared:
    """What is brought up in one lab, and the scenarios that run on it one after another."""

    stacks: list[Planned]
    egress_scale: float
    scenarios: list[Scenario]


def _shared(scenarios: Sequence[Scenario], program: Program, options: Options) -> list[_Shared]:
    found: list[_Shared] = []
    for scenario in scenarios:
        stacks = regions(program, options.router) if scenario.regions else dev(program, options.router, scenario.config)
        scale = options.egress_scale if scenario.egress_scale is None else scenario.egress_scale
        same = next((one for one in found if one.stacks == stacks and one.egress_scale == scale), None)
        if same:
            same.scenarios.append(scenario)
        else:
            found.append(_Shared(stacks, scale, [scenario]))
    return found


def _on_one_fleet(one: _Shared, program: Program, options: Options, say: Say) -> Iterator[Outcome]:
    with (
        running(options.folder, port=options.port, boot_delay=options.boot_delay, egress_scale=one.egress_scale) as lab,
        brought_up(lab, one.stacks, options.boot_delay, say) as (stage, up_seconds),
    ):
        for scenario in [scenario for _ in range(options.repeat) for scenario in one.scenarios]:
            say(f"\n── {scenario.title} ──")
            yield _outcome(scenario, stage, program.title, up_seconds)


def _outcome(scenario: Scenario, stage: Stage, engine: str, up_seconds: float) -> Outcome:
    seen = observe(scenario, stage)
    noticed = seen.noticed
    kept = outcome.promise(noticed["caused_gap_s"], noticed["failed_connections"], noticed["lost_streams"])
    return Outcome(
        scenario=scenario.name,
        label=scenario.title,
        planned=scenario.planned,
        kept=kept if scenario.planned else None,
        why=scenario.why,
        marks_s=dict(stage.marks),
        costs_s=outcome.costs(noticed["gap_span_s"], scenario.steps, stage.marks),
        engine=engine,
        boot_delay_s=stage.boot_delay,
        up_s=round(up_seconds, 2),
        ready_s=seen.ready_s,
        **noticed,
    )

"""The main job: the dev stack's fleet in the lab, a router killed under traffic, and how long connections paused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from multinic.lab.client import Lab, require_free_port, running
from multinic.lab.guests import doctor, image
from multinic.lab.scenarios import bring_up, events, panic, plot, report, settings
from multinic.lab.scenarios.observe import observe
from multinic.lab.scenarios.program import Program, Say, choose
from multinic.lab.scenarios.reduced import explain

RANDOM_SECONDS = 10.0
"""The kill comes at a random moment of this span: reference 1's checks come every three seconds."""
COLUMNS = (("ours", settings.OURS), ("reference", settings.REFERENCE))


@dataclass(frozen=True)
class Options:
    """What `make demo` may be told.

    Attributes:
        folder: The lab's folder while the demo runs; removed at its end.
        report: Where the results go.
        zones: Use the first so many zones; None leaves the stack's configuration as it is.
        repeat: Kills per column.
        boot_delay: Seconds added to each boot.
        port: Of the lab's front door.
        engine: ``auto``, ``pulumi`` or ``in-process``.
    """

    folder: Path
    report: Path
    zones: int | None
    repeat: int
    boot_delay: float
    port: int
    engine: str


def demonstrate(options: Options, say: Say) -> None:
    """Runs the demo; where guests cannot run, the rest of it.

    Raises:
        LabError: What a user can mend, in a sentence; until the checks have passed nothing was started.
    """
    program = choose(options.engine)
    say("checking the program's inputs")
    configs = {kind: program.config(router, options.zones) for kind, router in COLUMNS}
    for config in configs.values():
        program.check(config)
    require_free_port(options.port)
    say(f"The program is run by {program.title}.")
    missing = doctor.why_no_guests()
    if missing:
        explain(program, configs["ours"], options.folder, options.port, missing, say)
        return
    image.ensure(say)
    runs: list[report.Run] = []
    with running(options.folder, port=options.port, boot_delay=options.boot_delay) as lab:
        for kind, config in configs.items():
            for number in range(1, options.repeat + 1):
                say(f"\n── {kind}, run {number} of {options.repeat} ──")
                runs.append(_one_run(lab, options, program, kind, config, say))
    report.write(runs, options.report)
    files = plot.draw(runs, options.report)
    say("")
    for line in report.as_text(runs):
        say(line)
    say(f"\nWritten to {options.report}: report.json, report.md, {', '.join(file.name for file in files)}")


def _one_run(
    lab: Lab, options: Options, program: Program, kind: str, config: Mapping[str, Any], say: Say
) -> report.Run:
    planned = [bring_up.Planned(program.stack, program, config)]
    with bring_up.brought_up(lab, planned, options.boot_delay, say) as (stage, up_seconds):
        seen = observe(panic.SCENARIO, stage, RANDOM_SECONDS)
    healed = events.healed(seen.events)
    assert healed is not None
    return report.Run(
        settings=kind,
        engine=program.title,
        boot_delay_s=options.boot_delay,
        up_s=round(up_seconds, 2),
        detect_s=stage.marks["detected"],
        heal_s=round(healed[0] - stage.zero, 2),
        healed_by=healed[1],
        ready_s=seen.ready_s,
        **seen.noticed,
    )

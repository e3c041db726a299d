"""The main job: the dev stack's own fleet in the lab, a router killed under traffic, and how long connections paused."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from multinic.lab.client import Lab, running
from multinic.lab.pulumi import drivers
from multinic.lab.scenarios import panic, plot, report, settings
from multinic.lab.scenarios.fleet import guest, wait_until_serving
from multinic.lab.scenarios.reduced import explain

Say = Callable[[str], None]
REGION = "us-central1"


@dataclass(frozen=True)
class Options:
    """What `make demo` may be told.

    Attributes:
        folder: The lab's folder while the demo runs; removed at its end.
        report: Where the results go.
        zones: Use the first so many zones; None leaves the stack's config as it is.
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
        LabError: What a user can mend, in a sentence.
    """
    driver = drivers.choose(options.engine)
    driver.check(_config(options, settings.OURS))
    missing = _what_guests_lack()
    if missing:
        explain(options, driver, _config(options, settings.OURS), missing, say)
        return
    say(f"The program is run by {driver.title}.")
    from multinic.lab.guests.image import ensure_image

    ensure_image(say)
    runs: list[report.Run] = []
    with running(options.folder, port=options.port, boot_delay=options.boot_delay) as lab:
        for kind, chosen in (("ours", settings.OURS), ("reference", settings.REFERENCE)):
            for number in range(options.repeat):
                say(f"\n── {kind}, run {number + 1} of {options.repeat} " + "─" * 40)
                runs.append(_one_run(lab, options, driver, kind, chosen, say))
    report.write(runs, options.report)
    files = plot.draw(runs, options.report)
    say("")
    for line in report.as_text(runs):
        say(line)
    say(f"\nWritten: {options.report}/report.json, report.md, {', '.join(file.name for file in files)}")


def _one_run(
    lab: Lab, options: Options, driver: drivers.Driver, kind: str, chosen: Mapping[str, Any], say: Say
) -> report.Run:
    began = time.monotonic()
    deployment = driver.up(lab, _config(options, chosen), say)
    try:
        fleet = wait_until_serving(lab, REGION, timeout=300 + 4 * options.boot_delay)
        up_seconds = time.monotonic() - began
        say(f"{len(fleet)} routers serve {up_seconds:.1f} s after the program began")
        return panic.run(
            lab,
            REGION,
            guest(deployment.outputs, "clients"),
            guest(deployment.outputs, "servers"),
            settings=kind,
            engine=driver.title,
            boot_delay=options.boot_delay,
            up_seconds=up_seconds,
            say=say,
        )
    finally:
        deployment.destroy(say)


def _config(options: Options, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The stack's config: Pulumi.dev.yaml, then the column's settings, then what the command line says."""
    return dict(chosen)


def _what_guests_lack() -> str | None:
    from multinic.lab.guests.doctor import why_no_guests

    return why_no_guests()

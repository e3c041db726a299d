"""`multinic bench`: bandwidth, pauses, scaling and overlay networks, measured."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from multinic.cli.progress import Progress

if TYPE_CHECKING:
    from multinic.measure.report import Report

app = typer.Typer(no_args_is_help=True, help="Bandwidth, pauses, scaling and overlay networks, measured.")

ReportFolder = Annotated[Path, typer.Option(help="Where the JSON, the Markdown block and the plot go.")]
Port = Annotated[int, typer.Option(min=1, max=65535, help="Port of the lab's front door on 127.0.0.1.")]
Repeat = Annotated[int, typer.Option(min=1, help="Runs of each kind; tables show medians.")]
Seconds = Annotated[float, typer.Option(min=1, help="Length of one run of iperf3, warm-up not counted.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON in place of tables.")]


def _interruptible() -> None:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)


def _command() -> str:
    return shlex.join(["multinic", *sys.argv[1:]])


def _show(report: Report, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"title": report.title, "command": report.command, **report.data}, indent=2, default=str))
        return
    for line in [*report.text(), "", f"Written: {', '.join(map(str, report.files))}"]:
        print(line)


@app.command()
def overlay(
    set_up: Annotated[list[str] | None, typer.Option(help="plain or google-cloud; both where left out.")] = None,
    repeat: Repeat = 3,
    seconds: Seconds = 3,
    streams: Annotated[int, typer.Option(min=2, help="Streams of the aggregate, beside one.")] = 4,
    report: ReportFolder = Path("out/bench"),
    port: Port = 8472,
    as_json: AsJson = False,
) -> None:
    """Docker Swarm's overlay network: its speed, the MTU mismatch, the cure, its speed again (root)."""
    from multinic.cli.lab import STATE
    from multinic.measure.overlay import Options, run

    _interruptible()
    options = Options(
        STATE / f"overlay-{port}", port, report, tuple(set_up or ()), repeat, seconds, streams, _command()
    )
    with Progress(sys.stderr if as_json else sys.stdout) as say:
        made = run(options, say)
    _show(made, as_json)

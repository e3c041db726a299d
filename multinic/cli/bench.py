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

    # SIGINT too: a shell's background jobs have it ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
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
    scale: Annotated[float, typer.Option(min=0.02, max=1, help="Factor on the hosts' limits, for a busy machine.")] = 1,
    report: ReportFolder = Path("out/bench"),
    port: Port = 8472,
    as_json: AsJson = False,
) -> None:
    """Docker Swarm's overlay network: its speed, the MTU mismatch, the cure, its speed again (root)."""
    from multinic.cli.lab import STATE
    from multinic.measure.overlay import Options, run

    _interruptible()
    folder = STATE / f"overlay-{port}"
    chosen = tuple(set_up or ())
    options = Options(folder, port, report, chosen, repeat, seconds, streams, scale, _command())
    with Progress(sys.stderr if as_json else sys.stdout) as say:
        made = run(options, say)
    _show(made, as_json)


@app.command()
def routers(
    test: Annotated[list[str] | None, typer.Option(help="three, sixteen, eight or single; all where left out.")] = None,
    scale: Annotated[float, typer.Option(min=0.0005, max=1, help="Factor on what a VM of the lab may send.")] = 1 / 128,
    client: Annotated[
        list[str] | None, typer.Option(help="In the cloud: a sender, as a place (ssh:HOST, gcloud:ZONE/VM); repeat it.")
    ] = None,
    server: Annotated[list[str] | None, typer.Option(help="Its receiver as PLACE=ADDRESS; one a --client.")] = None,
    machine: Annotated[str, typer.Option(help="In the cloud: machine type of the routers.")] = "n2-highcpu-4",
    count: Annotated[int, typer.Option(min=1, help="In the cloud: number of routers.")] = 1,
    mtu: Annotated[int, typer.Option(min=1300, max=8896, help="In the cloud: MTU of the path.")] = 1460,
    project: Annotated[str, typer.Option(help="Google Cloud project, for gcloud:ZONE/VM.")] = "",
    streams: Annotated[int, typer.Option(min=2, help="How many streams are many.")] = 32,
    repeat: Repeat = 3,
    seconds: Seconds = 15,
    report: ReportFolder = Path("out/bench"),
    port: Port = 8473,
    as_json: AsJson = False,
) -> None:
    """Reference 1's four bandwidth tests: in the lab with caps scaled down (root), or over VMs that there are."""
    from multinic.cli.lab import STATE
    from multinic.measure import routers as bench
    from multinic.measure import shell
    from multinic.measure.errors import WordError

    _interruptible()
    with Progress(sys.stderr if as_json else sys.stdout) as say:
        if client or server:
            if len(client or []) != len(server or []):
                raise WordError("give a --server PLACE=ADDRESS for each --client")
            pairs = []
            for one, other in zip(client or [], server or [], strict=True):
                place, equals, address = other.rpartition("=")
                if not equals:
                    raise WordError(f"--server {other}: give PLACE=ADDRESS, the address that clients send to")
                ends = [shell.parse(text, project=project) for text in (one, place)]
                pairs.append(bench.Pair(ends[0], ends[1], address))
            made = bench.run_between(
                pairs,
                machine=machine,
                routers=count,
                mtu=mtu,
                streams=streams,
                repeat=repeat,
                seconds=seconds,
                report=report,
                command=_command(),
                say=say,
            )
        else:
            folder = STATE / f"routers-{port}"
            chosen = tuple(test or ())
            options = bench.Options(folder, port, report, chosen, scale, repeat, seconds, streams, _command())
            made = bench.run(options, say)
    _show(made, as_json)


@app.command()
def autoscale(
    clients: Annotated[int, typer.Option(min=1, max=20, help="Clients, each with a server of its own.")] = 6,
    most: Annotated[int, typer.Option(min=2, max=20, help="Most routers.")] = 6,
    scale: Annotated[float, typer.Option(min=0.0005, max=1, help="Factor on what a VM of the lab may send.")] = 1 / 128,
    speed: Annotated[float, typer.Option(min=1, max=100, help="Lab seconds in a real second, for controllers.")] = 4,
    report: ReportFolder = Path("out/bench"),
    port: Port = 8474,
    as_json: AsJson = False,
) -> None:
    """Reference 1's autoscaling test: 1 to 6 routers under 6 clients, then in again (root)."""
    from multinic.cli.lab import STATE
    from multinic.measure.autoscale import Options, run

    _interruptible()
    folder = STATE / f"autoscale-{port}"
    options = Options(folder, port, report, clients, most, scale, speed, command=_command())
    with Progress(sys.stderr if as_json else sys.stdout) as say:
        made = run(options, say)
    _show(made, as_json)


@app.command()
def pause(
    event: Annotated[
        list[str] | None,
        typer.Option(help="A scenario of `multinic lab run`; repeat it. Default: drain, heal, panic, power-cut."),
    ] = None,
    settings: Annotated[list[str] | None, typer.Option(help="ours or reference; both where left out.")] = None,
    repeat: Repeat = 3,
    boot_delay: Annotated[float, typer.Option(min=0, help="Seconds added to each boot of a guest.")] = 0.0,
    engine: Annotated[str, typer.Option(help="auto, pulumi (the real engine) or in-process.")] = "auto",
    report: ReportFolder = Path("out/bench"),
    port: Port = 8475,
    as_json: AsJson = False,
) -> None:
    """What connections notice of each event, with our settings and with reference 1's (root)."""
    from multinic.cli.lab import STATE
    from multinic.measure.pause import EVENTS, SETTINGS, Options, run

    _interruptible()
    options = Options(
        folder=STATE / f"pause-{port}",
        port=port,
        report=report,
        events=tuple(event or EVENTS),
        settings=tuple(settings or SETTINGS),
        repeat=repeat,
        boot_delay=boot_delay,
        engine=engine,
        command=_command(),
    )
    with Progress(sys.stderr if as_json else sys.stdout) as say:
        made = run(options, say)
    _show(made, as_json)

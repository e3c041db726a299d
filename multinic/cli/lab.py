"""`multinic lab`: Google Cloud for routers on this machine."""

from __future__ import annotations

import shlex
import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from multinic.cli.progress import Progress
from multinic.lab.client import DEFAULT_PORT, Lab, running
from multinic.lab.remains import state_home

app = typer.Typer(no_args_is_help=True, help="Google Cloud for routers on this machine.")

STATE = state_home() / "lab"
Folder = Annotated[Path, typer.Option(help="The lab's folder: objects, disks of guests, token, control socket.")]
Port = Annotated[int, typer.Option(min=1, max=65535, help="Port of the front door on 127.0.0.1.")]
BootDelay = Annotated[float, typer.Option(min=0, help="Seconds added to each boot; guests boot faster here than VMs.")]
Speed = Annotated[
    float,
    typer.Option(min=0.1, max=100, help="Lab seconds in a real second, for controllers; guests keep real time."),
]
EgressScale = Annotated[
    float,
    typer.Option(min=0.0001, max=100, help="Factor on what a machine type may send: 0.05 makes 500 Mbit/s of 10."),
]


class NicNames(StrEnum):
    """How NICs are called inside of guests."""

    ENS = "ens"
    ETH = "eth"


def _say(line: str) -> None:
    print(line, flush=True)


def _raise_interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


@app.command()
def demo(
    report: Annotated[Path, typer.Option(help="Where report.json, report.md and the plot go.")] = Path("out/demo"),
    zones: Annotated[int | None, typer.Option(help="Use the first N zones of Pulumi.dev.yaml.")] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Kills per column; the table shows medians.")] = 1,
    boot_delay: BootDelay = 20.0,
    port: Port = DEFAULT_PORT,
    engine: Annotated[str, typer.Option(help="auto, pulumi (the real engine) or in-process.")] = "auto",
) -> None:
    """Bring the dev stack's fleet up, kill a router under traffic, and show how long connections paused."""
    from multinic.lab.scenarios.demo import Options, demonstrate

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _raise_interrupt)
    options = Options(
        folder=STATE / f"demo-{port}",
        report=report,
        zones=zones,
        repeat=repeat,
        boot_delay=boot_delay,
        port=port,
        engine=engine,
    )
    with Progress() as say:
        demonstrate(options, say)


@app.command()
def run(
    names: Annotated[
        list[str] | None, typer.Argument(help="Scenarios, one after another; all runs every one, none lists them.")
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="List the scenarios, a line each.")] = False,
    report: Annotated[Path, typer.Option(help="Where report.json, report.md and the plot go.")] = Path("out/run"),
    repeat: Annotated[int, typer.Option(min=1, help="Runs of each; the table shows medians.")] = 1,
    boot_delay: BootDelay = 0.0,
    port: Port = DEFAULT_PORT,
    engine: Annotated[str, typer.Option(help="auto, pulumi (the real engine) or in-process.")] = "auto",
) -> None:
    """Let things happen to fleets under traffic, and show what connections noticed."""
    from multinic.lab.scenarios.run import Options, listed
    from multinic.lab.scenarios.run import run as run_scenarios

    if list_them or not names:
        for line in listed():
            _say(line)
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _raise_interrupt)
    options = Options(
        folder=STATE / f"run-{port}",
        report=report,
        boot_delay=boot_delay,
        port=port,
        engine=engine,
        router={},
        repeat=repeat,
    )
    with Progress() as say:
        run_scenarios(names, options, say)


@app.command()
def up(
    folder: Folder = STATE / "default",
    port: Port = DEFAULT_PORT,
    boot_delay: BootDelay = 0.0,
    speed: Speed = 1.0,
    egress_scale: EgressScale = 1.0,
    nic_names: Annotated[
        NicNames, typer.Option(help="ens4 and ens5 as on Debian's images, or eth0 and eth1 as on Rocky's.")
    ] = NicNames.ENS,
    guests: Annotated[bool, typer.Option(help="Without guests no root is needed and nothing runs.")] = True,
) -> None:
    """Run a lab until Ctrl-C; its objects stay in the folder."""
    with running(
        folder,
        port=port,
        boot_delay=boot_delay,
        speed=speed,
        egress_scale=egress_scale,
        nic_names=nic_names,
        guests=guests,
        ephemeral=False,
    ) as lab:
        where = "" if folder == STATE / "default" else f" --folder {shlex.quote(str(folder.absolute()))}"
        _say(f'The lab answers at {lab.endpoint}. In another shell: eval "$(multinic lab env{where})"; Ctrl-C ends it.')
        lab.watch()


@app.command()
def env(folder: Folder = STATE / "default") -> None:
    """Print what a shell needs for plain `pulumi` on the lab: eval "$(multinic lab env)"."""
    from multinic.lab.pulumi.environment import environment

    lab = Lab.of(folder)
    for name, value in environment(lab.endpoint, lab.token, lab.folder).items():
        _say(f"export {name}={shlex.quote(value)}")


@app.command(name="exec")
def execute(
    machine: Annotated[str, typer.Argument(help="VM name.")],
    command: Annotated[list[str], typer.Argument(help="Program and arguments, after --.")],
    folder: Folder = STATE / "default",
) -> None:
    """Run a program in a guest: multinic lab exec VM -- ip rule."""
    from multinic.lab.guests.exec import exec_in_guest

    sys.exit(exec_in_guest(folder, machine, command))


@app.command()
def doctor() -> None:
    """Say what of the lab works on this machine, and how to cure what does not."""
    from multinic.lab.guests import doctor as guests_doctor

    checks = guests_doctor.checks()
    for check in checks:
        _say(f"{'ok' if check.problem is None else 'missing' if check.needed else 'without':8}{check.what}")
        if check.problem:
            _say(f"{'':8}{check.problem}")
    if any(check.problem and check.needed for check in checks):
        _say("Without guests the lab runs all the same: multinic lab up --no-guests")
        raise typer.Exit(1)
    _say("Guests run here.")


@app.command()
def clean(folder: Annotated[Path, typer.Option(help="Folder that holds the labs' folders.")] = STATE) -> None:
    """Clear whatever killed labs left: processes, namespaces, mounts, control groups, files."""
    from multinic.lab.remains import clean as clean_remains

    for line in clean_remains(folder):
        _say(line)

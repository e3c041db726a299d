"""The `multinic` command: thin, over operate, measure and the lab."""

from __future__ import annotations

import sys

import typer

from multinic.cli import bench, lab, mtu, plan

app = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Linux VMs as a dependable IP router between VPC networks on Google Cloud.",
)
app.add_typer(lab.app, name="lab")
app.add_typer(bench.app, name="bench")
app.add_typer(mtu.app, name="mtu")
app.command()(plan.plan)


@app.callback()
def _root() -> None:
    """Keeps `multinic lab` a group of commands."""


def main() -> None:
    """Runs the command line; what a user can mend is told in one sentence, without a traceback."""
    from multinic.lab.errors import LabError

    try:
        app()
    except LabError as error:
        sys.exit(f"multinic: {error}")
    except KeyboardInterrupt:
        sys.exit(130)

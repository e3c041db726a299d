"""All commands in one tree."""

from __future__ import annotations

import typer

from multinic.cli import bench, change, lab, look, mtu, plan, routes, status

app = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    # Its help would load a renderer that takes as long as all else.
    rich_markup_mode=None,
    help="Linux VMs as a dependable IP router between VPC networks on Google Cloud.",
    epilog="Exit codes: 0 done or nothing to do, 1 could not, 2 wrong words, 3 refused for the traffic's sake, "
    "4 begun and not finished, 5 looked and something is wrong, 130 interrupted.",
)
for part in (status, change, routes, look):
    part.register(app)
app.add_typer(lab.app, name="lab")
app.add_typer(bench.app, name="bench")
app.add_typer(mtu.app, name="mtu")
app.command()(plan.plan)


@app.callback()
def _root() -> None:
    """Keeps `multinic lab` a group of commands."""

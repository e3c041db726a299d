"""`multinic status`: the fleet as its load balancers and groups see it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from multinic.cli.options import AsJson, Place, placed
from multinic.cli.output import Output, show, table

if TYPE_CHECKING:
    from multinic.operate.fleet import Fleet
    from multinic.operate.reading import Reader


@placed
def status(
    place: Place,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again and again, until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option(min=0.5, help="Seconds between two looks.")] = 2.0,
    json: AsJson = False,
) -> None:
    """Show the fleet: zones, versions, health in each network, what the groups do, routes, drained VMs."""
    from multinic.operate import routes

    output = Output(json)
    with place.opened() as (api, reader):
        if watch:
            _watch(reader, every, output)
        fleet = reader.read()
        if json:
            output.result({"fleet": fleet, "routes": routes.rows(fleet), "requests": api.requests})
        else:
            show(*view(fleet))


def _watch(reader: Reader, every: float, output: Output) -> None:
    """Shows the fleet again and again; a moment without an answer is shown as well, and no end."""
    from multinic.operate import routes

    # The first look tells wrong words, and what is not permitted.
    reader.read()
    if output.json:
        import json

        from multinic.cli.output import plain

        for fleet in _looks(reader, every):
            found = {"error": fleet} if isinstance(fleet, str) else {"fleet": fleet, "routes": routes.rows(fleet)}
            print(json.dumps(plain(found)), flush=True)
        return
    from rich.console import Group
    from rich.live import Live

    with Live(refresh_per_second=4) as live:
        for fleet in _looks(reader, every):
            shown = [fleet] if isinstance(fleet, str) else view(fleet)
            live.update(Group(*shown, f"{time.strftime('%H:%M:%S')}, every {every:g} s; Ctrl-C ends"))


def _looks(reader: Reader, every: float) -> Iterator[Fleet | str]:
    """The fleet as it is, or why it cannot be read now, for ever."""
    from multinic.operate.errors import OperateError

    while True:
        try:
            yield reader.read()
        except OperateError as error:
            yield str(error)
        time.sleep(every)


def view(fleet: Fleet) -> list[Any]:
    """Tables of zones, routers and routes."""
    from multinic.operate import routes

    serving = [f"{network} {len(fleet.healthy(network))} of {len(fleet.routers)}" for network in fleet.networks]
    head = f"{fleet.name} in {fleet.region} ({fleet.project}); healthy: {', '.join(serving)}"
    zones = [
        (
            group.zone,
            str(sum(router.group == group.name for router in fleet.routers)),
            str(group.size),
            f"{group.autoscaler.least} to {group.autoscaler.most}, {group.autoscaler.mode}"
            if group.autoscaler
            else "none",
            group.template,
            _doing(group.actions, reached=group.reached),
        )
        for group in fleet.groups
    ]
    vms = [
        (
            router.name + (" (drained)" if router.drained else ""),
            router.zone,
            router.status or "not there",
            router.action.lower(),
            router.template,
            router.heal or "-",
            *(router.health.get(network, "-") for network in fleet.networks),
        )
        for router in fleet.routers
    ]
    found = [
        (
            row.route.name,
            row.route.network,
            row.route.destination,
            str(row.route.priority),
            row.state,
            "; ".join(row.warnings),
        )
        for row in routes.rows(fleet)
    ]
    return [
        head,
        table("Zones", ("zone", "VMs", "wanted", "autoscaler", "version", "doing"), zones),
        table("Routers", ("VM", "zone", "status", "action", "version", "heal check", *fleet.networks), vms),
        table("Routes", ("route", "network", "destination", "priority", "state", "warnings"), found),
        *([f"other fleets of this region: {', '.join(fleet.others)}"] if fleet.others else []),
    ]


def _doing(actions: Any, *, reached: bool) -> str:
    told = ", ".join(f"{count} {action}" for action, count in actions.items())
    return told or ("nothing" if reached else "not all VMs have this version")


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(short_help="Show zones, VMs, health and routes.")(status)

"""Commands that find out what is wrong: logs, trace, doctor."""

from __future__ import annotations

import json as json_format
from typing import TYPE_CHECKING, Annotated

import typer

from multinic.cli.names import complete_target
from multinic.cli.options import AsJson, Place, placed
from multinic.cli.output import Output, plain, show, table

if TYPE_CHECKING:
    from multinic.operate.flow import Flow
    from multinic.operate.logs import Entry


@placed
def logs(
    place: Place,
    machine: Annotated[
        str, typer.Argument(metavar="[VM]", help="One VM; default: all of the fleet.", autocompletion=complete_target)
    ] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as entries come, until Ctrl-C.")] = False,
    since: Annotated[str, typer.Option(help="How far back: 90s, 15m, 2h, 1d.")] = "1h",
    limit: Annotated[int, typer.Option(min=1, max=10000, help="At most so many of the newest.")] = 100,
    severity: Annotated[
        str, typer.Option(help="Least severity: DEBUG, INFO, NOTICE, WARNING, ERROR, CRITICAL.")
    ] = "DEBUG",
    event: Annotated[str, typer.Option(help="Only this event, such as repaired or drained.")] = "",
    json: AsJson = False,
) -> None:
    """Show the routers' entries in Cloud Logging; with --json, one object a line."""
    from datetime import UTC, datetime

    from multinic.operate import logs, words
    from multinic.operate.errors import WordError

    if severity.upper() not in logs.SEVERITIES:
        raise WordError(f"--severity {severity}: must be one of {', '.join(logs.SEVERITIES)}")
    begin = datetime.now(UTC) - logs.span(since)
    with place.opened() as (api, reader):
        fleet = reader.read()
        name = words.router(fleet, machine, api).name if machine else ""
        query = logs.Query(fleet.project, fleet.name, name, severity.upper(), event)
        for entry in logs.read(api.door, query, begin, limit):
            _print(entry, as_json=json)
        if follow:
            for entry in logs.follow(api.door, query, datetime.now(UTC)):
                _print(entry, as_json=json)


def _print(entry: Entry, *, as_json: bool) -> None:
    if as_json:
        print(json_format.dumps(plain(entry)), flush=True)
    else:
        print(
            f"{entry.time}  {entry.severity:8}  {entry.machine:24}  {entry.event:16}  {entry.text}".rstrip(), flush=True
        )


@placed
def trace(
    place: Place,
    client: Annotated[
        str, typer.Argument(help="VM or address that begins the connection.", autocompletion=complete_target)
    ],
    server: Annotated[str, typer.Argument(help="VM or address that takes it.", autocompletion=complete_target)],
    protocol: Annotated[str, typer.Option(help="tcp, udp, icmp, …")] = "tcp",
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Server's port.")] = None,
    json: AsJson = False,
) -> None:
    """Show which route, rule, routers and NICs a flow takes, there and back, and why not if not."""
    from multinic.operate import topology
    from multinic.operate import trace as tracing
    from multinic.operate.errors import FoundError
    from multinic.operate.firewall import Service

    service = Service.parse(protocol, port)
    with place.opened() as (api, reader):
        fleet = reader.read()
        around, ends = topology.read(api, fleet, (client, server))
        flow = tracing.trace(fleet, around, ends[0], ends[1], service)
    Output(json).result({"arrives": flow.arrives, "flow": flow})
    if not json:
        _show(flow)
    if not flow.arrives:
        raise FoundError(f"{client} does not reach {server} by {fleet.name}")


def _show(flow: Flow) -> None:
    for way in (flow.forth, flow.back):
        show(table(way.title, ("decides", "result"), [(step.what, step.result) for step in way.steps]))
    if flow.mtu:
        show(f"MTU of the way: {flow.mtu} bytes")
    for problem in (*flow.forth.problems, *flow.back.problems, *flow.notes):
        show(f"{'NO ' if problem.fatal else 'but'} {problem.what} — {problem.cure}")
    show("it arrives, as far as routes, firewall rules and health tell" if flow.arrives else "it does not arrive")


@placed
def doctor(place: Place, json: AsJson = False) -> None:
    """Look at APIs, permissions, quotas, firewall, MTU, image, groups and routes: what is missing, with the cure."""
    from multinic.operate import doctor, project
    from multinic.operate.errors import FoundError, OperateError

    with place.opened() as (api, reader):
        found = project.project(api)
        try:
            fleet = reader.read()
        except OperateError as error:
            found.append(
                project.Finding("fleet", project.BAD, str(error), "`pulumi up`, or name it: --region, --fleet")
            )
        else:
            found.extend(doctor.fleet(api, fleet))
    Output(json).result(found)
    if not json:
        rows = [(one.state, one.what, one.detail, one.cure) for one in found]
        show(table(f"Doctor: {api.project}", ("state", "what", "seen", "cure"), rows))
    missing = [one for one in found if one.state == project.BAD]
    if missing:
        raise FoundError(f"{len(missing)} things are missing, such as {missing[0].what}")


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command(short_help="Show the routers' log entries.")(logs)
    app.command(short_help="Show a flow's way, or why it has none.")(trace)
    app.command(short_help="Find what is missing, with the cure.")(doctor)

"""Commands about routes and generations: routes, withdraw, restore, upgrade, templates."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from multinic.cli.options import AsJson, DryRun, Force, Place, Yes, placed
from multinic.cli.output import Output, show, table

Networks = Annotated[
    list[str] | None, typer.Argument(metavar="[NETWORK]...", help="Networks, by name or its beginning.")
]
All = Annotated[bool, typer.Option("--all", help="All networks of the fleet.")]


@placed
def routes(
    place: Place,
    warnings: Annotated[
        bool, typer.Option("--warnings", help="Only routes with warnings; exit code 5 if any.")
    ] = False,
    delete_warnings: Annotated[
        bool, typer.Option("--delete-warnings", help="Delete routes whose load balancer is gone; asks first.")
    ] = False,
    cleanup: Annotated[
        bool, typer.Option("--cleanup", help="Delete what withdraw and upgrade left; asks first.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Show all routes of the fleet, with what is wrong with them; delete dead ones and leftovers."""
    from multinic.operate import routes
    from multinic.operate.errors import FoundError

    output = Output(json)
    with place.opened() as (api, reader):
        fleet = reader.read()
        if delete_warnings or cleanup:
            plan = routes.plan_delete_warnings(fleet) if delete_warnings else routes.plan_cleanup(fleet)
            ask = f"Delete {len(plan.items)} routes?"
            work = partial(routes.apply_delete, api, plan.items, output.say)
            output.carry_out(plan, work, dry_run=dry_run, ask=ask, yes=yes)
            return
        rows = [row for row in routes.rows(fleet) if row.warnings or not warnings]
        output.result(rows)
        if not json:
            found = [
                (
                    row.route.name,
                    row.route.network,
                    row.route.destination,
                    str(row.route.priority),
                    ", ".join(row.route.tags),
                    row.route.next_hop.rpartition("/")[2],
                    row.state,
                    "; ".join(row.warnings),
                )
                for row in rows
            ]
            heads = ("route", "network", "destination", "priority", "tags", "next hop", "state", "warnings")
            show(table(f"Routes of {fleet.name}", heads, found))
        if warnings and rows:
            raise FoundError(f"{len(rows)} routes have warnings")


@placed
def withdraw(
    place: Place,
    networks: Networks = None,
    everything: All = False,
    dry_run: DryRun = False,
    force: Force = False,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Take a network's routes to the fleet away: the only switch that turns its traffic off. `restore` undoes it."""
    from multinic.operate import withdraw, words

    output = Output(json)
    with place.opened() as (api, reader):
        fleet = reader.read()
        hops = words.hops(fleet, _chosen(networks, fleet.networks, everything=everything))
        plan = withdraw.plan(fleet, hops)
        work = partial(withdraw.apply, api, fleet, plan.items, output.say)
        ask = f"Withdraw {len(plan.items)} routes?"
        output.carry_out(plan, work, dry_run=dry_run, force=force, ask=ask, yes=yes)


@placed
def restore(
    place: Place,
    networks: Networks = None,
    everything: All = False,
    dry_run: DryRun = False,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Put withdrawn routes back."""
    from multinic.operate import withdraw, words

    output = Output(json)
    with place.opened() as (api, reader):
        fleet = reader.read()
        hops = words.hops(fleet, _chosen(networks, fleet.networks, everything=everything))
        plan = withdraw.plan_restore(fleet, hops)
        work = partial(withdraw.apply_restore, api, fleet, plan.items, output.say)
        output.carry_out(plan, work, dry_run=dry_run, force=force)


def _chosen(networks: list[str] | None, known: tuple[str, ...], *, everything: bool) -> list[str]:
    from multinic.operate.errors import WordError

    if everything == bool(networks):
        raise WordError(f"name networks ({', '.join(known)}), or give --all")
    return networks or list(known)


@placed
def upgrade(
    place: Place,
    old: Annotated[str, typer.Option(help="Fleet that carries the traffic now; default: found out.")] = "",
    new: Annotated[str, typer.Option(help="Fleet that is to carry it; default: the other one.")] = "",
    back: Annotated[bool, typer.Option("--back", help="Move the traffic back to the old fleet.")] = False,
    watch: Annotated[
        float, typer.Option(min=0, help="Seconds to watch the new fleet before the old is withdrawn.")
    ] = 60.0,
    dry_run: DryRun = False,
    force: Force = False,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Move traffic to a second generation beside the first: check, cut over, watch, withdraw the old routes.

    Can be given again after whatever stopped it; what has been done is read from the routes.
    """
    from multinic.operate import upgrade
    from multinic.operate.errors import RefusedError

    output = Output(json)
    with place.opened() as (api, reader):
        pair = upgrade.read(reader, old, new)
        output.say(f"old: {pair.old.name}, new: {pair.new.name}")
        if back:
            plan = upgrade.plan_back(pair)
            work = partial(upgrade.apply_back, api, pair, plan.items, output.say)
            ask = f"Move traffic back to {pair.old.name}?"
            output.carry_out(plan, work, dry_run=dry_run, force=force, ask=ask, yes=yes)
            return
        checks = upgrade.checks(pair)
        for check in checks:
            output.say(f"{'ok' if check.good else 'NO'}  {check.what}" + ("" if check.good else f" — {check.cure}"))
        if not all(check.good for check in checks) and not force and not dry_run:
            raise RefusedError(f"{pair.new.name} is not ready; --force goes on nevertheless")
        first = upgrade.plan_cut_over(pair)
        going = output.go(first, dry_run=dry_run, force=force, ask=f"Move the traffic to {pair.new.name}?", yes=yes)
        if dry_run or (first.items and not going):
            output.result({"checks": checks, "cut_over": first, "done": False})
            return
        if going:
            upgrade.apply_cut_over(api, pair, first.items, output.say)
            pair = upgrade.read(reader, pair.old.name, pair.new.name)
        upgrade.watch(reader, pair, output.say, seconds=watch)
        second = upgrade.plan_withdraw(pair)
        going = output.go(second, dry_run=False, force=force, ask=f"Withdraw the routes of {pair.old.name}?", yes=yes)
        if going:
            upgrade.apply_withdraw(api, pair, second.items, output.say)
            output.say(f"done; `multinic upgrade --back` undoes it until {pair.old.name} is removed from the program")
        output.result({"checks": checks, "cut_over": first, "withdraw": second, "done": going})


@placed
def templates(
    place: Place,
    delete: Annotated[bool, typer.Option("--delete", help="Delete those that nobody uses; asks first.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Show the fleet's instance templates, and delete old ones that no group and no VM uses."""
    from multinic.operate import templates

    output = Output(json)
    with place.opened() as (api, reader):
        fleet = reader.read()
        found = templates.read(api, fleet)
        if not delete:
            output.result(found)
            if not json:
                rows = [(one.name, one.created, ", ".join(one.users) or "nobody") for one in found]
                show(table(f"Templates of {fleet.name}", ("template", "made", "used by"), rows))
            return
        plan = templates.plan(found)
        work = partial(templates.apply, api, fleet, plan.items, output.say)
        output.carry_out(plan, work, dry_run=dry_run, ask=f"Delete {len(plan.items)} templates?", yes=yes)


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command(short_help="Show routes and what is wrong with them.")(routes)
    app.command(short_help="Turn a network's traffic off.")(withdraw)
    app.command(short_help="Put withdrawn routes back.")(restore)
    app.command(short_help="Move traffic to a second generation.")(upgrade)
    app.command(short_help="Show instance templates, delete old ones.")(templates)

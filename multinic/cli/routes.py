"""Commands about routes and generations: routes, withdraw, restore, upgrade, templates."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from multinic.cli.names import complete_network
from multinic.cli.options import changing
from multinic.cli.output import show, table
from multinic.cli.run import Run

if TYPE_CHECKING:
    from multinic.operate.fleet import Hop

Networks = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NETWORK]...", help="Networks, by name or its beginning.", autocompletion=complete_network),
]
All = Annotated[bool, typer.Option("--all", help="All networks of the fleet.")]


@changing(asks=True)
def routes(
    run: Run,
    warnings: Annotated[
        bool, typer.Option("--warnings", help="Only routes with warnings; exit code 5 if any.")
    ] = False,
    delete_warnings: Annotated[
        bool, typer.Option("--delete-warnings", help="Delete routes whose load balancer is gone; asks first.")
    ] = False,
    cleanup: Annotated[
        bool, typer.Option("--cleanup", help="Delete what withdraw and upgrade left; asks first.")
    ] = False,
) -> None:
    """Show all routes of the fleet, with what is wrong with them; delete dead ones and leftovers."""
    from multinic.operate import routes
    from multinic.operate.errors import FoundError, WordError

    if warnings + delete_warnings + cleanup > 1:
        raise WordError("give one of --warnings, --delete-warnings and --cleanup")
    fleet = run.fleet
    if delete_warnings or cleanup:
        plan = routes.plan_delete_warnings(fleet) if delete_warnings else routes.plan_cleanup(fleet)
        work = partial(routes.apply_delete, run.api, plan.items, run.say)
        run.carry_out(plan, work, ask=f"Delete {len(plan.items)} routes?")
        return
    rows = [row for row in routes.rows(fleet) if row.warnings or not warnings]
    run.output.result(rows)
    if not run.output.json:
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


@changing(force=True, asks=True)
def withdraw(run: Run, networks: Networks = None, everything: All = False) -> None:
    """Take a network's routes to the fleet away: the only switch that turns its traffic off. `restore` undoes it."""
    from multinic.operate import withdraw

    plan = withdraw.plan(run.fleet, _chosen(run, networks, everything=everything))
    work = partial(withdraw.apply, run.api, run.fleet, plan.items, run.say)
    run.carry_out(plan, work, ask=f"Withdraw {len(plan.items)} routes?")


@changing(force=True)
def restore(run: Run, networks: Networks = None, everything: All = False) -> None:
    """Put withdrawn routes back."""
    from multinic.operate import withdraw

    plan = withdraw.plan_restore(run.fleet, _chosen(run, networks, everything=everything))
    run.carry_out(plan, partial(withdraw.apply_restore, run.api, run.fleet, plan.items, run.say))


def _chosen(run: Run, networks: list[str] | None, *, everything: bool) -> tuple[Hop, ...]:
    from multinic.operate import words
    from multinic.operate.errors import WordError

    known = run.fleet.networks
    if everything == bool(networks):
        raise WordError(f"name networks ({', '.join(known)}), or give --all")
    return words.hops(run.fleet, networks or known)


@changing(force=True, asks=True)
def upgrade(
    run: Run,
    old: Annotated[str, typer.Option(help="Fleet that carries the traffic now; default: found out.")] = "",
    new: Annotated[str, typer.Option(help="Fleet that is to carry it; default: the other one.")] = "",
    back: Annotated[bool, typer.Option("--back", help="Move the traffic back to the old fleet.")] = False,
    watch: Annotated[
        float, typer.Option(min=0, help="Seconds to watch the new fleet before the old is withdrawn.")
    ] = 60.0,
) -> None:
    """Move traffic to a second generation beside the first: check, cut over, watch, withdraw the old routes.

    Can be given again after whatever stopped it; what has been done is read from the routes.
    """
    from multinic.operate import upgrade
    from multinic.operate.errors import RefusedError

    api, reader = run.api, run.reader
    pair = upgrade.read(reader, old, new)
    run.say(f"old: {pair.old.name}, new: {pair.new.name}")
    if back:
        plan = upgrade.plan_back(pair)
        work = partial(upgrade.apply_back, api, pair, plan.items, run.say)
        run.carry_out(plan, work, ask=f"Move traffic back to {pair.old.name}?")
        return
    checks = upgrade.checks(pair)
    for check in checks:
        run.say(f"{'ok' if check.good else 'NO'}  {check.what}" + ("" if check.good else f" — {check.cure}"))
    if not all(check.good for check in checks) and not run.force and not run.dry_run:
        raise RefusedError(f"{pair.new.name} is not ready; --force goes on nevertheless")
    first = upgrade.plan_cut_over(pair)
    going = run.go(first, ask=f"Move the traffic to {pair.new.name}?")
    if run.dry_run or (first.items and not going):
        run.output.result({"checks": checks, "cut_over": first, "done": False})
        return
    if going:
        upgrade.apply_cut_over(api, pair, first.items, run.say)
        pair = upgrade.read(reader, pair.old.name, pair.new.name)
    upgrade.watch(reader, pair, run.say, seconds=watch)
    second = upgrade.plan_withdraw(pair)
    going = run.go(second, ask=f"Withdraw the routes of {pair.old.name}?")
    if going:
        upgrade.apply_withdraw(api, pair, second.items, run.say)
        run.say(f"done; `multinic upgrade --back` undoes it until {pair.old.name} is removed from the program")
    run.output.result({"checks": checks, "cut_over": first, "withdraw": second, "done": going})


@changing(asks=True)
def templates(
    run: Run,
    delete: Annotated[bool, typer.Option("--delete", help="Delete those that nobody uses; asks first.")] = False,
) -> None:
    """Show the fleet's instance templates, and delete old ones that no group and no VM uses."""
    from multinic.operate import templates

    found = templates.read(run.api, run.fleet)
    if delete:
        plan = templates.plan(found)
        work = partial(templates.apply, run.api, run.fleet, plan.items, run.say)
        run.carry_out(plan, work, ask=f"Delete {len(plan.items)} templates?")
        return
    run.output.result(found)
    if not run.output.json:
        rows = [(one.name, one.created, ", ".join(one.users) or "nobody") for one in found]
        show(table(f"Templates of {run.fleet.name}", ("template", "made", "used by"), rows))


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command(short_help="Show routes and what is wrong with them.")(routes)
    app.command(short_help="Turn a network's traffic off.")(withdraw)
    app.command(short_help="Put withdrawn routes back.")(restore)
    app.command(short_help="Move traffic to a second generation.")(upgrade)
    app.command(short_help="Show instance templates, delete old ones.")(templates)

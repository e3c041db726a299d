"""Commands that change routers: drain, undrain, heal, panic, rolling-update."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from multinic.cli.names import complete_target
from multinic.cli.options import AsJson, DryRun, Force, Place, Timeout, Wait, Yes, placed
from multinic.cli.output import Output

Target = Annotated[
    str, typer.Argument(metavar="VM|ZONE", help="Name of a VM or a zone.", autocompletion=complete_target)
]
Machine = Annotated[str, typer.Argument(metavar="VM", help="Name of a VM.", autocompletion=complete_target)]


@placed
def drain(
    place: Place,
    target: Target,
    dry_run: DryRun = False,
    force: Force = False,
    wait: Wait = True,
    timeout: Timeout = 120.0,
    json: AsJson = False,
) -> None:
    """Let a VM, or a zone's VMs, get no traffic: by metadata, without a shell, until undrained or recreated."""
    _drain(place, target, Output(json), drained=True, dry_run=dry_run, force=force, wait=wait, timeout=timeout)


@placed
def undrain(
    place: Place,
    target: Target,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Timeout = 120.0,
    json: AsJson = False,
) -> None:
    """Let a drained VM, or a zone's, get traffic again."""
    _drain(place, target, Output(json), drained=False, dry_run=dry_run, force=False, wait=wait, timeout=timeout)


def _drain(
    place: Place, target: str, output: Output, *, drained: bool, dry_run: bool, force: bool, wait: bool, timeout: float
) -> None:
    from multinic.operate import drain, words

    with place.opened() as (api, reader):
        fleet = reader.read()
        routers = words.routers(fleet, target, api)
        plan = drain.plan(fleet, routers) if drained else drain.plan_undrain(routers)

        def work() -> None:
            drain.apply(api, fleet, plan.items, drained=drained)
            if wait:
                drain.wait(reader, fleet, plan.items, output.say, drained=drained, timeout=timeout)

        output.carry_out(plan, work, dry_run=dry_run, force=force)


@placed
def heal(
    place: Place,
    machine: Machine,
    dry_run: DryRun = False,
    force: Force = False,
    wait: Wait = True,
    timeout: Timeout = 900.0,
    json: AsJson = False,
) -> None:
    """Recreate a VM under its name, drained first."""
    from multinic.operate import heal, words

    output = Output(json)
    with place.opened() as (api, reader):
        fleet = reader.read()
        plan = heal.plan(fleet, words.router(fleet, machine, api))

        def work() -> None:
            heal.apply(api, fleet, plan.items)
            if wait:
                heal.wait(reader, fleet, plan.items[0], output.say, timeout=timeout)

        output.carry_out(plan, work, dry_run=dry_run, force=force)


@placed
def panic(
    place: Place,
    machine: Machine,
    dry_run: DryRun = False,
    force: Force = False,
    yes: Yes = False,
    timeout: Timeout = 900.0,
    json: AsJson = False,
) -> None:
    """Panic a VM's kernel, as an exercise, and count the seconds."""
    from multinic.operate import panic, words

    output = Output(json)
    with place.opened() as (api, reader):
        fleet = reader.read()
        plan = panic.plan(fleet, words.router(fleet, machine, api))

        def work() -> dict[str, Any]:
            panic.apply(api.door, fleet, plan.items[0])
            return {"seconds": panic.wait(reader, fleet, plan.items[0], output.say, timeout=timeout)}

        ask = f"Panic the kernel of {machine}?"
        output.carry_out(plan, work, dry_run=dry_run, force=force, ask=ask, yes=yes)


@placed
def rolling_update(
    place: Place,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an update was stopped.")] = False,
    dry_run: DryRun = False,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Recreate every VM, one after the other, as long as the rest is healthy."""
    from multinic.operate import rolling
    from multinic.operate.errors import WordError

    output = Output(json)
    with place.opened() as (api, reader):
        fleet = reader.read()
        kept = rolling.Round.of(fleet)
        pending = kept.read()
        if resume and pending is None:
            raise WordError(f"no update of {fleet.name} was stopped on this machine; begin one without --resume")
        if pending is not None and not resume:
            output.say(f"· an update of {fleet.name} was stopped before ({', '.join(pending)} left); this begins anew")
        plan = rolling.plan(fleet, pending if resume else None)
        if resume and not plan.items and not dry_run:
            kept.write({})
        output.carry_out(
            plan,
            lambda: rolling.apply(api, reader, fleet, plan.items, kept, output.say, force=force),
            dry_run=dry_run,
            force=force,
        )


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command(short_help="Let a VM or a zone get no traffic.")(drain)
    app.command(short_help="Let a drained VM or zone get traffic again.")(undrain)
    app.command(short_help="Recreate a VM, drained first.")(heal)
    app.command(short_help="Panic a VM's kernel, count the seconds.")(panic)
    app.command("rolling-update", short_help="Recreate all VMs, one at a time.")(rolling_update)

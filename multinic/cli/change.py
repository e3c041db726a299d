"""Commands that change routers: drain, undrain, heal, panic, rolling-update."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from multinic.cli.names import complete_target
from multinic.cli.options import Timeout, Wait, changing
from multinic.cli.run import Run

Target = Annotated[
    str, typer.Argument(metavar="VM|ZONE", help="Name of a VM or a zone.", autocompletion=complete_target)
]
Machine = Annotated[str, typer.Argument(metavar="VM", help="Name of a VM.", autocompletion=complete_target)]


@changing(force=True)
def drain(run: Run, target: Target, wait: Wait = True, timeout: Timeout = 120.0) -> None:
    """Let a VM, or a zone's VMs, get no traffic: by metadata, without a shell, until undrained or recreated."""
    _drain(run, target, drained=True, wait=wait, timeout=timeout)


@changing()
def undrain(run: Run, target: Target, wait: Wait = True, timeout: Timeout = 120.0) -> None:
    """Let a drained VM, or a zone's, get traffic again."""
    _drain(run, target, drained=False, wait=wait, timeout=timeout)


def _drain(run: Run, target: str, *, drained: bool, wait: bool, timeout: float) -> None:
    from multinic.operate import drain, words

    routers = words.routers(run.fleet, target, run.api)
    plan = drain.plan(run.fleet, routers) if drained else drain.plan_undrain(routers)

    def work() -> None:
        drain.apply(run.api, run.fleet, plan.items, drained=drained)
        if wait:
            drain.wait(run.reader, run.fleet, plan.items, run.say, drained=drained, timeout=timeout)

    run.carry_out(plan, work)


@changing(force=True)
def heal(run: Run, machine: Machine, wait: Wait = True, timeout: Timeout = 900.0) -> None:
    """Recreate a VM under its name, drained first."""
    from multinic.operate import heal, words

    plan = heal.plan(run.fleet, words.router(run.fleet, machine, run.api))

    def work() -> None:
        heal.apply(run.api, run.fleet, plan.items)
        if wait:
            heal.wait(run.reader, run.fleet, plan.items[0], run.say, timeout=timeout)

    run.carry_out(plan, work)


@changing(force=True, asks=True)
def panic(run: Run, machine: Machine, timeout: Timeout = 900.0) -> None:
    """Panic a VM's kernel, as an exercise, and count the seconds."""
    from multinic.operate import panic, words

    plan = panic.plan(run.fleet, words.router(run.fleet, machine, run.api))

    def work() -> dict[str, Any]:
        panic.apply(run.api.door, run.fleet, plan.items[0])
        return {"seconds": panic.wait(run.reader, run.fleet, plan.items[0], run.say, timeout=timeout)}

    run.carry_out(plan, work, ask=f"Panic the kernel of {machine}?")


@changing(force=True)
def rolling_update(
    run: Run,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an update was stopped.")] = False,
) -> None:
    """Recreate every VM, one after the other, as long as the rest is healthy."""
    from multinic.operate import rolling
    from multinic.operate.errors import WordError

    fleet = run.fleet
    kept = rolling.Round.of(fleet)
    pending = kept.read()
    if resume and pending is None:
        raise WordError(f"no update of {fleet.name} was stopped on this machine; begin one without --resume")
    if pending is not None and not resume:
        run.say(f"· an update of {fleet.name} was stopped before ({', '.join(pending)} left); this begins anew")
    plan = rolling.plan(fleet, pending if resume else None)
    if resume and not plan.items and not run.dry_run:
        kept.write({})
    run.carry_out(plan, lambda: rolling.apply(run.api, run.reader, fleet, plan.items, kept, run.say, force=run.force))


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command(short_help="Let a VM or a zone get no traffic.")(drain)
    app.command(short_help="Let a drained VM or zone get traffic again.")(undrain)
    app.command(short_help="Recreate a VM, drained first.")(heal)
    app.command(short_help="Panic a VM's kernel, count the seconds.")(panic)
    app.command("rolling-update", short_help="Recreate all VMs, one at a time.")(rolling_update)

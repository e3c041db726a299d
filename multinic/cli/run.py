"""A command that changes a fleet: it reads, plans, says what it will do to traffic, asks where it must, and acts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import typer

from multinic.cli.output import Output

if TYPE_CHECKING:
    from multinic.operate.api import Api
    from multinic.operate.fleet import Fleet
    from multinic.operate.plan import Plan
    from multinic.operate.reading import Reader


@dataclass
class Run:
    """One run of such a command.

    Attributes:
        api: Google's client.
        reader: Reads the fleet.
        output: Where words go.
        dry_run: Nothing may be changed.
        force: Whatever speaks against it.
        yes: Every question is answered already.
    """

    api: Api
    reader: Reader
    output: Output
    dry_run: bool = False
    force: bool = False
    yes: bool = False

    @cached_property
    def fleet(self) -> Fleet:
        """The fleet that is meant, as it was when it was first asked for."""
        return self.reader.read()

    def say(self, line: str) -> None:
        """A line of progress."""
        self.output.say(line)

    def go(self, plan: Plan[Any], *, ask: str = "") -> bool:
        """Shows a plan and finds out whether to carry it out; `ask` is the question, where one is asked.

        Raises:
            RefusedError: Something speaks against it, or nobody is there to be asked.
        """
        self.output.plan(plan)
        if not self.dry_run:
            plan.require(force=self.force)
        elif plan.refusal:
            self.say(f"  would be refused: {plan.refusal}")
        return bool(plan.changes) and not self.dry_run and (not ask or self.yes or self._asked(ask))

    def carry_out(self, plan: Plan[Any], work: Callable[[], Any], *, ask: str = "") -> None:
        """Shows a plan, carries it out by `work` unless something is against it, and prints what programs get.

        Raises:
            RefusedError: Something speaks against it, or nobody is there to be asked.
        """
        done = self.go(plan, ask=ask)
        more = work() if done else None
        self.output.result({"plan": plan, "done": done} | (more or {}))

    def _asked(self, question: str) -> bool:
        from multinic.operate.errors import RefusedError

        if not sys.stdin.isatty():
            raise RefusedError(f"{question} Nobody is there to be asked: give --yes")
        return typer.confirm(question, err=self.output.json)

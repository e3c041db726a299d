"""What commands print: tables and plans for people, JSON for programs; and the question before a change."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from multinic.operate.plan import Plan

COLOURS = {
    "HEALTHY": "green", "ok": "green", "in force": "green",
    "UNHEALTHY": "red", "missing": "red", "dead": "red", "TIMEOUT": "red",
    "warning": "yellow", "withdrawn": "yellow", "cut-over": "yellow", "unknown": "dim", "drained": "yellow",
}  # fmt: skip


@dataclass
class Output:
    """Where a command's words go.

    Attributes:
        json: Only JSON may go to standard output.
    """

    json: bool = False

    def say(self, line: str) -> None:
        """A line of progress."""
        print(line, file=sys.stderr if self.json else sys.stdout, flush=True)

    def result(self, value: Any) -> None:
        """What programs get; nothing where people read."""
        if self.json:
            print(json.dumps(plain(value), indent=2), flush=True)

    def plan(self, plan: Plan[Any]) -> None:
        """Shows a plan to people."""
        for line in plan.idle:
            self.say(f"· {line}")
        for line in plan.changes:
            self.say(f"→ {line}")
        for line in plan.traffic:
            self.say(f"  traffic: {line}")
        for line in plan.warnings:
            self.say(f"  note: {line}")

    def go(self, plan: Plan[Any], *, dry_run: bool, force: bool, ask: str = "", yes: bool = True) -> bool:
        """Shows a plan and finds out whether to carry it out.

        Args:
            plan: The plan.
            dry_run: Never carry it out.
            force: Whatever speaks against it.
            ask: The question, where one is asked.
            yes: It is answered already.

        Raises:
            RefusedError: Something speaks against it.
        """
        self.plan(plan)
        if not dry_run:
            plan.require(force=force)
        elif plan.refusal:
            self.say(f"  would be refused: {plan.refusal}")
        return bool(plan.changes) and not dry_run and (not ask or yes or self._asked(ask))

    def carry_out(
        self,
        plan: Plan[Any],
        work: Callable[[], Any],
        *,
        dry_run: bool,
        force: bool = False,
        ask: str = "",
        yes: bool = True,
    ) -> None:
        """Shows a plan, carries it out by `work` unless something is against it, and prints what programs get.

        Raises:
            RefusedError: Something speaks against it.
        """
        done = self.go(plan, dry_run=dry_run, force=force, ask=ask, yes=yes)
        more = work() if done else None
        self.result({"plan": plan, "done": done} | (more or {}))

    def _asked(self, question: str) -> bool:
        from multinic.operate.errors import RefusedError

        if not sys.stdin.isatty():
            raise RefusedError(f"{question} Nobody is there to be asked: give --yes")
        return typer.confirm(question, err=self.json)


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(plain(one) for one in value)
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Any:
    """A table for `rich`; words of `COLOURS` have theirs."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    for head in heads:
        made.add_column(head, overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell, style=COLOURS.get(cell.partition(" (")[0], "")) for cell in row))
    return made


def show(*parts: Any) -> None:
    """Prints tables and lines, as wide as the terminal; into a pipe, as wide as they are."""
    from rich.console import Console

    console = Console() if sys.stdout.isatty() else Console(width=200)
    for part in parts:
        console.print(part, soft_wrap=not sys.stdout.isatty() and isinstance(part, str))

"""What commands print: tables and plans for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import TYPE_CHECKING, Any

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

"""Options that all operator commands share, and what each of them begins with: the fleet that is meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from multinic.operate.api import Api
    from multinic.operate.reading import Reader
    from multinic.operate.stack import Where

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON; progress goes to standard error.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
Force = Annotated[bool, typer.Option("--force", help="Do it even if a network loses its last healthy router.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it has taken effect.")]
Timeout = Annotated[float, typer.Option("--timeout", min=1, help="Seconds to wait at most.")]

_PLACE = {
    "project": Annotated[str, typer.Option("--project", help="Project of the fleet; default: the stack's.")],
    "region": Annotated[str, typer.Option("--region", help="Region of the fleet; with it no stack is read.")],
    "stack": Annotated[str, typer.Option("--stack", help="Pulumi stack of the router; default: the selected one.")],
    "fleet": Annotated[str, typer.Option("--fleet", help="Name of the fleet, where the region has several.")],
}


@dataclass(frozen=True)
class Place:
    """What the command line says about where the fleet is; empty fields are found out."""

    project: str = ""
    region: str = ""
    stack: str = ""
    fleet: str = ""

    def find(self) -> Where:
        """The fleet that is meant; see `multinic.operate.stack.find`."""
        from multinic.operate import stack

        return stack.find(self.project, self.region, self.stack, self.fleet)

    @contextmanager
    def opened(self) -> Iterator[tuple[Api, Reader]]:
        """Google's client for it, and what reads the fleet."""
        from multinic.operate.api import Api
        from multinic.operate.reading import Reader

        where = self.find()
        with Api(where.door, where.project) as api:
            yield api, Reader(api, where)


def placed(function: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options of `Place`; its first parameter gets them as one."""
    hints = get_type_hints(function, include_extras=True)
    first, *others = inspect.signature(function).parameters.values()

    def command(**given: Any) -> None:
        place = Place(**{name: given.pop(name) for name in _PLACE})
        function(place, **given)

    place = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default="", annotation=hint)
        for name, hint in _PLACE.items()
    ]
    own = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[one.name]) for one in others]
    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__signature__ = inspect.Signature([*own, *place])  # type: ignore[attr-defined]
    command.__annotations__ = {name: hint for name, hint in hints.items() if name != first.name} | _PLACE
    return command

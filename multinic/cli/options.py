"""Options that operator commands share, and what each begins with: the fleet that is meant, and leave to act."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from multinic.cli.output import Output
from multinic.cli.run import Run

if TYPE_CHECKING:
    from multinic.operate.api import Api
    from multinic.operate.reading import Reader
    from multinic.operate.stack import Where

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON; progress goes to standard error.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it has taken effect.")]
Timeout = Annotated[float, typer.Option("--timeout", min=1, help="Seconds to wait at most.")]

_PLACE = {
    "project": Annotated[str, typer.Option("--project", help="Project of the fleet; default: the stack's.")],
    "region": Annotated[str, typer.Option("--region", help="Region of the fleet; with it no stack is read.")],
    "stack": Annotated[str, typer.Option("--stack", help="Pulumi stack of the router; default: the selected one.")],
    "fleet": Annotated[str, typer.Option("--fleet", help="Name of the fleet, where the region has several.")],
}
_DRY_RUN = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
_FORCE = Annotated[bool, typer.Option("--force", help="Do it even if a network loses its last healthy router.")]
_YES = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


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

    def command(place: Place, given: dict[str, Any]) -> None:
        function(place, **given)

    return _with_options(function, {}, command)


def changing(*, force: bool = False, asks: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a function a command that may change a fleet; its first parameter gets a `Run`.

    Args:
        force: It may be refused for the traffic's sake: gives ``--force``.
        asks: It asks first: gives ``--yes``.
    """
    options: dict[str, Any] = {"dry_run": _DRY_RUN}
    options |= {"force": _FORCE} if force else {}
    options |= {"yes": _YES} if asks else {}
    options["json"] = AsJson

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        def command(place: Place, given: dict[str, Any]) -> None:
            leave = {name: given.pop(name) for name in ("dry_run", "force", "yes") if name in given}
            output = Output(given.pop("json"))
            with place.opened() as (api, reader):
                try:
                    function(Run(api, reader, output, **leave), **given)
                except KeyboardInterrupt:
                    output.say("interrupted; what was begun goes on: `multinic status` shows how things are")
                    raise

        return _with_options(function, options, command)

    return decorate


def _with_options(
    function: Callable[..., None],
    options: Mapping[str, Any],
    command: Callable[[Place, dict[str, Any]], None],
) -> Callable[..., None]:
    """A function as typer takes it: the parameters of `function` but its first, then `options`, then where it is."""
    hints = get_type_hints(function, include_extras=True)
    first, *others = inspect.signature(function).parameters.values()

    def called(**given: Any) -> None:
        place = Place(**{name: given.pop(name) for name in _PLACE})
        command(place, given)

    def option(name: str, hint: Any, default: Any) -> inspect.Parameter:
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)

    own = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[one.name]) for one in others]
    more = [option(name, hint, default=False) for name, hint in options.items()]
    place = [option(name, hint, default="") for name, hint in _PLACE.items()]
    called.__name__, called.__doc__ = function.__name__, function.__doc__
    called.__signature__ = inspect.Signature([*own, *more, *place])  # type: ignore[attr-defined]
    called.__annotations__ = {name: hint for name, hint in hints.items() if name != first.name} | {**options, **_PLACE}
    return called

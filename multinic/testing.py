"""Unit tests of programs that use multinic, without engine, plugin or cloud.

    from multinic import testing

    def test_routes() -> None:
        declared = testing.run(my_program)
        assert declared.one("compute.Route", "nic0")["priority"] == 900

`run` gives the program mocks that answer as Google Cloud does, waits for everything it started (a failed assertion in
an `apply`, an exception in a task and a coroutine that nobody awaited all fail the test), and hands back what it
declared as plain values. Each run has its own event loop and its own Pulumi settings; nothing is left behind.
Does not check what Google Cloud would refuse: that needs the lab.
"""

import asyncio
import contextlib
import contextvars
import gc
import hashlib
import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi
from pulumi.runtime import mocks, rpc, set_mocks
from pulumi.runtime.config import set_all_config
from pulumi.runtime.settings import ROOT, SETTINGS
from pulumi.runtime.stack import run_in_stack

from multinic.testing_declared import Declared, Inputs, Resource, has_secret, plain
from multinic.testing_outputs import computed

__all__ = ["Declared", "Mocks", "Region", "Resource", "run"]


@dataclass(frozen=True)
class Region:
    """The cloud that the mocks answer for.

    Attributes:
        project: The default provider's project.
        name: The default provider's region.
        zones: What a look-up of zones answers.
        image: What a look-up of an image family answers.
    """

    project: str = "lab"
    name: str = "us-central1"
    zones: Sequence[str] = ("us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f")
    image: str = "debian-12-bookworm-v20260921"


class Mocks(mocks.Mocks):
    """Answers like Google Cloud; in a preview only with what a preview can know.

    Subclass it for types that multinic does not use, and give it to `run`.
    """

    def __init__(
        self,
        region: Region | None = None,
        *,
        preview: bool = False,
        stacks: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.region = region or Region()
        self.preview = preview
        self.stacks = stacks or {}
        """Outputs of other stacks, by the full name that a StackReference gives."""
        self.declared = Declared()
        self._providers: dict[str, Inputs] = {}

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, Inputs]:
        """Returns id and outputs of a resource."""
        if args.typ == "pulumi:pulumi:StackReference":
            if args.name not in self.stacks:
                raise LookupError(f"stack {args.name} is not known; known: {', '.join(self.stacks) or 'none'}")
            return args.name, {"name": args.name, "outputs": dict(self.stacks[args.name]), "secretOutputNames": []}
        if not args.custom:
            return None, {}
        name = args.inputs.get("name") or f"{args.name}-{hashlib.sha256(args.name.encode()).hexdigest()[:7]}"
        outputs = {"name": name, **args.inputs}
        if self.preview:
            return None, outputs
        if args.typ == "pulumi:providers:gcp":
            self._providers[args.name] = args.inputs
        mine = self._providers.get((args.provider or "").rpartition("::")[0].rpartition("::")[2], {})
        outputs |= computed(
            args.typ, outputs, mine.get("project") or self.region.project, mine.get("region") or self.region.name
        )
        return str(outputs.get("selfLink", name)), outputs

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """Answers a function of the provider."""
        self.declared.calls.append((args.token, dict(args.args)))
        function = args.token
        if function == "gcp:compute/getZones:getZones":
            return {"id": "zones", "names": list(self.region.zones), **args.args}, []
        if function == "gcp:compute/getImage:getImage":
            project = args.args.get("project", self.region.project)
            link = f"https://www.googleapis.com/compute/v1/projects/{project}/global/images/{self.region.image}"
            return {"id": link, "name": self.region.image, "selfLink": link, **args.args}, []
        raise NotImplementedError(f"{args.token}: give `run` a subclass of testing.Mocks that answers it")


def run(
    program: Callable[[], Any],
    *,
    config: Mapping[str, Any] | None = None,
    preview: bool = False,
    given: Mocks | None = None,
    project: str = "multinic",
    stack: str = "dev",
) -> Declared:
    """Runs a Pulumi program with mocks and returns what it declared.

    Args:
        program: A function without arguments; async is fine. Its resources are made and its exports set as in a stack.
        config: The stack's configuration, values as in Pulumi's YAML file; a key without a colon is the project's own.
            Default: empty.
        preview: Whether it runs as a preview, where computed outputs are unknown.
        given: Mocks of your own.
        project: Name of the Pulumi project.
        stack: Name of the stack.

    Raises:
        Exception: Whatever the program raised, also in an `apply` or a task.
        RuntimeError: It called an async function and did not await it; or `run` itself was called by one.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise RuntimeError("testing.run has an event loop of its own; call it from a plain function, not an async one")
    answers = given or Mocks(preview=preview)
    answers.preview, answers.declared = preview, Declared()

    # Futures tell of exceptions that nobody asked for when they are freed. Of a failed run they would tell what it
    # raised once more for each resource, in the middle of whatever runs by then.
    untold: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: untold.append(context))
        set_all_config(
            {
                key if ":" in key else f"{project}:{key}": value if isinstance(value, str) else json.dumps(value)
                for key, value in (config or {}).items()
            }
        )
        # `set_mocks` leaves the set of unfinished outputs shared with all runs before; one that failed would block us.
        SETTINGS.outputs = set()
        SETTINGS.package_refs = {}
        set_mocks(
            answers,
            project=project,
            stack=stack,
            preview=preview,
            monitor=_Monitor(answers),
            logger=_listen(answers.declared.messages),
            organization="organization",  # as backends without organizations call it
        )
        ROOT.set(None)  # `set_mocks` made a root of its own; the program gets one with its exports
        await run_in_stack(program)
        # An engine would not wait for these, but what they check is to be seen.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*(task for task in others if _is_of_program(task.get_coro())))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sys.set_coroutine_origin_tracking_depth(1)
        try:
            # Pulumi keeps its settings in context variables: what is set in a copy of the context ends with it.
            contextvars.copy_context().run(asyncio.run, main())
        finally:
            sys.set_coroutine_origin_tracking_depth(0)
            answers.declared.sort()
        gc.collect()
    for context in untold:
        future, raised = context.get("future"), context.get("exception")
        if isinstance(future, asyncio.Task) and raised and _is_of_program(future.get_coro()):
            raise raised
        logging.getLogger("asyncio").error(context["message"], exc_info=raised)
    for warning in caught:
        what, *where = str(warning.message).splitlines() or [""]
        if _is_of_program(warning.source):
            raise RuntimeError("\n".join([f"{what}: what it should have done or checked did not happen", *where]))
        expected = "was never awaited" in what or issubclass(warning.category, DeprecationWarning | ResourceWarning)
        if not expected:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return answers.declared


def _is_of_program(coroutine: Any) -> bool:
    """Whether the program made a coroutine.

    Memory is freed when Python likes to. What an earlier run left behind, or Pulumi itself when that run failed, can
    be freed during this one and is not this program's fault: such a coroutine has no origin, or one inside Pulumi.
    """
    origin: tuple[tuple[str, int, str], ...] | None = getattr(coroutine, "cr_origin", None)
    return origin is not None and not Path(origin[0][0]).is_relative_to(Path(pulumi.__file__).parent)


class _Monitor(mocks.MockMonitor):
    """Pulumi's own mock engine, which also notes what it is told."""

    def __init__(self, answers: Mocks) -> None:
        super().__init__(answers)
        self._declared = answers.declared
        self._urns: set[str] = set()

    def Invoke(self, request: Any) -> Any:  # noqa: N802 - a name of Pulumi's protocol
        with _own_loop():
            return super().Invoke(request)  # type: ignore[no-untyped-call]

    def ReadResource(self, request: Any) -> Any:  # noqa: N802 - a name of Pulumi's protocol
        with _own_loop():
            response = super().ReadResource(request)  # type: ignore[no-untyped-call]
        self._once(response.urn)
        return response

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - a name of Pulumi's protocol
        with _own_loop():
            response = super().RegisterResource(request)  # type: ignore[no-untyped-call]
        if request.type == "pulumi:pulumi:Stack":
            return response
        self._once(response.urn)
        self._declared.resources.append(
            Resource(
                urn=response.urn,
                type=request.type,
                name=request.name,
                inputs=plain(rpc.deserialize_properties(request.object)),
                parent=request.parent,
                depends_on=tuple(sorted(request.dependencies)),
                delete_before_replace=request.deleteBeforeReplace,
                retain_on_delete=request.retainOnDelete,
                custom=request.custom,
            )
        )
        return response

    def _once(self, urn: str) -> None:
        if urn in self._urns:
            raise pulumi.RunError(f"two resources are named {urn}")
        self._urns.add(urn)

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 - a name of Pulumi's protocol
        given = rpc.deserialize_properties(request.outputs, keep_unknowns=True)
        outputs = plain(given)
        if "::pulumi:pulumi:Stack::" in request.urn:
            self._declared.outputs.update(outputs)
            self._declared.secret_outputs += sorted(name for name, value in given.items() if has_secret(value))
        else:
            self._declared.component_outputs[request.urn] = outputs
        return super().RegisterResourceOutputs(request)  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def _own_loop() -> Iterator[None]:
    """Gives a worker thread an event loop and closes it: the mock engine makes one a thread and leaves it open."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            yield
        finally:
            asyncio.set_event_loop(None)
            loop.close()
    else:
        yield


class _Listener(logging.Handler):
    """Keeps what the program logs."""

    def __init__(self, messages: list[str]) -> None:
        super().__init__()
        self._messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        self._messages.append(f"{record.levelname.lower()}: {record.getMessage()}")


def _listen(messages: list[str]) -> logging.Logger:
    logger = logging.Logger("multinic.testing", logging.INFO)
    logger.addHandler(_Listener(messages))
    return logger

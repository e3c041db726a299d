"""What a program made, and how it is taken down again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Protocol

from multinic.lab.errors import LabError

Progress = Callable[[str], None]
"""Gets one line for each thing that happens."""

REMIND_EVERY_S = 5.0
"""After so long without a line, one says what is still being waited for."""


def one_by_one(progress: Progress | None) -> Progress:
    """Return a progress function that threads may call at the same time; without one, lines go nowhere."""
    lock = threading.Lock()

    def say(line: str) -> None:
        if progress:
            with lock:
                progress(line)

    return say


AT_ONCE = 32
"""Resources that are made or deleted at the same time; the engine's own default is 16 per CPU."""


class DeploymentError(LabError):
    """A program could not be brought up or taken down; the text says why, for people.

    Attributes:
        deployment: What was made before, still to be destroyed; None where nothing was begun.
    """

    def __init__(self, text: str, deployment: Deployment | None = None) -> None:
        super().__init__(text)
        self.deployment = deployment


class InterruptedUpError(KeyboardInterrupt):
    """Ctrl-C while a program was brought up.

    Attributes:
        deployment: What was made before, still to be destroyed.
    """

    def __init__(self, deployment: Deployment) -> None:
        super().__init__("interrupted")
        self.deployment = deployment


@dataclass(frozen=True)
class Made:
    """One resource.

    Attributes:
        urn: Pulumi's name for it.
        type: Type token.
        name: Logical name.
        id: Id that the API knows it by, empty for a component.
        inputs: Complete inputs.
        outputs: Outputs.
        needs: URNs of resources that it was made from.
    """

    urn: str
    type: str
    name: str
    id: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    needs: frozenset[str] = frozenset()


class Deployment(Protocol):
    """What `in_process.up` and `engine.up` return alike.

    Attributes:
        outputs: The stack's outputs.
        resources: What was made, components too, in the order in which it was made.
        engine: What drove the program, for people.
    """

    outputs: dict[str, Any]
    resources: list[Made]
    engine: str

    def destroy(self, progress: Progress | None = None) -> None:
        """Delete everything, what was made last first."""


@dataclass
class Teardown:
    """Deletes resources as soon as nothing that was made from them is left.

    Attributes:
        delete: Deletes one resource.
        progress: Gets a line for each.
        errors: What could not be deleted, and why.
    """

    delete: Callable[[Made], None]
    progress: Progress
    errors: list[str] = field(default_factory=list)

    def run(self, resources: list[Made]) -> list[Made]:
        """Delete resources and return those that are left because of errors."""
        left = {made.urn: made for made in resources}
        running: dict[Future[None], Made] = {}
        stuck: set[str] = set()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            while True:
                wanted_by_others = {need for made in left.values() for need in made.needs}
                busy = {made.urn for made in running.values()}
                for urn in [urn for urn in reversed(left) if urn not in wanted_by_others | busy | stuck]:
                    self.progress(f"deleting {left[urn].type.rsplit(':', 1)[-1]} {left[urn].name}")
                    running[pool.submit(self.delete, left[urn])] = left[urn]
                if not running:
                    return list(left.values())
                done, _ = wait(running, timeout=REMIND_EVERY_S, return_when=FIRST_COMPLETED)
                if not done:
                    self.progress("still deleting " + ", ".join(sorted(made.name for made in running.values())))
                for future in done:
                    made = running.pop(future)
                    error = future.exception()
                    if error is None:
                        del left[made.urn]
                    else:
                        stuck.add(made.urn)
                        self.errors.append(f"{made.type.rsplit(':', 1)[-1]} {made.name}: {error}")

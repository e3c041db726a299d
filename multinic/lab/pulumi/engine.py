"""Runs a Pulumi project with the real Pulumi CLI against a lab: the same interface as `in_process`.

The project on disk is not touched: its program runs from where it is, while project file, configuration and state of
the stack are in a folder of the lab's.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from multinic.lab.pulumi import cli, environment, providers
from multinic.lab.pulumi.deployment import DeploymentError, Made, Progress, one_by_one
from multinic.lab.pulumi.events import EventLog
from multinic.lab.pulumi.values import DEFAULTS

_GLANCE_S = 0.2
_QUIET = ("--non-interactive", "--color", "never")


@dataclass
class Stack:
    """A stack of a project, driven by the CLI.

    Attributes:
        project: Folder of the program.
        name: Name of the stack.
        state: Folder for everything that the CLI writes.
        endpoint: The lab's front door.
        token: Its token.
        say: Gets a line for each thing that happens.
        attached: Value of PULUMI_DEBUG_PROVIDERS of stand-ins that run already; empty: each session runs its own.
    """

    project: Path
    name: str
    state: Path
    endpoint: str
    token: str
    say: Progress
    attached: str = ""

    @property
    def _folder(self) -> Path:
        return self.state / "project"

    def configure(self, config: Mapping[str, Any]) -> None:
        """Write the project file and the stack's configuration, and make the stack if it is not there."""
        self._folder.mkdir(parents=True, exist_ok=True)
        described = yaml.safe_load((self.project / "Pulumi.yaml").read_text())
        # `main` lets the CLI keep its files here while the program runs where it is.
        runtime = described["runtime"]
        name = runtime if isinstance(runtime, str) else runtime["name"]
        described |= {"main": str(self.project.resolve()), "runtime": {"name": name}}
        # Paths in it are meant from where it was.
        for package, source in (described.get("packages") or {}).items():
            if str(source).startswith("."):
                described["packages"][package] = str((self.project / source).resolve())
        (self._folder / "Pulumi.yaml").write_text(yaml.safe_dump(described))
        settings = self._folder / f"Pulumi.{self.name}.yaml"
        kept = yaml.safe_load(settings.read_text()) if settings.exists() else {}
        # The salt in it belongs to the state, which may hold values that are encrypted with it.
        settings.write_text(yaml.safe_dump((kept or {}) | {"config": dict(config)}))
        run = self._run(attached="")
        run("stack", "select", "--create", self.name, "--secrets-provider", "passphrase")

    @contextlib.contextmanager
    def session(self) -> Iterator[Run]:
        """Run the stand-ins for the plugins and yield a function that runs the CLI beside them."""
        if self.attached:
            yield self._run(self.attached)
            return
        try:
            with providers.running(self.endpoint, self.token) as attached:
                yield self._run(attached)
        except providers.ProvidersError as error:
            raise DeploymentError(str(error)) from error

    def _run(self, attached: str) -> Run:
        found = cli.find()
        if not found:
            raise DeploymentError("there is no Pulumi CLI: `python -m multinic.lab.pulumi.cli build` builds one")
        settings = environment.settings(self.endpoint, self.token, self.state, attached)
        # The event log is one of the CLI's commands for programs, as the Automation API uses them.
        settings["PULUMI_DEBUG_COMMANDS"] = "true"
        return Run(found, self._folder, dict(os.environ) | settings, self.say)


@dataclass(frozen=True)
class Run:
    """Runs the CLI."""

    executable: Path
    folder: Path
    environment: Mapping[str, str]
    say: Progress

    def __call__(self, *arguments: str) -> str:
        """Run a command and return its output.

        Raises:
            DeploymentError: If it fails; the text is the CLI's.
        """
        done = subprocess.run(
            [str(self.executable), *arguments, *_QUIET],
            cwd=self.folder,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            text = (done.stderr.strip() or done.stdout.strip()).removeprefix("error: ")
            raise DeploymentError(f"pulumi {arguments[0]}: {text}")
        return done.stdout

    def follow(self, *arguments: str) -> EventLog:
        """Run a command, passing on what happens to resources, and return what was logged.

        Ctrl-C goes to the engine, which ends what is under way and keeps what was made in its state.

        Raises:
            DeploymentError: If it fails, with the errors of program and resources.
            KeyboardInterrupt: When it was interrupted, after the engine has ended.
        """
        # Beside the state, so that what a kill leaves goes with it.
        with tempfile.TemporaryDirectory(prefix="events-", dir=self.folder) as temporary:
            path = Path(temporary) / "events.json"
            printed = Path(temporary) / "printed"
            log = EventLog(path, self.say)
            self.say(f"running pulumi {arguments[0]}")
            with printed.open("w") as output:
                # A session of its own: a terminal's Ctrl-C would reach the engine twice, which stops it at once.
                process = subprocess.Popen(
                    [*_ends_with_us(), str(self.executable), *arguments, *_QUIET, "--event-log", str(path)],
                    cwd=self.folder,
                    env=dict(self.environment),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                _wait(process, log)
            if process.returncode:
                text = "\n".join(log.errors) or printed.read_text().strip() or f"ended with code {process.returncode}"
                raise DeploymentError(text)
            return log


def _ends_with_us() -> list[str]:
    """What a command begins with so that its process, were we killed, writes nothing more into a lab being cleared."""
    return ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


def _wait(process: subprocess.Popen[bytes], log: EventLog) -> None:
    interrupted: KeyboardInterrupt | None = None
    while process.poll() is None:
        try:
            log.read()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GLANCE_S)
        except KeyboardInterrupt as error:
            # The first lets the engine finish what it is doing, the second ends it.
            process.send_signal(signal.SIGINT if interrupted is None else signal.SIGKILL)
            interrupted = error
        except BaseException:
            process.kill()
            process.wait()
            raise
    log.read()
    if interrupted:
        raise interrupted


@dataclass
class EngineDeployment:
    """What the real engine made in the lab.

    Attributes:
        outputs: The stack's outputs.
        resources: What was made, components too, in the order of the engine's state.
        engine: What drove the program, for people.
    """

    stack: Stack
    outputs: dict[str, Any] = field(default_factory=dict)
    resources: list[Made] = field(default_factory=list)
    engine: str = "the real Pulumi engine"

    def destroy(self, progress: Progress | None = None) -> None:
        """Delete everything and forget the stack.

        Raises:
            DeploymentError: If something could not be deleted; what is left can be tried again.
        """
        if progress:
            self.stack.say = one_by_one(progress)
        with self.stack.session() as run:
            run.follow("destroy", "--yes", "--skip-preview", "--stack", self.stack.name)
            run("stack", "rm", "--yes", "--preserve-config", "--stack", self.stack.name)
        self.resources, self.outputs = [], {}

    def refresh(self) -> dict[str, int]:
        """Read what is there now into the state and return how many resources differed, by what was found."""
        with self.stack.session() as run:
            log = run.follow("refresh", "--yes", "--skip-preview", "--stack", self.stack.name)
            self._read(run)
        return log.changes

    def preview(self) -> dict[str, int]:
        """Return how many resources an update would touch, by what it would do."""
        with self.stack.session() as run:
            return run.follow("preview", "--stack", self.stack.name).changes

    def update(self, config: Mapping[str, Any] | None = None, *, preview: bool = True) -> dict[str, int]:
        """Run the program again and return how many resources were touched, by what was done.

        Args:
            config: The stack's configuration from now on, if it is to be another.
            preview: Preview first, so that refused inputs are found before anything is changed.
        """
        if config is not None:
            self.stack.configure(config)
        with self.stack.session() as run:
            # Two commands instead of one that does both: each begins its event log anew.
            if preview:
                run.follow("preview", "--stack", self.stack.name)
            try:
                return run.follow("up", "--yes", "--skip-preview", "--stack", self.stack.name).changes
            finally:
                self._read(run)

    def _read(self, run: Run) -> None:
        shown = run("stack", "output", "--json", "--show-secrets", "--stack", self.stack.name)
        self.outputs = json.loads(shown or "{}")
        state = json.loads(run("stack", "export", "--stack", self.stack.name))
        self.resources = [_made(resource) for resource in (state.get("deployment") or {}).get("resources", [])]


def up(
    folder: Path,
    *,
    stack: str,
    config: Mapping[str, Any],
    state: Path,
    endpoint: str,
    token: str,
    progress: Progress | None = None,
    attached: str = "",
) -> EngineDeployment:
    """Bring a project up in a lab with the real engine.

    Args:
        folder: Holds Pulumi.yaml and the program. Nothing in it is changed.
        stack: Name of the stack.
        config: The stack's configuration, instead of what its file says.
        state: Folder for the CLI's files and the stack's state; made if it is not there.
        endpoint: The lab's front door.
        token: Its token.
        progress: Gets a line for each thing that happens.
        attached: Stand-ins that run already, see `Stack`.

    Raises:
        DeploymentError: If the program fails, inputs are refused, or the lab refuses a resource. Its `deployment` can
            be destroyed.
    """
    driven = Stack(folder, stack, state.resolve(), endpoint, token, one_by_one(progress), attached)
    driven.configure(config)
    deployment = EngineDeployment(driven)
    try:
        deployment.update()
    except DeploymentError as error:
        raise DeploymentError(str(error), deployment if deployment.resources else None) from error
    return deployment


def _made(resource: Mapping[str, Any]) -> Made:
    inputs = {key: value for key, value in (resource.get("inputs") or {}).items() if key != DEFAULTS}
    return Made(
        urn=resource["urn"],
        type=resource["type"],
        name=resource["urn"].rsplit("::", 1)[-1],
        id=resource.get("id", ""),
        inputs=inputs,
        outputs=resource.get("outputs") or {},
        needs=frozenset(resource.get("dependencies") or ()),
    )

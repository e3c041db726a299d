"""The repository's own Pulumi program, run against the lab by the real engine or in-process."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from multinic.lab.client import Lab
from multinic.lab.errors import LabError
from multinic.lab.pulumi import cli, engine, in_process
from multinic.lab.pulumi.deployment import Deployment

Say = Callable[[str], None]
Config = Mapping[str, Any]
PROJECT_NAME = "multinic"
ENGINES = ("auto", "pulumi", "in-process")


@dataclass(frozen=True)
class Program:
    """A Pulumi project on disk and what runs it.

    Attributes:
        folder: Holds Pulumi.yaml, the stack's file and `__main__.py`.
        stack: The stack whose file is read.
        pulumi: The CLI; None runs the program in-process.
    """

    folder: Path
    stack: str
    pulumi: Path | None

    @property
    def title(self) -> str:
        """What runs it, for people."""
        return "the real Pulumi engine" if self.pulumi else "the Pulumi SDK in-process, without the CLI"

    def config(self, router: Mapping[str, Any], zones: int | None = None) -> dict[str, Any]:
        """The stack file's configuration with some of the router's inputs replaced.

        Args:
            router: Laid over ``multinic:router``, level by level.
            zones: Keep the first so many of ``multinic:zones``.

        Raises:
            LabError: There are fewer zones.
        """
        path = self.folder / f"Pulumi.{self.stack}.yaml"
        try:
            config: dict[str, Any] = dict(yaml.safe_load(path.read_text())["config"])
        except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
            raise LabError(f"{path.name} cannot be read ({error}); run this in a clone of the repository") from None
        if router:
            config["multinic:router"] = merged(config.get("multinic:router", {}), router)
        if zones is not None:
            known = config.get("multinic:zones", [])
            if zones > len(known):
                raise LabError(f"ZONES={zones}: multinic:zones in {path.name} lists {len(known)} zones; add some there")
            config["multinic:zones"] = known[:zones]
        return config

    def check(self, config: Mapping[str, Any]) -> None:
        """Judges the configuration before anything is started.

        Raises:
            LabError: It cannot be used; every problem with its path and cure.
        """
        in_process.check(self._declare, project=PROJECT_NAME, stack=self.stack, config=config)

    def up(self, lab: Lab, config: Mapping[str, Any], say: Say) -> Deployment:
        """Brings the program up in the lab.

        Raises:
            LabError: It failed; the text is for people.
        """
        if self.pulumi:
            return engine.up(
                self.folder,
                stack=self.stack,
                config=config,
                state=lab.folder / "pulumi",
                endpoint=lab.endpoint,
                token=lab.token,
                progress=say,
            )
        return in_process.up(
            self._declare,
            project=PROJECT_NAME,
            stack=self.stack,
            config=config,
            endpoint=lab.endpoint,
            token=lab.token,
            progress=say,
        )

    def update(self, deployment: Deployment, config: Config, say: Say) -> None:
        """Runs the program again on what it made, with another configuration.

        Raises:
            LabError: It failed, or it was not the real engine that made it.
        """
        if not isinstance(deployment, engine.EngineDeployment):
            raise LabError("only the real Pulumi engine can run a program a second time; `make pulumi` builds one")
        deployment.stack.say = say
        deployment.update(config, preview=False)

    def down(self, deployment: Deployment, say: Say) -> None:
        """Deletes what was made.

        Raises:
            LabError: Something could not be deleted.
        """
        deployment.destroy(say)

    def _declare(self) -> None:
        runpy.run_path(str(self.folder / "__main__.py"), run_name="__main__")


def choose(engine_name: str, folder: Path | None = None, stack: str = "dev") -> Program:
    """Picks what runs the program: with ``auto`` the real engine if there is one.

    Raises:
        LabError: The engine that was asked for is not there.
    """
    if engine_name not in ENGINES:
        raise LabError(f"--engine {engine_name}: must be one of {', '.join(ENGINES)}")
    found = None if engine_name == "in-process" else cli.find()
    if engine_name == "pulumi" and not found:
        raise LabError("--engine pulumi: no Pulumi CLI is on PATH or in the cache; `make pulumi` builds one")
    return Program(folder or Path.cwd(), stack, found)


def merged(base: Config, over: Config) -> dict[str, Any]:
    """One configuration laid over another, level by level."""
    found = dict(base)
    for key, value in over.items():
        old = found.get(key)
        found[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return found

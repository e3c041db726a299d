"""A stack of the project that was brought up in the lab: its configuration now, and what it made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from multinic.lab.client import Lab
from multinic.lab.pulumi.deployment import Deployment
from multinic.lab.scenarios.program import Config, Program, Say, merged


@dataclass
class DeployedStack:
    """One stack.

    Attributes:
        program: What declared it.
        config: Its configuration now.
        deployment: What was made.
    """

    program: Program
    config: Config
    deployment: Deployment

    @classmethod
    def up(cls, lab: Lab, program: Program, config: Config, say: Say) -> Self:
        """Brings a stack up.

        Raises:
            LabError: It failed; the text is for people.
        """
        return cls(program, config, program.up(lab, config, say))

    @property
    def outputs(self) -> dict[str, Any]:
        """What it exports."""
        return self.deployment.outputs

    def update(self, over: Config, say: Say) -> None:
        """Runs the program again with something laid over its configuration: `pulumi up`.

        Raises:
            LabError: It failed, or it was not the real engine that made the stack.
        """
        self.config = merged(self.config, over)
        self.program.update(self.deployment, self.config, say)

    def down(self, say: Say) -> None:
        """Deletes what was made: `pulumi destroy`.

        Raises:
            LabError: Something could not be deleted.
        """
        self.program.down(self.deployment, say)

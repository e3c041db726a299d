"""Brings up what scenarios run on: the `dev` stack, or the stacks of two regions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from multinic.lab.client import Lab
from multinic.lab.scenarios.deployed import DeployedStack
from multinic.lab.scenarios.program import Config, Program, Say, merged
from multinic.lab.scenarios.stage import Stage

REGIONS = ("us-west1", "us-east1")
"""Each has a stack of its name in the repository (`Pulumi.REGION.yaml`)."""


@dataclass(frozen=True)
class Planned:
    """A stack to bring up.

    Attributes:
        name: Of the stack.
        program: What declares it.
        config: Its configuration.
    """

    name: str
    program: Program
    config: Config


def dev(program: Program, router: Config, over: Config) -> list[Planned]:
    """The `dev` stack.

    Args:
        program: The repository's program.
        router: Laid over ``multinic:router``.
        over: Laid over the whole configuration.

    Raises:
        LabError: Its file cannot be read.
    """
    return [Planned(program.stack, program, merged(program.config(router), over))]


def regions(program: Program, router: Config) -> list[Planned]:
    """Networks, a router in each of two regions, and a client and a server in each.

    Args:
        program: The repository's program.
        router: Laid over ``multinic:router`` of the region stacks.

    Raises:
        LabError: A file of theirs cannot be read.
    """

    def of(file: str, name: str, over: Config, router: Config) -> Planned:
        config = replace(program, stack=file).config(router)
        return Planned(name, replace(program, stack=name), merged(config, over))

    west, east = REGIONS
    # The one that names the other comes second: a stack that is not there cannot be read.
    routers = [of(region, region, {}, router) for region in (east, west)]
    ends = [
        of(
            "endpoints",
            f"endpoints-{region}",
            {"gcp:region": region, "multinic:endpoints": {"zones": [f"{region}-b"]}},
            {},
        )
        for region in (west, east)
    ]
    return [of("networks", "networks", {}, {}), *routers, *ends]


@contextmanager
def brought_up(lab: Lab, stacks: Sequence[Planned], boot_delay: float, say: Say) -> Iterator[tuple[Stage, float]]:
    """Stacks with serving fleets, and how long it took until they served; they are taken down in the end.

    After an error they are not: the lab, whose end takes them away, is what ends then.

    Raises:
        LabError: A program failed, or the routers do not serve.
    """
    began = time.monotonic()
    stage = Stage(lab, {}, boot_delay, say)
    try:
        _bring_up(stage, stacks)
        yield stage, round(time.monotonic() - began, 2)
    finally:
        stage.end_load()
    say("taking the fleet down")
    for name in reversed(list(stage.stacks)):
        stage.stacks.pop(name).down(say)


def _bring_up(stage: Stage, stacks: Sequence[Planned]) -> None:
    say, began = stage.say, time.monotonic()
    for stack in stacks:
        if len(stacks) > 1:
            say(f"stack {stack.name}")
        stage.stacks[stack.name] = DeployedStack.up(stage.lab, stack.program, stack.config, say)
    say("waiting until all routers serve")
    fleet = stage.wait_until_serving()
    say(f"{len(fleet)} routers serve, {time.monotonic() - began:.1f} s after the program began")

"""Which fleet is meant: the options of the command line, else the outputs of the current Pulumi stack."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from multinic.operate import links
from multinic.operate.door import LAB_PROJECT, Door
from multinic.operate.errors import OperateError, WordError

_PROJECT_VARIABLES = ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT")
PULUMI_SECONDS = 120.0


@dataclass(frozen=True)
class Where:
    """Which fleet is meant.

    Attributes:
        door: Where the APIs answer.
        project: Project of the fleet.
        region: Region of the fleet.
        services: Backend services of the stack's router, as ``projects/…`` paths; empty without a stack.
        fleet: Name of the fleet, where a region has several; empty for the only one.
        stack: Name of the stack that was read, for people.
    """

    door: Door
    project: str
    region: str
    services: tuple[str, ...] = ()
    fleet: str = ""
    stack: str = ""


def find(
    project: str = "",
    region: str = "",
    stack: str = "",
    fleet: str = "",
    environment: Mapping[str, str] = os.environ,
) -> Where:
    """Finds out which fleet is meant.

    With a region, and no stack, Pulumi is not asked: the project is then the given one or the environment's.

    Args:
        project: Project of the fleet.
        region: Region of the fleet.
        stack: Stack whose outputs are read; the selected one by default.
        fleet: Name of one of several fleets.
        environment: Where a lab and a project may be named.

    Raises:
        OperateError: It cannot be found out; says what to give.
        WordError: Stack, project and region do not go together.
    """
    door = Door.of(environment)
    known = project or next((environment[name] for name in _PROJECT_VARIABLES if environment.get(name)), "")
    known = known or (LAB_PROJECT if door.lab else "")
    if region and not stack:
        if not known:
            raise OperateError("--region alone names no project: give --project too, or set GOOGLE_CLOUD_PROJECT")
        return Where(door, known, region, fleet=fleet)
    outputs = read_outputs(stack, environment)
    title = f"stack {stack}" if stack else "the selected stack"
    services = outputs.get("backend_services")
    if not isinstance(services, list) or not services or not isinstance(outputs.get("region"), str):
        raise OperateError(
            f"{title} is not a router's: it has no outputs backend_services and region; "
            "choose a dev or region stack with --stack, or give --project and --region"
        )
    paths = tuple(links.path(str(one)) for one in services)
    theirs = links.project(paths[0])
    if project and project != theirs:
        raise WordError(f"{title} is in project {theirs}, not in {project}: leave --project out, or --stack")
    if region and region != outputs["region"]:
        raise WordError(f"{title} is in {outputs['region']}, not in {region}: leave --region out, or --stack")
    return Where(door, theirs, outputs["region"], paths if not fleet else (), fleet, stack or "selected")


def read_outputs(stack: str, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Reads a stack's outputs by the Pulumi CLI, in the current folder.

    Raises:
        OperateError: There is no CLI, no project here, or no such stack.
    """
    program = shutil.which("pulumi", path=environment.get("PATH"))
    instead = "or give --project and --region"
    if program is None:
        raise OperateError(
            f"no fleet is named and there is no `pulumi` on PATH to ask for the stack's outputs: {instead}"
        )
    command = [program, "stack", "output", "--json", "--non-interactive", *(["--stack", stack] if stack else [])]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PULUMI_SECONDS, env=dict(environment), check=False
        )
    except subprocess.TimeoutExpired:
        raise OperateError(f"`pulumi stack output` did not answer in {PULUMI_SECONDS:.0f} s; {instead}") from None
    if done.returncode != 0:
        said = next((line.strip() for line in done.stderr.splitlines() if line.strip()), "it failed")
        raise OperateError(f"pulumi says: {said.removeprefix('error: ')}; choose a stack with --stack, {instead}")
    try:
        outputs = json.loads(done.stdout or "{}")
    except ValueError:
        outputs = None
    if not isinstance(outputs, dict):
        raise OperateError(f"`pulumi stack output --json` printed no JSON object; {instead}")
    return outputs

"""What `multinic lab env` prints makes plain `pulumi` commands work on the lab, from any folder."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from multinic.lab.pulumi.environment import environment
from tests.engine.conftest import DEADLINE_S, Project, RunningLab

pytestmark = [pytest.mark.engine, pytest.mark.slow]

PROGRAM = """
    first = c.Network("first", name="first", mtu=1460, auto_create_subnetworks=False)
    pulumi.export("mtu", first.mtu)
"""


def test_plain_pulumi_commands(project: Project, lab: RunningLab) -> None:
    settings = dict(os.environ) | environment(lab.endpoint, lab.token, lab.folder)
    assert (
        environment(lab.endpoint, lab.token, lab.folder)["PULUMI_DEBUG_PROVIDERS"] == settings["PULUMI_DEBUG_PROVIDERS"]
    )
    project.write(PROGRAM)

    def pulumi(*arguments: str) -> str:
        done = subprocess.run(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=project.folder,
            env=settings,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    pulumi("stack", "init", "plain")
    pulumi("config", "set", "gcp:project", "lab")
    planned = json.loads(pulumi("preview", "--json"))
    assert planned["changeSummary"] == {"create": 2}
    assert lab.rest.pages("projects/lab/global/networks", filter="name=first") == []

    lab.rest.run(
        "POST", "projects/lab/global/networks", {"name": "by-hand", "autoCreateSubnetworks": False}, float("inf")
    )
    pulumi("up", "--yes", "--skip-preview")
    assert pulumi("stack", "output", "mtu").strip() == "1460"
    link = "projects/lab/global/networks/by-hand"
    shown = pulumi("import", "gcp:compute/network:Network", "second", link, "--yes", "--protect=false")
    assert '#   resource second "gcp:compute/network:Network" {' in shown
    state = json.loads(pulumi("stack", "export"))["deployment"]["resources"]
    (imported,) = [resource for resource in state if resource["urn"].endswith("::second")]
    assert imported["inputs"]["name"] == "by-hand" and imported["inputs"]["autoCreateSubnetworks"] is False
    pulumi("refresh", "--yes", "--expect-no-changes")
    pulumi("destroy", "--yes", "--skip-preview")
    assert lab.rest.pages("projects/lab/global/networks", filter="name=by-hand") == []


def test_the_stand_ins_end_with_the_lab(lab: RunningLab) -> None:
    environment(lab.endpoint, lab.token, lab.folder)
    pid = json.loads((lab.folder / "providers.json").read_text())["pid"]
    daemon = json.loads((lab.folder / "lab.json").read_text())["pid"]
    os.kill(daemon, 9)
    deadline = time.monotonic() + DEADLINE_S
    while _runs(pid):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _runs(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False

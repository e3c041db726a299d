"""What `multinic lab env` prints makes plain `pulumi` commands work on the lab, from any folder."""

from __future__ import annotations

import json
import os
import subprocess

import psutil
import pytest

from multinic.lab.pulumi.environment import environment
from multinic.lab.pulumi.values import UNKNOWN
from tests import processes
from tests.engine.conftest import DEADLINE_S, Project, RunningLab

pytestmark = [pytest.mark.engine, pytest.mark.slow]

PROGRAM = """
    first = c.Network("first", name="first", mtu=1460, auto_create_subnetworks=False)
    c.Subnetwork("inside", name="inside", network=first.id, region="us-central1", ip_cidr_range="10.3.0.0/24")
    pulumi.export("mtu", first.mtu)
"""
IMAGE = "projects/debian-cloud/global/images/debian-12-bookworm-v20260921"


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
    assert planned["changeSummary"] == {"create": 3}
    (inside,) = [step["newState"] for step in planned["steps"] if step["urn"].endswith("::inside")]
    # The network's id is not known before there is a network.
    assert inside["inputs"]["network"] == UNKNOWN
    assert lab.rest.pages("projects/lab/global/networks", filter="name=first") == []

    for name, auto in (("by-hand", False), ("another", True)):
        body = {"name": name, "autoCreateSubnetworks": auto}
        lab.rest.run("POST", "projects/lab/global/networks", body, float("inf"))
    vm = {
        "name": "vm",
        "machineType": "zones/us-central1-a/machineTypes/e2-small",
        "disks": [{"boot": True, "autoDelete": True, "initializeParams": {"sourceImage": IMAGE, "diskSizeGb": "20"}}],
        "networkInterfaces": [{"network": "global/networks/another"}],
    }
    lab.rest.run("POST", "projects/lab/zones/us-central1-a/instances", vm, float("inf"))
    pulumi("up", "--yes", "--skip-preview")
    assert pulumi("stack", "output", "mtu").strip() == "1460"
    link = "projects/lab/global/networks/by-hand"
    shown = pulumi("import", "gcp:compute/network:Network", "second", link, "--yes", "--protect=false")
    assert '#   resource second "gcp:compute/network:Network" {' in shown
    link = "projects/lab/zones/us-central1-a/instances/vm"
    pulumi("import", "gcp:compute/instance:Instance", "vm", link, "--yes", "--protect=false")
    state = json.loads(pulumi("stack", "export"))["deployment"]["resources"]
    machine, imported = (
        next(resource for resource in state if resource["urn"].endswith(f"::{name}")) for name in ("vm", "second")
    )
    # What its disk was made from is on the disk.
    params = machine["inputs"]["bootDisk"]["initializeParams"]
    assert params["size"] == 20 and params["image"].endswith(IMAGE)
    assert imported["inputs"]["name"] == "by-hand" and imported["inputs"]["autoCreateSubnetworks"] is False
    pulumi("refresh", "--yes", "--expect-no-changes")
    pulumi("destroy", "--yes", "--skip-preview")
    pulumi("destroy", "--yes", "--skip-preview")
    assert lab.rest.pages("projects/lab/zones/us-central1-a/instances") == []
    assert lab.rest.pages("projects/lab/global/networks", filter="name=by-hand") == []


def test_the_stand_ins_end_with_the_lab(lab: RunningLab) -> None:
    environment(lab.endpoint, lab.token, lab.folder)
    stand_ins = psutil.Process(json.loads((lab.folder / "providers.json").read_text())["pid"])
    daemon = json.loads((lab.folder / "lab.json").read_text())["pid"]
    os.kill(daemon, 9)
    assert processes.wait_for_end([stand_ins], DEADLINE_S) == []

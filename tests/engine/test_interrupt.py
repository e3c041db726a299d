"""Ctrl-C while the engine waits for a group: it ends soon, keeps what was made, and leaves no process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from multinic.lab.pulumi.engine import EngineDeployment, Stack
from tests.engine.conftest import REPOSITORY, Project
from tests.lab.pulumi.fake_api import FakeApi

pytestmark = pytest.mark.engine

DRIVER = """
import sys
from pathlib import Path
from multinic.lab.pulumi import engine
folder, state, endpoint = sys.argv[1:]
try:
    engine.up(Path(folder), stack="test", config={"gcp:project": "lab", "gcp:zone": "us-central1-a"},
              state=Path(state), endpoint=endpoint, token="t", progress=lambda line: print(line, flush=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_in_the_middle(project: Project, api: FakeApi) -> None:
    project.write("""
        net = c.Network("net", name="net", auto_create_subnetworks=False)
        c.InstanceGroupManager("fleet", name="fleet", base_instance_name="r", target_size=1, wait_for_instances=True,
            versions=[{"instance_template": "projects/lab/global/instanceTemplates/t"}],
            opts=pulumi.ResourceOptions(depends_on=[net]))
    """)
    api.group_status = {"isStable": False}
    command = [sys.executable, "-c", DRIVER, str(project.folder), str(project.state), api.endpoint]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY, start_new_session=True)
    try:
        assert driver.stdout is not None
        for line in driver.stdout:
            if line.strip() == "creating InstanceGroupManager fleet":
                break
        driver.send_signal(signal.SIGINT)
        rest = driver.stdout.read()
        assert driver.wait() == 0
        assert rest.strip().endswith("interrupted")
    finally:
        driver.kill()
        driver.wait()
        driver.stdout.close()
    assert _processes_that_mention(project.state) == []

    api.group_status = {"isStable": True}
    stack = Stack(project.folder, "test", project.state, api.endpoint, "t", lambda _line: None)
    EngineDeployment(stack).destroy()
    assert api.objects == {}


def _processes_that_mention(path: Path) -> list[str]:
    """Return the command lines of processes whose arguments or environment name a folder; ours is not one of them."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if os.fsencode(path) in text:
            found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found

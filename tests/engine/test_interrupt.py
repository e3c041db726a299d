"""Ctrl-C and a kill while the engine waits for a group: it ends, keeps what was made, and leaves no process."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from multinic.lab.pulumi.engine import EngineDeployment, Stack
from tests import processes
from tests.engine.conftest import DEADLINE_S, REPOSITORY, Project
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


PROGRAM = """
    net = c.Network("net", name="net", auto_create_subnetworks=False)
    c.InstanceGroupManager("fleet", name="fleet", base_instance_name="r", target_size=1, wait_for_instances=True,
        versions=[{"instance_template": "projects/lab/global/instanceTemplates/t"}],
        opts=pulumi.ResourceOptions(depends_on=[net]))
"""


@contextlib.contextmanager
def waiting_for_a_group(project: Project, api: FakeApi) -> Iterator[subprocess.Popen[str]]:
    """Run the driver in a process of its own until the engine waits for a group that never becomes stable."""
    project.write(PROGRAM)
    api.group_status = {"isStable": False}
    command = [sys.executable, "-c", DRIVER, str(project.folder), str(project.state), api.endpoint]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY, start_new_session=True)
    try:
        assert driver.stdout is not None
        for line in driver.stdout:
            if line.strip() == "creating InstanceGroupManager fleet":
                break
        yield driver
    finally:
        driver.kill()
        driver.wait()
        if driver.stdout:
            driver.stdout.close()


def test_ctrl_c_in_the_middle(project: Project, api: FakeApi) -> None:
    with waiting_for_a_group(project, api) as driver:
        driver.send_signal(signal.SIGINT)
        assert driver.stdout is not None
        assert driver.stdout.read().strip().endswith("interrupted")
        assert driver.wait() == 0
    assert _left(project, api) == []

    api.group_status = {"isStable": True}
    stack = Stack(project.folder, "test", project.state, api.endpoint, "t", lambda _line: None)
    EngineDeployment(stack).destroy()
    assert api.objects == {}


def test_a_killed_driver_leaves_no_process(project: Project, api: FakeApi) -> None:
    with waiting_for_a_group(project, api) as driver:
        assert len(_left(project, api)) >= 4  # the driver, the engine, the language host, the stand-ins
        driver.kill()
    deadline = time.monotonic() + DEADLINE_S
    while _left(project, api):
        assert time.monotonic() < deadline, _left(project, api)
        time.sleep(0.1)


def _left(project: Project, api: FakeApi) -> list[str]:
    """The processes that know the state or the API."""
    return processes.mentioning(str(project.state), api.endpoint, environment=True)

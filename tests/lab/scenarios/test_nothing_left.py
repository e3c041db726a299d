"""However demo and scenarios end, and at whatever moment, nothing of them is left on the machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from multinic.lab.remains import record_of
from tests import processes

ROOT = Path(__file__).parents[3]
PATIENCE = 120.0
"""Deadline for everything to be gone; an orderly end takes a few seconds."""


class Command:
    """`multinic lab demo`, or `multinic lab run` and its scenarios, in a state folder of its own."""

    def __init__(self, state: Path, words: str, engine: str) -> None:
        self.state, self.name = state, words.partition(" ")[0]
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        command = [sys.executable, "-m", "multinic", "lab", *words.split(), "--boot-delay", "0", "--engine", engine]
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port), "--report", str(state / "report")],
            cwd=ROOT,
            env={**os.environ, "XDG_STATE_HOME": str(state)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait_for(self, text: str) -> None:
        """Reads what it says until a line has this text."""
        assert self.process.stdout is not None
        said = []
        for line in self.process.stdout:
            said.append(line)
            if text in line:
                return
        pytest.fail(f"{self.name} ended without saying {text!r}:\n{''.join(said[-20:])}")

    def remains(self) -> list[str]:
        """What of it is still there: processes, mounts, control groups, files, the port."""
        mark = str(self.state)
        left = [f"process {line}" for line in processes.mentioning(mark)]
        left += [f"mount {line}" for line in Path("/proc/self/mountinfo").read_text().splitlines() if mark in line]
        left += [f"file {path}" for path in _files(self.state)]
        cgroup = record_of(self.state / "multinic" / "lab" / f"{self.name}-{self.port}").cgroup
        left += [f"control group {path}" for path in Path("/sys/fs/cgroup").glob(f"*/{cgroup}")]
        left += [f"control group {path}" for path in Path("/sys/fs/cgroup").glob(cgroup)]
        left += [f"namespace {line}" for line in _named_namespaces()]
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                left.append(f"port {self.port} still answers")
        return left


def _files(folder: Path) -> list[str]:
    return [str(Path(top) / name) for top, _, names in os.walk(folder) for name in names if "report" not in top]


def _named_namespaces() -> set[str]:
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False)
    return set(listed.stdout.split("\n")) - {""} - BEFORE


BEFORE = (
    set(subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout.split("\n"))
    if os.geteuid() == 0
    else set()
)


MOMENTS = (
    ("demo", "The program is run by", "in-process"),
    ("demo", "creating InstanceGroupManager", "in-process"),
    ("run drain", "streams ", "in-process"),
    ("run panic", "kernel panic", "in-process"),
    ("demo", "running pulumi up", "pulumi"),
)
"""What is run, what it says at the moment of its end, and the engine that it runs with."""


@pytest.mark.guests
@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("words", "moment", "engine", "how"),
    [
        pytest.param(*one, how, marks=[pytest.mark.engine] if one[-1] == "pulumi" else [])
        for one in MOMENTS
        for how in (signal.SIGINT, signal.SIGKILL)
    ]
    + [
        ("demo", "creating InstanceGroupManager", "in-process", signal.SIGTERM),
        pytest.param("run upgrade", "stack us-east1", "pulumi", signal.SIGTERM, marks=pytest.mark.engine),
    ],
)
def test_what_was_ended_leaves_nothing(
    tmp_path: Path, words: str, moment: str, engine: str, how: signal.Signals
) -> None:
    command = Command(tmp_path, words, engine)
    with command.process:
        try:
            command.wait_for(moment)
            command.process.send_signal(how)
            code = command.process.wait(PATIENCE)
        finally:
            command.process.kill()
        assert code == (-how if how is signal.SIGKILL else 130)
        deadline = time.monotonic() + PATIENCE
        while (left := command.remains()) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert not left

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from multinic.lab.pulumi import engine, providers
from multinic.lab.pulumi.engine import Stack
from multinic.lab.pulumi.rest import Rest
from tests.lab.pulumi.conftest import HAVE_RECORDING
from tests.lab.pulumi.fake_api import FakeApi
from tests.plugin.host import PLUGIN

REPOSITORY = Path(__file__).parents[2]
DEADLINE_S = 120.0


@pytest.fixture
def api() -> Iterator[FakeApi]:
    fake = FakeApi()
    yield fake
    fake.close()


@dataclass(frozen=True)
class RunningLab:
    endpoint: str
    token: str
    folder: Path
    rest: Rest


@contextmanager
def daemon(folder: Path, module: str = "multinic.lab.daemon") -> Iterator[RunningLab]:
    """Runs a lab without guests by a module with the daemon's command line; where one was, with its objects."""
    folder.mkdir(exist_ok=True)
    (folder / "lab.json").unlink(missing_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", module, "--folder", str(folder), "--port", str(port), "--no-guests"]
    with (folder / "out").open("w") as out:
        # It ends when its standard input does, so nothing is left even if these tests are killed.
        daemon = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out, cwd=REPOSITORY)
    try:
        described = folder / "lab.json"
        deadline = time.monotonic() + DEADLINE_S
        while not described.exists() or not described.read_text():
            assert daemon.poll() is None and time.monotonic() < deadline, (folder / "out").read_text()
            time.sleep(0.05)
        found = json.loads(described.read_text())
        yield RunningLab(found["endpoint"], found["token"], folder, Rest(found["endpoint"], found["token"]))
    finally:
        assert daemon.stdin is not None
        daemon.stdin.close()
        try:
            daemon.wait(DEADLINE_S)
        finally:
            daemon.kill()
            daemon.wait()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[RunningLab]:
    """The lab's real daemon, without guests."""
    with daemon(tmp_path / "lab") as running:
        yield running


@pytest.fixture
def answering_lab(tmp_path: Path) -> Iterator[RunningLab]:
    """The same, with routers that answer probes; see `answering_daemon`."""
    with daemon(tmp_path / "lab", "tests.engine.answering_daemon") as running:
        yield running


@dataclass
class Project:
    """A Pulumi project in a temporary folder, and what the engine said about it."""

    folder: Path
    state: Path
    said: list[str] = field(default_factory=list)
    running: ExitStack = field(default_factory=ExitStack)
    attached: dict[str, str] = field(default_factory=dict)

    def stand_ins(self, lab: Any) -> str:
        """The stand-ins for a lab, the same for all commands of a test: starting them takes a second."""
        if lab.endpoint not in self.attached:
            context = providers.running(lab.endpoint, getattr(lab, "token", "t"))
            self.attached[lab.endpoint] = self.running.enter_context(context)
        return self.attached[lab.endpoint]

    def stack(self, lab: Any, name: str = "test", folder: Path | None = None) -> Stack:
        """A stack that is not up yet, of this project or of another folder's."""
        where = folder or self.folder
        token = getattr(lab, "token", "t")
        return Stack(where, name, self.state, lab.endpoint, token, self.said.append, self.stand_ins(lab))

    def write(self, program: str) -> None:
        head = "import pulumi\nimport pulumi_gcp as gcp\nc = gcp.compute\nconfig = pulumi.Config()\n"
        (self.folder / "__main__.py").write_text(head + textwrap.dedent(program))

    def up(self, lab: Any, **config: Any) -> engine.EngineDeployment:
        settings = {f"trial:{key}": value for key, value in config.items()}
        return engine.up(
            self.folder,
            stack="test",
            config={"gcp:project": "lab", "gcp:region": "us-central1", "gcp:zone": "us-central1-a"} | settings,
            state=self.state,
            endpoint=lab.endpoint,
            token=getattr(lab, "token", "t"),
            progress=self.said.append,
            attached=self.stand_ins(lab),
        )

    def config(self, **config: Any) -> dict[str, Any]:
        base = {"gcp:project": "lab", "gcp:region": "us-central1", "gcp:zone": "us-central1-a"}
        return base | {f"trial:{key}": value for key, value in config.items()}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: trial\nruntime: python\n")
    made = Project(folder, tmp_path / "state")
    with made.running:
        yield made


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts the plugin where the engine looks for one, as a command that starts its host's file."""
    command = tmp_path / "bin" / "pulumi-resource-multinic"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} {PLUGIN / "__main__.py"} "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(command.parent), prepend=os.pathsep)


def items(lab: RunningLab, path: str) -> list[dict[str, Any]]:
    return lab.rest.pages(f"projects/lab/{path}")


# The recording of the real plugin is not part of the repository.
collect_ignore = [] if HAVE_RECORDING else ["test_recorded_steps.py"]

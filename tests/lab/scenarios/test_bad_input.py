"""What a user can get wrong is told in a sentence that names the input and the cure, before anything is started."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT


def demo(cwd: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs `multinic lab demo` in a folder, with a state folder of its own."""
    environment = {**os.environ, "XDG_STATE_HOME": str(cwd / "state"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "multinic", "lab", "demo", "--engine", "in-process", *options]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the Pulumi project."""
    for name in ("Pulumi.yaml", "Pulumi.dev.yaml", "__main__.py"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "stacks", tmp_path / "stacks")
    return tmp_path


def assert_refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode not in (0, 130), done.stdout
    assert "Traceback" not in done.stderr + done.stdout
    for word in words:
        assert word in done.stderr


def test_no_zones(project: Path) -> None:
    assert_refused(demo(project, "--zones", "0"), "multinic:zones", "is empty", "give at least one zone")
    assert not (project / "state").exists()


def test_more_zones_than_the_stack_has(project: Path) -> None:
    assert_refused(demo(project, "--zones", "9"), "ZONES=9", "Pulumi.dev.yaml", "add some there")


def test_overlapping_networks(project: Path) -> None:
    stack = project / "Pulumi.dev.yaml"
    stack.write_text(stack.read_text().replace("10.20.0.0/24", "10.10.0.128/25"))
    assert_refused(demo(project), "multinic:networks[1].cidr", "10.10.0.128/25 overlaps 10.10.0.0/24")
    assert not (project / "state").exists()


def test_all_problems_are_told_at_once(project: Path) -> None:
    stack = project / "Pulumi.dev.yaml"
    stack.write_text(stack.read_text().replace("machine:", "machin:").replace("10.20.0.0/24", "10.20.0.5/24"))
    assert_refused(demo(project), "multinic:router.machin", "did you mean", "10.20.0.5/24 has host bits set")


def test_a_stack_file_that_is_no_yaml(project: Path) -> None:
    (project / "Pulumi.dev.yaml").write_text("config: [")
    assert_refused(demo(project), "Pulumi.dev.yaml cannot be read")


def test_a_folder_without_a_project(tmp_path: Path) -> None:
    assert_refused(demo(tmp_path), "Pulumi.dev.yaml cannot be read", "clone of the repository")


def test_a_port_in_use(project: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert_refused(demo(project, "--port", str(port)), f"port {port}", "is in use", "PORT=")
    assert not (project / "state").exists()

"""`multinic --help` loads nothing heavy and is quick; completion never fails; missing packages are told in a line."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "google",
    "http.client",
    "pulumi",
    "pulumi_gcp",
    "requests",
    "matplotlib",
    "starlette",
    "uvicorn",
    "rich.console",
)
LOADED = """
import sys
from pathlib import Path
sys.argv = ["multinic", "--help"]
from multinic.cli import main
try:
    main()
except SystemExit:
    pass
print(*sys.modules, file=sys.stderr)
"""


def test_help_loads_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert "rolling-update" in done.stdout
    assert set(HEAVY).isdisjoint(done.stderr.split())


def seconds(*command: str) -> float:
    """CPU time of a program: unlike time itself, other work on the machine hardly adds to it."""
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], capture_output=True, check=True)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime


def test_help_takes_at_most_twice_as_long_as_python_and_typer() -> None:
    # By turns, so that both have the same machine.
    rounds = [
        seconds("-m", "multinic", "--help") / (seconds("-c", "pass") + seconds("-c", "import typer")) for _ in range(7)
    ]
    assert statistics.median(rounds) <= 2, rounds


def complete(words: str, count: int, home: str) -> str:
    environment = {"PATH": "/usr/bin:/bin", "HOME": home, "_MULTINIC_COMPLETE": "complete_bash"}
    environment |= {"COMP_WORDS": words, "COMP_CWORD": str(count)}
    command = [sys.executable, "-c", "import sys; sys.argv = ['multinic']; from multinic.cli import main; main()"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=home)
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout.strip()


def test_completion_knows_the_commands_and_is_silent_without_a_fleet(tmp_path: Path) -> None:
    assert complete("multinic rol", 1, str(tmp_path)) == "rolling-update"
    assert complete("multinic drain ", 2, str(tmp_path)) == ""


@pytest.mark.parametrize(
    ("missing", "words"),
    [("typer", "--help"), ("uvicorn", "lab up --no-guests"), ("google.auth", "status --project p --region us-west1")],
)
def test_missing_packages_are_told_in_one_sentence(missing: str, words: str, tmp_path: Path) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; sys.argv = ['multinic', *{words.split()!r}]\n"
    code += "from multinic.cli import main; main()"
    environment = os.environ | {"HOME": str(tmp_path), "PYTHONPATH": str(Path.cwd())}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "pip install '.[" in done.stderr

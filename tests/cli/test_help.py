"""`multinic --help` loads nothing heavy and does little; completion never fails; missing packages are told shortly."""

from __future__ import annotations

import os
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
COUNTED = """
import contextlib, sys
count = 0
def note(frame, event, argument):
    global count
    count += event in ("call", "c_call")
sys.setprofile(note)
with contextlib.suppress(SystemExit):
    exec(sys.argv[1])
sys.setprofile(None)
print(count, file=sys.stderr)
"""


def test_help_loads_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert "rolling-update" in done.stdout
    assert set(HEAVY).isdisjoint(done.stderr.split())


def calls(code: str) -> int:
    """Functions that a program calls: its work, counted where time would be that of the whole machine."""
    command = [sys.executable, "-c", COUNTED, code]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stderr)


def test_help_works_little_more_than_typer_itself() -> None:
    """In time it is twice as long as Python and Typer at most: `make library-benchmark`."""
    plain = "import typer; app = typer.Typer(rich_markup_mode=None); app.command()(lambda: None)"
    ours = "import sys; sys.argv = ['multinic', '--help']; from multinic.cli import main"
    assert calls(f"{ours}; main()") <= 3 * calls(f"{plain}; app(['--help'])")


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

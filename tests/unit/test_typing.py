"""Type checkers accept good uses of the library, and refuse bad ones on the very lines."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import node
from tests.unit.conftest import REPOSITORY

CASES = Path(__file__).parent / "typing_cases"


def output(*command: str) -> str:
    done = subprocess.run([sys.executable, "-m", *command], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 2 is a checker that could not check
    return done.stdout


def mypy(file: Path) -> set[int]:
    # With the repository's own settings, so that what `make lint` has cached of the SDK serves here too.
    said = output("mypy", "--no-error-summary", "--hide-error-context", str(file))
    return {int(line) for line in re.findall(rf"{re.escape(file.name)}:(\d+): error:", said)}


def pyright(file: Path) -> set[int]:
    checker = str(node.packages() / "pyright" / "index.js")
    command = ["node", checker, "--pythonpath", sys.executable, "--outputjson", str(file)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = [one for one in json.loads(done.stdout)["generalDiagnostics"] if one["severity"] == "error"]
    return {one["range"]["start"]["line"] + 1 for one in found}


def refused(file: Path) -> set[int]:
    return {number for number, line in enumerate(file.read_text().splitlines(), 1) if "# refused: " in line}


# Without a cache mypy reads all of the SDK, which takes more than a minute.
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "checker", [mypy, pytest.param(pyright, marks=pytest.mark.node)], ids=lambda checker: checker.__name__
)
@pytest.mark.parametrize("name", ["good", "bad"])
def test_checkers_refuse_exactly_the_lines_that_say_so(checker: Callable[[Path], set[int]], name: str) -> None:
    file = CASES / f"{name}.py"
    assert checker(file) == refused(file)


def test_canary_there_are_good_and_bad_cases() -> None:
    assert refused(CASES / "good.py") == set()
    assert len(refused(CASES / "bad.py")) > 10


def test_the_package_says_that_it_is_typed() -> None:
    assert (REPOSITORY / "multinic" / "py.typed").is_file()

"""Where set-up cannot go on, it says in one sentence what is missing and how to get it, and changes nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests import processes
from tests.unit.conftest import REPOSITORY


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What set-up reads, in a folder of its own."""
    for name in ("pyproject.toml", "requirements.txt"):
        shutil.copy(REPOSITORY / name, tmp_path)
    shutil.copytree(REPOSITORY / "tools", tmp_path / "tools")
    return tmp_path


def setup(clone: Path, *, shadow: dict[str, str] | None = None, **environment: str) -> str:
    """Runs set-up, which must fail; `shadow` puts programs of these texts before those of the machine.

    Returns:
        What it said.
    """
    programs = clone / "programs"
    programs.mkdir()
    for name, text in (shadow or {}).items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    done = subprocess.run(
        ["tools/setup.sh"],
        cwd=clone,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHON": sys.executable, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert not (clone / ".venv").exists()
    return done.stderr


def test_no_python(clone: Path) -> None:
    said = setup(clone, PYTHON="/nowhere/python3")
    assert said == (
        "setup: Python is missing; install Python 3.11 or newer (Debian: apt-get install python3), "
        "or name one: make PYTHON=/path/to/python3\n"
    )


def test_python_too_old(clone: Path) -> None:
    old = 'case "$1" in -c) exit 1;; --version) echo Python 3.9.2;; esac'
    said = setup(clone, shadow={"oldpython": old}, PYTHON="oldpython")
    assert said.startswith("setup: Python 3.9.2 is too old; 3.11 or newer is needed.")


def test_no_disk_space(clone: Path) -> None:
    full = 'printf "Filesystem 1M-blocks Used Available Use%% Mounted\\n/dev/x 9 8 1 99%% /\\n"'
    said = setup(clone, shadow={"df": full})
    assert "only 1 MB are free" in said
    assert "3000 MB are needed" in said


def test_package_index_not_reachable(clone: Path) -> None:
    nowhere = "http://127.0.0.1:9/"
    said = setup(clone, PIP_INDEX_URL=nowhere, PIP_FIND_LINKS="", PIP_RETRIES="0", PIP_NO_CACHE_DIR="1")
    assert said.startswith("setup: the Python package index does not answer")
    assert "check the network or pip's configuration" in said


@pytest.mark.root
def test_debian_mirror_not_reachable(clone: Path) -> None:
    shadow = {
        "dpkg-query": "exit 1",
        "apt-get": "echo \"'http://127.0.0.1:9/debian/dists/x/InRelease' x_InRelease 0\"",
    }
    script = clone / "tools" / "setup.sh"
    script.write_text(
        script.read_text().replace("/usr/bin/dpkg-query", "/bin/sh").replace("/usr/bin/apt-get", "/bin/sh")
    )
    said = setup(clone, shadow=shadow)
    assert "the Debian mirror http://127.0.0.1:9/debian/dists/x/InRelease does not answer" in said


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_an_ended_setup_leaves_no_process(clone: Path, how: signal.Signals) -> None:
    began = clone / "began"
    python = clone / "python"
    # Passes every check, and then makes the virtual environment for ever.
    python.write_text(
        f"""#!/bin/sh
case "$*" in
  "-m venv .venv") echo $$ >{began}.new; mv {began}.new {began}; exec sleep 1000;;
  "-m pip --version") exit 1;;
esac
exit 0
"""
    )
    python.chmod(0o755)
    environment = {**os.environ, "PYTHON": str(python), "PATH": f"{clone}:{os.environ['PATH']}"}
    query = clone / "dpkg-query"
    query.write_text("#!/bin/sh\necho install ok installed\n")
    query.chmod(0o755)
    with subprocess.Popen(["tools/setup.sh"], cwd=clone, env=environment, stdout=subprocess.DEVNULL) as process:
        while not began.exists():
            assert process.poll() is None
            time.sleep(0.05)
        maker = psutil.Process(int(began.read_text()))
        process.send_signal(how)
        assert process.wait(60) != 0
    assert processes.wait_for_end([maker], 60) == []

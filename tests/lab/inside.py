"""Runs an async check of a test file inside of a lab's own namespaces, where it may make whatever it likes.

The supervisor is the one of the lab: whatever a check leaves, or dies of, is gone afterwards.
"""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
Check = Callable[[Path], Awaitable[None]]


def run_inside(check: Check, folder: Path, *, timeout: float = 120) -> None:
    """Runs `check(folder)`, which must be a function of its module, and fails with its traceback if it raises."""
    command = [
        *(sys.executable, "-m", "multinic.lab.supervisor", "--ephemeral", "--folder", str(folder / "lab"), "--"),
        *(sys.executable, __file__, str(sys.modules[check.__module__].__file__), check.__name__, str(folder / "lab")),
    ]
    with (folder / "output").open("w+b") as output:
        # The pipe is the lab's life: it ends with this test, however that ends.
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output, cwd=REPOSITORY)
        try:
            code = process.wait(timeout)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60)
        if code != 0:
            output.seek(0)
            pytest.fail(f"{check.__name__}:\n{output.read().decode(errors='replace')[-20000:]}", pytrace=False)


def main() -> None:
    file, name, folder = sys.argv[1:]
    sys.path.insert(0, str(REPOSITORY))
    spec = importlib.util.spec_from_file_location("checked", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["checked"] = module
    spec.loader.exec_module(module)
    try:
        asyncio.run(getattr(module, name)(Path(folder)))
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        sys.exit(1)


if __name__ == "__main__":
    main()

"""The plugin's host process, as the engine starts it: by its file, with the engine's address."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.unit.conftest import REPOSITORY

PLUGIN = REPOSITORY / "plugin"
NO_ENGINE = "127.0.0.1:1"


@contextmanager
def running(log: Path, engine: str = NO_ENGINE) -> Iterator[int]:
    """Runs the host while the context lasts and yields its port; what it says on stderr goes to `log`."""
    with log.open("w") as said:
        host = subprocess.Popen(
            [sys.executable, str(PLUGIN / "__main__.py"), engine],
            cwd=PLUGIN,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
        try:
            assert host.stdout is not None
            line = host.stdout.readline()
            assert line.strip().isdigit(), f"the host ended with code {host.wait()}: {log.read_text()}"
            yield int(line)
        finally:
            host.kill()
            host.wait()
            assert host.stdout is not None
            host.stdout.close()

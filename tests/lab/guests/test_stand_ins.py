"""The stand-ins for Pulumi's plugins beside a lab with guests, whose daemon has a process number of its own."""

from __future__ import annotations

import json
from pathlib import Path

import psutil
import pytest

from multinic.lab.client import running
from multinic.lab.pulumi import providers
from tests.lab.test_daemon import free_port

pytestmark = pytest.mark.guests


def test_they_end_with_the_lab(tmp_path: Path) -> None:
    """They waited for the end of a kernel's thread, which had the daemon's number in the machine's own namespace."""
    folder = tmp_path / "lab"
    with running(folder, port=free_port(), guests=True, ephemeral=False) as lab:
        line = providers.beside(folder, lab.endpoint, lab.token)
        assert providers.beside(folder, lab.endpoint, lab.token) == line
        stand_ins = psutil.Process(json.loads((folder / "providers.json").read_text())["pid"])
        assert stand_ins.is_running()
    _, alive = psutil.wait_procs([stand_ins], timeout=60)
    assert not alive

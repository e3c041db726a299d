"""A port and a folder for each test's lab."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def free_port() -> int:
    """A port on 127.0.0.1 that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])

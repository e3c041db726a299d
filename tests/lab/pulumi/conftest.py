from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.pulumi.fake_api import FakeApi

_SHARED = Path(__file__).parents[4] / "shared"
RECORDED_PROGRAM = _SHARED / "prototypes" / "engine" / "recorded_program.py"
RECORDED_REQUESTS = _SHARED / "data" / "plugin-requests.json"
HAVE_RECORDING = RECORDED_PROGRAM.exists() and RECORDED_REQUESTS.exists()

# The recording is not part of the repository; our own fixtures, written after it, are checked everywhere.
collect_ignore = [] if HAVE_RECORDING else ["test_recorded_program.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not HAVE_RECORDING:
        terminalreporter.line(
            "not run: tests/lab/pulumi/test_recorded_program.py, which compares with the plugin's recording beside "
            "the repository; tests/lab/pulumi/test_requests.py has the same requests as fixtures"
        )


@pytest.fixture
def api() -> Iterator[FakeApi]:
    fake = FakeApi()
    yield fake
    fake.close()

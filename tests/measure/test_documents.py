"""The documents' outputs of commands that measure nothing are what the commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from multinic.cli.app import app
from multinic.measure.errors import MeasureError

DOCS = Path(__file__).parents[2] / "docs"
SHOWN = [
    (name, command, output)
    for name in ("mtu.md", "sizing.md")
    for command, output in re.findall(
        r"^```console\n\$ multinic (.*)\n((?:.*\n)*?)```$", (DOCS / name).read_text(), re.M
    )
    if command.startswith(("plan ", "mtu plan "))
]


def test_canary_outputs_are_found() -> None:
    assert len(SHOWN) >= 6


@pytest.mark.parametrize(("name", "command", "output"), SHOWN, ids=[command for _, command, _ in SHOWN])
def test_output_is_what_the_command_prints(name: str, command: str, output: str) -> None:
    result = CliRunner().invoke(app, shlex.split(command))
    if isinstance(result.exception, MeasureError):
        assert output.rstrip() == f"multinic: {result.exception}"
    else:
        assert output.rstrip() == result.output.rstrip()

"""The README's programs run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from multinic import testing
from tests.unit.conftest import REPOSITORY

README = (REPOSITORY / "README.md").read_text()
FENCES = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_the_program_declares_a_router_and_its_unit_test_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, unit_test = FENCES

    def run() -> None:
        exec(compile(program, "README.md", "exec"), {})

    declared = testing.run(run)
    assert len(declared.all("compute.InstanceGroupManager")) == 3
    # As a reader would: both texts in one folder.
    (tmp_path / "__main__.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(unit_test, "README.md", "exec"), names)
    names["test_routes"]()


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert len(links) > 10
    for link in links:
        assert (REPOSITORY / link).exists(), link

"""docs/reference.md is what the docstrings say, and the command that writes it sees everything public."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import multinic
from tests.unit.conftest import REPOSITORY


@pytest.fixture
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", REPOSITORY / "tools" / "reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_reference_is_up_to_date(reference: ModuleType) -> None:
    assert reference.main(["--check"]) == 0, "run `python tools/reference.py`"


def test_reference_has_every_public_name_and_every_input(reference: ModuleType) -> None:
    text = reference.write()
    for name in multinic.__all__:
        assert f"\n### {name}\n" in text
        for field in getattr(getattr(multinic, name), "__annotations__", {}) if name.endswith("Args") else ():
            assert f"| `{field}` |" in text.split(f"\n### {name}\n")[1].split("\n### ")[0], f"{name}.{field}"


def test_canary_an_old_reference_is_seen(
    reference: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reference, "TARGET", tmp_path / "reference.md")
    assert reference.main(["--check"]) == 1
    assert "not up to date" in capsys.readouterr().err
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0
    reference.TARGET.write_text(reference.TARGET.read_text() + "x")
    assert reference.main(["--check"]) == 1

"""Stored texts that tests compare with. `MULTINIC_UPDATE_SNAPSHOTS=1 pytest tests/unit` writes them anew."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "snapshots"


def cleaned(schema: Any) -> Any:
    """Returns a schema with its texts as Python 3.13 has docstrings: without the indentation of the source."""
    if isinstance(schema, list):
        return [cleaned(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    is_text = {key: key == "description" and isinstance(value, str) for key, value in schema.items()}
    return {key: inspect.cleandoc(value) if is_text[key] else cleaned(value) for key, value in schema.items()}


def compare(name: str, text: str) -> None:
    """Fails when a text is not what is stored under this name."""
    file = FOLDER / name
    if os.environ.get("MULTINIC_UPDATE_SNAPSHOTS") == "1":
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert file.is_file(), f"{name} is not stored yet: MULTINIC_UPDATE_SNAPSHOTS=1 pytest tests/unit"
    assert text == file.read_text(), (
        f"{name} has changed; if that is wanted: MULTINIC_UPDATE_SNAPSHOTS=1 pytest tests/unit"
    )

"""Stored texts that tests compare with. `MULTINIC_UPDATE_SNAPSHOTS=1 pytest tests/unit` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "snapshots"


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

"""Disks of machines that were deleted while the lab was down, and layers of the image that nobody uses any more."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from multinic.lab.guests import image
from multinic.lab.guests.linux import DISKS, LinuxSubstrate


def test_disks_of_machines_that_are_gone_go(tmp_path: Path) -> None:
    for number in ("11", "12", "13"):
        (tmp_path / DISKS / number / "upper").mkdir(parents=True)
    LinuxSubstrate.keep_only(cast(LinuxSubstrate, SimpleNamespace(_folder=tmp_path)), [12])
    assert [disk.name for disk in (tmp_path / DISKS).iterdir()] == ["12"]


def test_layers_that_no_lab_was_started_on_for_a_month_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "_bootstrap", lambda draft, *_: draft.mkdir())
    first = image.ensure(cache=tmp_path, release="bookworm")
    second = image.ensure(cache=tmp_path, release="trixie")
    old = time.time() - image.UNUSED_SECONDS - 60
    for layer in (*first.layers, *second.layers):
        os.utime(layer, (old, old))
    # One that is used again is not old, and nothing is removed but when something is built.
    assert image.ensure(cache=tmp_path, release="trixie") == second
    assert all(layer.is_dir() for layer in first.layers)
    third = image.ensure(cache=tmp_path, release="sid")
    kept = {*second.layers, *third.layers}
    assert {path for path in tmp_path.iterdir() if path.name != ".lock"} == kept

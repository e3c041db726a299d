"""The one limit of the host that a lab raises: while any lab runs, and no longer."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from multinic.lab import inotify, remains


@pytest.fixture
def limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for the kernel's file."""
    file = tmp_path / "max_user_instances"
    file.write_text("128\n")
    monkeypatch.setattr(inotify, "LIMIT", file)
    monkeypatch.setattr(inotify, "HELD", tmp_path / "held")
    return file


def test_it_is_raised_until_the_last_lab_has_ended(limit: Path) -> None:
    first, second = inotify.room(), inotify.room()
    first.__enter__()
    assert int(limit.read_text()) == inotify.NEEDED
    second.__enter__()
    first.__exit__(None, None, None)
    assert int(limit.read_text()) == inotify.NEEDED, "the second one still runs"
    second.__exit__(None, None, None)
    assert int(limit.read_text()) == 128
    assert not inotify.HELD.exists()


@pytest.mark.parametrize("mend", ["clean", "another lab"])
def test_what_a_killed_lab_left_is_put_back(
    limit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mend: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    limit.write_text(f"{inotify.NEEDED}\n")
    inotify.HELD.write_text("128\n")
    if mend == "clean":
        remains.clean()
    else:
        with inotify.room():
            assert int(limit.read_text()) == inotify.NEEDED
    assert int(limit.read_text()) == 128
    assert not inotify.HELD.exists()


def test_two_that_start_together_note_the_same(limit: Path) -> None:
    with inotify.room(), inotify.HELD.open("a") as held:
        held.write("128\n")
    assert int(limit.read_text()) == 128


def test_clean_leaves_it_to_a_lab_that_runs(limit: Path) -> None:
    with inotify.room():
        inotify.restore()
        assert int(limit.read_text()) == inotify.NEEDED
        assert inotify.HELD.exists()


def test_a_higher_limit_stays(limit: Path) -> None:
    limit.write_text("100000\n")
    with inotify.room():
        assert limit.read_text() == "100000\n"
    assert limit.read_text() == "100000\n"


def test_a_machine_that_does_not_let_it_be_raised_runs_labs_all_the_same(
    limit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inotify, "LIMIT", limit.parent / "absent" / "limit")
    with inotify.room():
        pass
    assert not inotify.HELD.exists()
    with inotify.HELD.open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        inotify.restore()

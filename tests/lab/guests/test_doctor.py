"""What the doctor says where something is missing: a sentence and a cure."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from multinic.cli import lab as cli
from multinic.lab import inotify
from multinic.lab.guests import apt_sources, doctor, image


@pytest.mark.guests
def test_all_is_well_where_guests_run() -> None:
    assert [check for check in doctor.checks() if check.problem] == []
    assert doctor.why_no_guests() is None


def test_not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert doctor.why_no_guests() == "Guests need root: run it with sudo."
    assert [check.what for check in doctor.checks()] == ["Linux", "root"], "nothing more is tried"


def test_a_kernel_without_a_feature_is_told_by_its_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each trial fails as on a machine that lacks what it tries; what guests can do without does not stop them."""
    monkeypatch.setattr(doctor, "_ATTEMPTS", {**doctor._ATTEMPTS, **dict.fromkeys(doctor._GROUND, lambda: None)})
    monkeypatch.setattr(doctor, "_try", lambda script, text="": "Operation not supported")
    found = {check.what: check.problem for check in doctor.checks() if check.problem}
    assert "nftables 1.0 or newer" in found["nftables"]
    assert "CONFIG_VETH" in found["veth"]
    assert "cgroup2 cannot be mounted" in found["cgroup2"]
    assert "XDG_STATE_HOME" in found["overlayfs"]
    assert "not capped here (Operation not supported)" in found["egress caps"]
    monkeypatch.setattr(doctor, "_ATTEMPTS", {"egress caps": lambda: "not capped"})
    assert doctor.why_no_guests() is None

    told = CliRunner().invoke(cli.app, ["doctor"])
    assert told.exit_code == 0 and "without egress caps" in told.output
    monkeypatch.setattr(doctor, "_ATTEMPTS", {"root": lambda: "Guests need root: run it with sudo."})
    told = CliRunner().invoke(cli.app, ["doctor"])
    assert told.exit_code == 1 and "sudo" in told.output and "--no-guests" in told.output


def test_another_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert "Darwin" in (doctor.why_no_guests() or "")


def test_missing_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: None if name in ("nft", "systemd-nspawn") else f"/bin/{name}")
    assert doctor.why_no_guests() == "Programs are missing: apt-get install nftables systemd-container"


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 5 * 10**6))
    assert "5 MB free" in (doctor._space() or "") and "XDG_CACHE_HOME" in (doctor._space() or "")
    with pytest.raises(image.ImageError, match="5 MB free"):
        image.ensure(cache=tmp_path / "images")


def test_few_guests_where_the_limit_of_inotify_cannot_be_raised(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limit = tmp_path / "limit"
    limit.write_text("128\n")
    monkeypatch.setattr(inotify, "LIMIT", limit)
    assert doctor._inotify() is None, "a lab raises it"
    monkeypatch.setattr(os, "access", lambda *_: False)
    told = doctor._inotify() or ""
    assert "is 128" in told and "some 25 guests" in told and "sysctl fs.inotify.max_user_instances=8192" in told
    limit.write_text("8192\n")
    assert doctor._inotify() is None
    limit.unlink()
    assert "CONFIG_INOTIFY_USER" in (doctor._inotify() or "")


def test_no_sources_and_no_mmdebstrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(apt_sources, "distribution_sources", lambda _: [])
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    with pytest.raises(image.ImageError, match="no Debian or Ubuntu package source"):
        image.ensure(cache=tmp_path / "images")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(image.ImageError, match="apt-get install mmdebstrap"):
        image.ensure(cache=tmp_path / "images")

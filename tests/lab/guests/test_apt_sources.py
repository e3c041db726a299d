"""Which of a host's package sources the guests' image is made from."""

from __future__ import annotations

from pathlib import Path

from multinic.lab.guests.apt_sources import distribution_sources, of_release, release_codename

DEB822 = """\
# A comment
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates bookworm-backports
Components: main contrib
Signed-By: /usr/share/keyrings/debian.gpg

Types: deb
URIs: http://mirror.example/security
Suites: bookworm-security
Components: main
Enabled: no

Types: deb
URIs: https://third.example/party
Suites: stable
Components: main
"""
ONE_LINE = """\
# deb http://off.example/debian bookworm main
deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian bookworm main non-free # trailing
deb-src http://mirror.example/debian bookworm main
deb cdrom:[Debian]/ bookworm main
deb http://third.example/party tool-bookworm main
deb http://mirror.example/flat ./
"""


def test_both_formats(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text(ONE_LINE)
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d" / "debian.sources").write_text(DEB822)
    (tmp_path / "sources.list.d" / "old.sources.save").write_text(DEB822.replace("mirror", "saved"))
    assert [str(source) for source in distribution_sources("bookworm", tmp_path)] == [
        "deb [signed-by=/k.gpg] http://mirror.example/debian bookworm main",
        "deb [signed-by=/usr/share/keyrings/debian.gpg] http://mirror.example/debian bookworm main",
        "deb [signed-by=/usr/share/keyrings/debian.gpg] http://mirror.example/debian bookworm-updates main",
    ]


def test_another_release_has_none_of_them(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text(ONE_LINE)
    assert distribution_sources("trixie", tmp_path) == []


def test_another_release_comes_from_the_same_places(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text("deb http://mirror.example/security bookworm-security main\n")
    found = of_release(distribution_sources("bookworm", tmp_path), "bookworm", "trixie")
    assert [str(source) for source in found] == ["deb http://mirror.example/security trixie-security main"]


def test_codename(tmp_path: Path) -> None:
    (tmp_path / "os-release").write_text('NAME="x"\nVERSION_CODENAME="noble"\n')
    assert release_codename(tmp_path / "os-release") == "noble"

"""Finding and building the Pulumi CLI, with stand-ins for `pulumi` and `go`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from multinic.lab.pulumi import cli


def _program(folder: Path, name: str, body: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")


VERSIONS = {"v3.200.0": True, "v3.274.1": True, "v3.199.9": False, "v4.0.0": False, "what?": False}


@pytest.mark.parametrize(("version", "fits"), VERSIONS.items())
def test_a_cli_on_path_is_taken_when_its_version_fits(tmp_path: Path, version: str, fits: bool) -> None:
    path = _program(tmp_path / "bin", "pulumi", f"echo {version}")
    assert cli.find() == (path if fits else None)


def test_else_the_one_that_was_built_is_taken(tmp_path: Path) -> None:
    assert cli.find() is None
    built = _program(tmp_path / "cache" / "multinic" / "pulumi" / cli.version_to_build() / "bin", "pulumi", "true")
    assert cli.find() == built
    assert cli.build(lambda line: pytest.fail(line)) == built


def test_a_build_is_complete_or_not_there(tmp_path: Path) -> None:
    go = """
        test "$1" = env && echo go1.26.8 && exit
        while test "$1" != -o; do shift; done
        echo '#!/bin/sh' > "$2"
        chmod +x "$2"
    """
    _program(tmp_path / "bin", "go", go)
    lines: list[str] = []

    built = cli.build(lines.append)

    assert built == cli.find() and os.access(built, os.X_OK)
    assert [path.name for path in built.parent.iterdir()] == ["pulumi"]
    assert "about eight minutes" in lines[0]


def test_a_failed_build_tells_what_the_compiler_said_and_leaves_nothing(tmp_path: Path) -> None:
    _program(tmp_path / "bin", "go", 'test "$1" = env && echo go1.26.8 && exit; echo "no space left" >&2; exit 1')
    with pytest.raises(cli.CliError, match="cmd/pulumi could not be built:\nno space left"):
        cli.build(lambda _line: None)
    assert cli.find() is None


def test_what_other_languages_need_is_built_beside_it(tmp_path: Path) -> None:
    go = """
        test "$1" = env && echo go1.26.8 && exit
        while test "$1" != -o; do shift; done
        echo '#!/bin/sh' > "$2"
        chmod +x "$2"
    """
    _program(tmp_path / "bin", "go", go)
    made = cli.build_more(lambda _line: None)
    assert [path.name for path in made] == [cli.YAML_HOST, cli.TYPESCRIPT_SDK]
    assert {path.parent for path in made} == {cli.build(lambda _line: None).parent}
    assert cli.build_more(lambda line: pytest.fail(line)) == made


def test_an_old_go_is_refused_by_version(tmp_path: Path) -> None:
    _program(tmp_path / "bin", "go", "echo go1.19.8")
    with pytest.raises(cli.CliError, match=r"needs Go 1\.26 or later, and .*go is 1\.19"):
        cli.build(lambda _line: None)


def test_which_and_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["which"]) == 1
    assert "builds one" in capsys.readouterr().out
    assert cli.main([]) == 2
    path = _program(tmp_path / "bin", "pulumi", "echo v3.274.1")
    assert cli.main(["which"]) == 0
    assert capsys.readouterr().out.strip() == str(path)


def test_outside_of_a_clone_the_newest_that_was_built_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_TOOLS", tmp_path / "nowhere")
    with pytest.raises(cli.CliError, match="only in a clone of the repository"):
        cli.version_to_build()
    assert cli.find() is None
    for version in ("3.99.0", "3.274.1"):
        newest = _program(tmp_path / "cache" / "multinic" / "pulumi" / version / "bin", "pulumi", "true")
    assert cli.find() == newest

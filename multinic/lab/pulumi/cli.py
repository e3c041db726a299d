"""The Pulumi CLI: found on PATH, or built once from its Go module into the user's cache.

What only programs in other languages need is built into the same folder by `build_more`: the language host for YAML
(an installed Pulumi brings one), and the generator of the TypeScript SDK.

PyPI, npm and Debian do not carry it; ``tools/pulumi`` is a Go module that does. Building takes about eight minutes
on two cores, so the result is kept, under a folder whose name has the version.

Usage: ``python -m multinic.lab.pulumi.cli build`` and ``… which``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from multinic.lab.errors import LabError

MODULE = "github.com/pulumi/pulumi/pkg/v3"
LEAST = (3, 200)
"""Oldest CLI that is taken from PATH: those before lack parts of the protocol that the SDK in use speaks."""

LEAST_GO = (1, 26)
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")
_TOOLS = Path(__file__).parents[3] / "tools" / "pulumi"
# The newest host that the module proxy serves needs older modules than the CLI, so it has a module of its own.
_YAML_TOOLS = _TOOLS.with_name("pulumi-yaml")
YAML_HOST = "pulumi-language-yaml"
TYPESCRIPT_SDK = "typescript-sdk"
_PROGRESS_EVERY_S = 5.0
_VERSION_TIMEOUT_S = 60.0


class CliError(LabError):
    """There is no CLI and none can be built; the text says what is missing and how to get it."""


def version_to_build() -> str:
    """Return the CLI's version in ``tools/pulumi/go.mod``.

    Raises:
        CliError: If the module is not there, as in an installed wheel.
    """
    try:
        text = (_TOOLS / "go.mod").read_text()
    except FileNotFoundError as error:
        raise CliError(
            "the Pulumi CLI can be built only in a clone of the repository, which has tools/pulumi; "
            "elsewhere install it from pulumi.com and put it on PATH"
        ) from error
    found = re.search(rf"{re.escape(MODULE)} v(\S+)", text)
    if not found:
        raise CliError(f"{_TOOLS / 'go.mod'} does not name {MODULE}")
    return found.group(1)


def cache() -> Path:
    """Return where built CLIs are kept: ``$XDG_CACHE_HOME/multinic/pulumi``, by default below ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "multinic" / "pulumi"


def built() -> Path | None:
    """Return the CLI in the cache, if it has been built: of a clone's own version, elsewhere the newest."""
    try:
        wanted = version_to_build()
    except CliError:
        wanted = "*"
    found = [path for path in cache().glob(f"{wanted}/bin/pulumi") if os.access(path, os.X_OK)]
    return max(found, key=lambda path: _numbers(path.parts[-3]), default=None)


def on_path() -> Path | None:
    """Return the CLI on PATH if its version fits."""
    name = shutil.which("pulumi")
    if not name:
        return None
    found = _VERSION.match(_output([name, "version"]))
    if not found:
        return None
    major, minor = int(found.group(1)), int(found.group(2))
    return Path(name) if major == LEAST[0] and minor >= LEAST[1] else None


def find() -> Path | None:
    """Return the CLI to use: the one on PATH if it fits, else the one that was built; None if there is neither."""
    return on_path() or built()


def build(progress: Callable[[str], None] | None = None) -> Path:
    """Build the CLI into the cache, unless it is there already.

    Args:
        progress: Gets a line every few seconds.

    Returns:
        The executable.

    Raises:
        CliError: If it cannot be built.
    """
    say = progress or _print
    ready = built()
    if ready:
        return ready
    version = version_to_build()
    _go()  # first, so that nothing is said to be built where nothing can be
    flags = f"-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version={version}"
    say(f"building the Pulumi CLI {version} from its Go module, once; about eight minutes on two cores")
    return _built(_TOOLS, f"{MODULE}/cmd/pulumi", cache() / version / "bin" / "pulumi", flags, say)


def find_more(name: str) -> Path | None:
    """Return one of the two programs of `build_more`, from PATH or built; None if there is none."""
    there = cache() / version_to_build() / "bin" / name
    found = shutil.which(name) or (str(there) if os.access(there, os.X_OK) else None)
    return Path(found) if found else None


def build_more(progress: Callable[[str], None] | None = None) -> list[Path]:
    """Build the language host for YAML and the generator of the TypeScript SDK, where they are missing.

    Raises:
        CliError: If they cannot be built.
    """
    say = progress or _print
    made = []
    for name, module, package in (
        (YAML_HOST, _YAML_TOOLS, "github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml"),
        (TYPESCRIPT_SDK, _TOOLS, "./typescript"),
    ):
        if not (ready := find_more(name)):
            say(f"building {name} from its Go module, once; about a minute")
            ready = _built(module, package, cache() / version_to_build() / "bin" / name, "-s -w", say)
        made.append(ready)
    return made


def _built(module: Path, package: str, target: Path, flags: str, say: Callable[[str], None]) -> Path:
    """Build a package. Whoever finds the target finds all of it: it gets its name when it is complete."""
    go = _go()
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        _run([go, "build", "-v", "-o", str(unfinished), "-ldflags", flags, package], module, say)
        unfinished.rename(target)
    finally:
        unfinished.unlink(missing_ok=True)
    say(f"built {target}")
    return target


def _go() -> str:
    go = shutil.which("go") or next(iter(map(str, Path("/usr/local/go/bin").glob("go"))), None)
    wanted = ".".join(map(str, LEAST_GO))
    if not go:
        raise CliError(
            f"building the Pulumi CLI needs Go {wanted} or later, and there is no `go` on PATH; see go.dev/dl"
        )
    found = re.search(r"go(\d+)\.(\d+)", _output([go, "env", "GOVERSION"]))
    if not found or (int(found.group(1)), int(found.group(2))) < LEAST_GO:
        have = found.group(0).removeprefix("go") if found else "one of unknown version"
        raise CliError(f"building the Pulumi CLI needs Go {wanted} or later, and {go} is {have}; see go.dev/dl")
    return go


def _run(command: list[str], module: Path, say: Callable[[str], None]) -> None:
    """Run the build, saying every few seconds how many packages are compiled and which was the last."""
    begun = time.monotonic()
    lines: list[str] = []
    process = subprocess.Popen(command, cwd=module, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    stderr = process.stderr
    assert stderr is not None

    def read() -> None:
        for line in stderr:
            lines.append(line.rstrip())  # noqa: PERF401 one by one: the length is shown meanwhile

    reader = threading.Thread(target=read)
    reader.start()
    try:
        while reader.is_alive():
            # Linking, at the end, prints nothing for a while: the clock speaks, not the compiler.
            reader.join(_PROGRESS_EVERY_S)
            if reader.is_alive():
                last = f", the last {lines[-1]}" if lines else ""
                say(f"  {int(time.monotonic() - begun)} s, {len(lines)} packages{last}")
        if process.wait() != 0:
            raise CliError(f"{command[-1]} could not be built:\n" + "\n".join(lines[-20:]))
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
        reader.join()
        stderr.close()


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _output(command: list[str]) -> str:
    environment = dict(os.environ, PULUMI_SKIP_UPDATE_CHECK="true")
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_VERSION_TIMEOUT_S, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Run ``build`` or ``which`` and return the exit code."""
    if arguments == ["build"]:
        try:
            _print(str(build()))
            build_more()
        except CliError as error:
            sys.stderr.write(f"{error}\n")
            return 1
        return 0
    if arguments == ["which"]:
        found = find()
        _print(str(found) if found else "no Pulumi CLI: `python -m multinic.lab.pulumi.cli build` builds one")
        return 0 if found else 1
    sys.stderr.write("usage: python -m multinic.lab.pulumi.cli build|which\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

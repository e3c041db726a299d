"""Runs the programs that we need, `ip` and `nft`, each bounded in time."""

from __future__ import annotations

import subprocess

TIMEOUT = 10.0
"""Seconds for any one program; they take milliseconds."""


class KernelError(Exception):
    """A program that we need could not do its work."""


def run(arguments: list[str], text: str = "") -> tuple[int, str, str]:
    """Runs a program with `text` on its standard input; returns code, output and errors."""
    try:
        done = subprocess.run(arguments, input=text, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KernelError(f"{arguments[0]}: {error}") from error
    return done.returncode, done.stdout, done.stderr

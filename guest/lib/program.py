"""Runs the programs that we need, `ip` and `nft`, each bounded in time."""

from __future__ import annotations

import subprocess

TIMEOUT = 10.0
"""Seconds for any one program; they take milliseconds."""


class KernelError(Exception):
    """A program that we need could not do its work."""


def run(arguments: list[str], text: str = "") -> tuple[int, str, str]:
    """Runs a program with `text` on its standard input; returns code, output and errors."""
    return run_together([arguments], text)[0]


def run_together(programs: list[list[str]], text: str = "") -> list[tuple[int, str, str]]:
    """Runs programs at the same time, each with `text` on its standard input."""
    pipe = subprocess.PIPE
    running: list[subprocess.Popen[str]] = []
    done = []
    try:
        for arguments in programs:
            # One by one: what has been started must end also when the next one cannot be.
            process = subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
            running.append(process)
        for process in running:
            output, errors = process.communicate(text, timeout=TIMEOUT)
            done.append((process.returncode, output, errors))
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KernelError(f"{programs[len(done)][0]}: {error}") from error
    finally:
        for process in running[len(done) :]:
            process.kill()
            process.communicate()
    return done

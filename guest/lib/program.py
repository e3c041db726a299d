"""Runs the programs that we need, `ip` and `nft`, each bounded in time."""

from __future__ import annotations

import os
import subprocess
from typing import Sequence

TIMEOUT = 10.0
"""Seconds for any one program; they take milliseconds."""


class KernelError(Exception):
    """A program that we need could not do its work."""


def run(arguments: list[str], text: str = "") -> tuple[int, str, str]:
    """Runs a program with `text` on its standard input; returns code, output and errors."""
    return run_together([(arguments, text)])[0]


def run_together(programs: Sequence[tuple[list[str], str]]) -> list[tuple[int, str, str]]:
    """Runs programs at the same time, each with a text on its standard input."""
    pipe = subprocess.PIPE
    running: list[subprocess.Popen[str]] = []
    done = []
    try:
        for arguments, text in programs:
            # A file: a pipe would hold up the program until its turn to be read from, or us, when it is full.
            given = os.memfd_create("input")
            try:
                with open(given, "w", encoding="utf-8", closefd=False) as file:
                    file.write(text)
                os.lseek(given, 0, os.SEEK_SET)
                # One by one: what has been started must end also when the next one cannot be.
                # Others' comments and aliases, which they show, may be in any encoding.
                running.append(
                    subprocess.Popen(
                        arguments, stdin=given, stdout=pipe, stderr=pipe, encoding="utf-8", errors="replace"
                    )
                )
            finally:
                os.close(given)
        for process in running:
            output, errors = process.communicate(timeout=TIMEOUT)
            done.append((process.returncode, output, errors))
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KernelError(f"{programs[len(done)][0][0]}: {error}") from error
    finally:
        for process in running[len(done) :]:
            process.kill()
            process.communicate()
    return done

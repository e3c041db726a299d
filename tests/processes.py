"""Processes as tests look at them. One that ends while it is looked at has ended; so has one that nobody reaped yet."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable

import psutil


def tree(pid: int) -> list[psutil.Process]:
    """Returns a process and all its descendants."""
    top = psutil.Process(pid)
    return [top, *top.children(recursive=True)]


def words(process: psutil.Process) -> list[str]:
    """Returns the program and arguments of a process; nothing of one that has ended."""
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


def mentioning(*marks: str, environment: bool = False) -> list[str]:
    """Returns the command lines of processes, this one aside, that hold one of some texts.

    Args:
        marks: The texts, such as a folder that only these processes were told of.
        environment: Whether the texts may also stand in the environment.
    """
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            line = " ".join(process.cmdline())
            places = [line, *(process.environ().values() if environment else ())]
            if process.pid != os.getpid() and any(mark in place for mark in marks for place in places):
                found.append(f"{process.pid}: {line}")
    return found


def alive(process: psutil.Process) -> bool:
    """Whether it still runs."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def wait_for_end(processes: Iterable[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Waits until processes have ended, and returns those that still run after so many seconds."""
    deadline, left = time.monotonic() + seconds, list(processes)
    while (left := [process for process in left if alive(process)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left

"""Programs that the lab runs for an answer, without ever holding up the event loop."""

from __future__ import annotations

import asyncio
import subprocess

from multinic.lab.substrate import SubstrateError

PACKAGE_OF = {"ip": "iproute2", "nft": "nftables", "systemd-nspawn": "systemd-container", "nsenter": "util-linux"}
"""Debian's package for a program, for the cure in an error message."""


async def run(*command: str, text: str = "") -> str:
    """Runs a program to its end and returns what it printed.

    Args:
        command: Program and arguments.
        text: Its standard input.

    Raises:
        SubstrateError: It is missing, or ended with another code than 0; with what it wrote to standard error.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except FileNotFoundError:
        package = PACKAGE_OF.get(command[0], command[0])
        raise SubstrateError(
            f"{command[0]} is missing, which the lab's machines need: apt-get install {package}"
        ) from None
    try:
        output, errors = await process.communicate(text.encode())
    except asyncio.CancelledError:
        if process.returncode is None:
            process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        reason = errors.decode(errors="replace").strip() or f"exit code {process.returncode}"
        raise SubstrateError(f"{' '.join(command)}: {reason[:600]}")
    return output.decode(errors="replace")

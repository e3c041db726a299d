"""Runs a program on a router: in the lab as a program in the guest, in the cloud by SSH through IAP."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Sequence

from multinic.operate.door import Door
from multinic.operate.errors import OperateError
from multinic.operate.fleet import Fleet, Router

TIMEOUT_SECONDS = 60.0
"""`gcloud` opens its tunnel, makes a key at first use, and logs in within this time."""


def command(door: Door, fleet: Fleet, router: Router, argv: Sequence[str]) -> list[str]:
    """The command that runs a program as root on a router of Google Cloud.

    Raises:
        OperateError: There is neither `gcloud` nor `ssh`.
    """
    remote = shlex.join(["sudo", *argv])
    gcloud = shutil.which("gcloud")
    if gcloud:
        place = [f"--zone={router.zone}", f"--project={fleet.project}"]
        return [gcloud, "compute", "ssh", router.name, *place, "--tunnel-through-iap", "--quiet", f"--command={remote}"]
    ssh = shutil.which("ssh")
    if ssh:
        # The alias that `gcloud compute config-ssh` writes; a ProxyCommand of the user's own goes by it as well.
        return [ssh, "-o", "BatchMode=yes", f"{router.name}.{router.zone}.{fleet.project}", remote]
    raise OperateError("a shell on the router needs `gcloud` or `ssh` on PATH: install Google's CLI")


def run(door: Door, fleet: Fleet, router: Router, argv: Sequence[str], *, may_break: bool = False) -> str:
    """Runs a program as root on a router and returns what it printed.

    Args:
        door: Where the router is.
        fleet: Its fleet.
        router: The VM.
        argv: Program and arguments.
        may_break: Losing the connection is what is expected.

    Raises:
        OperateError: It could not be run, or failed.
    """
    if door.lab:
        return _in_guest(door, fleet, router, argv, may_break=may_break)
    try:
        done = subprocess.run(
            command(door, fleet, router, argv), capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        if may_break:
            return ""
        raise OperateError(f"no shell on {router.name} within {TIMEOUT_SECONDS:.0f} s") from None
    # 255 is ssh's own: the connection was not made, or broke. Both begin alike, and only the words differ.
    broke = done.returncode == 255 and any(word in done.stderr for word in ("closed by", "Broken pipe", "reset by"))
    if done.returncode != 0 and not (may_break and broke):
        said = done.stderr.strip().splitlines()
        raise OperateError(
            f"{argv[0]} on {router.name} failed: {said[-1] if said else f'exit code {done.returncode}'}; a shell needs "
            "`access.iap_ssh: true` in the stack, and roles/iap.tunnelResourceAccessor"
        )
    return done.stdout


def _in_guest(door: Door, fleet: Fleet, router: Router, argv: Sequence[str], *, may_break: bool) -> str:
    from multinic.lab.guests.exec import GuestError, run_in_guest

    if door.folder is None:
        raise OperateError('the lab\'s folder is not known: run eval "$(multinic lab env)" again')
    key = f"projects/{fleet.project}/zones/{router.zone}/instances/{router.name}"
    try:
        return run_in_guest(door.folder, key, argv, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        if may_break:
            return ""
        raise OperateError(f"{argv[0]} in {router.name} did not end within {TIMEOUT_SECONDS:.0f} s") from None
    except GuestError as error:
        if may_break and "has ended" in str(error):
            return ""
        raise OperateError(str(error)) from None

"""What a killed lab leaves, and how it is cleared: cgroup folders, the control socket, an ephemeral lab's folder.

Processes, mounts and network namespaces are never among it: the kernel removes them with the lab's process namespace.
What is left is found by a small record for each running lab, kept outside of the lab's own folder so that an
ephemeral one is found too.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from multinic.lab import inotify

CONTROL_SOCKET = "control.sock"
DESCRIPTION = "lab.json"
"""Written by the daemon: while it is there, the front door answers."""
LOCK = "lab.lock"
PID = "supervisor.pid"


@dataclass(frozen=True)
class Record:
    """What the supervisor noted when it started a lab.

    Attributes:
        folder: The lab's folder.
        cgroup: Folder below the root of the cgroup2 hierarchy that holds all of the lab's processes.
        ephemeral: The folder goes with the lab.
    """

    folder: str
    cgroup: str
    ephemeral: bool


def state_home() -> Path:
    """Where the lab keeps state: ``$XDG_STATE_HOME/multinic``, by default ``~/.local/state/multinic``."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "multinic"


def records_folder() -> Path:
    """Folder of the records of labs that run, or were killed."""
    return state_home() / "running"


def record_of(folder: Path, *, ephemeral: bool = False) -> Record:
    """The record of the lab in `folder`; its cgroup's name follows from the path alone, so that it is found again."""
    resolved = str(folder.resolve())
    digest = hashlib.sha256(resolved.encode()).hexdigest()[:12]
    return Record(resolved, f"multinic-lab-{digest}", ephemeral)


def write_record(record: Record) -> Path:
    """Notes that a lab runs."""
    records_folder().mkdir(parents=True, exist_ok=True)
    path = records_folder() / f"{record.cgroup}.json"
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(asdict(record)))
    draft.rename(path)
    return path


def lock(folder: Path) -> IO[str] | None:
    """Takes the lab folder's lock; None while a lab runs in it.

    The supervisor and process 1 of the lab both hold it, so a free lock means that nothing of the lab runs any more.
    """
    handle = (folder / LOCK).open("a")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        return None
    return handle


def remove_cgroup(name: str) -> None:
    """Removes a lab's empty cgroup folders, by a cgroup2 mount that only this one command sees."""
    # Hosts differ in where cgroup2 is mounted, if at all; /mnt is covered for the time of the command only.
    script = 'mount -t cgroup2 none /mnt && { [ ! -d "/mnt/$1" ] || find "/mnt/$1" -depth -type d -exec rmdir {} +; }'
    subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", name],
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def clear(record: Record) -> None:
    """Clears what the lab of `record` left. Only for who holds its lock, or after its folder is gone."""
    remove_cgroup(record.cgroup)
    folder = Path(record.folder)
    for name in (CONTROL_SOCKET, DESCRIPTION, PID):
        (folder / name).unlink(missing_ok=True)
    if record.ephemeral:
        shutil.rmtree(folder, ignore_errors=True)
    (records_folder() / f"{record.cgroup}.json").unlink(missing_ok=True)


def clean(folder: Path | None = None) -> list[str]:
    """Clears what killed labs left: of labs in `folder` or below it, or of all labs of this user.

    Labs that run are left alone.

    Returns:
        A line for each lab that was found.
    """
    inotify.restore()
    lines = []
    for path in sorted(records_folder().glob("*.json")):
        try:
            record = Record(**json.loads(path.read_text()))
        except (ValueError, TypeError):
            path.unlink(missing_ok=True)
            continue
        if folder is not None and not Path(record.folder).is_relative_to(folder.resolve()):
            continue
        held = lock(Path(record.folder)) if Path(record.folder).is_dir() else None
        if held is None and Path(record.folder).is_dir():
            lines.append(f"{record.folder}: a lab runs there, left alone")
            continue
        clear(record)
        if held is not None:
            held.close()
        lines.append(f"{record.folder}: cleared")
    return lines

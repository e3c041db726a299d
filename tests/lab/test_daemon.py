"""The lab's process without guests: killed, torn, two at once, without rights, without room."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from multinic.lab.client import READY, Lab
from multinic.lab.cloud import ApiError
from multinic.lab.cloud.store import Store
from multinic.lab.errors import LabError

PATIENCE = 120


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def command(folder: Path, port: int) -> list[str]:
    return [
        *(sys.executable, "-m", "multinic.lab.daemon", "--folder", str(folder), "--port", str(port), "--no-guests"),
    ]


def fails(folder: Path, *before: str) -> str:
    """What a daemon says that cannot start: one line."""
    done = subprocess.run(
        [*before, *command(folder, free_port())],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        stdin=subprocess.PIPE,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.strip().splitlines()
    return line


@contextmanager
def daemon(folder: Path, *before: str) -> Iterator[tuple[Lab, subprocess.Popen[str]]]:
    """A lab that answers; ended with SIGKILL where the test has not ended it."""
    folder.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [*before, *command(folder, free_port())], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == READY
            # As the process sees it, which may have mounts of its own.
            yield Lab.of(Path(f"/proc/{process.pid}/root/{folder}")), process
        finally:
            process.kill()


def listening(process: int) -> set[str]:
    """Addresses of the IPv4 and IPv6 sockets on which a process listens."""
    sockets = {str(link.readlink()) for link in Path(f"/proc/{process}/fd").iterdir() if link.is_symlink()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                raw = bytes.fromhex(fields[1].partition(":")[0])
                found.add(socket.inet_ntop(socket.AF_INET, raw[::-1]) if table == "tcp" else raw.hex())
    return found


def networks(lab: Lab) -> list[str]:
    return [network["name"] for network in lab.items("global/networks")]


def make(lab: Lab, name: str) -> None:
    lab.compute("POST", "global/networks", {"name": name, "autoCreateSubnetworks": False})


def test_a_killed_lab_has_its_objects_and_its_token_again(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    with daemon(folder) as (lab, process):
        make(lab, "one")
        token = lab.token
        assert stat.S_IMODE((folder / "lab.json").stat().st_mode) == 0o600
        assert stat.S_IMODE((folder / "token").stat().st_mode) == 0o600
        assert listening(process.pid) == {"127.0.0.1"}
        # A second lab in this folder is refused; one in another folder with another port is not.
        assert "runs in" in fails(folder)
        with daemon(tmp_path / "other") as (other, _):
            make(other, "two")
            assert (networks(lab), networks(other)) == (["one"], ["two"])
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    # What a kill in the middle of a write leaves beside the objects is not one of them.
    objects = folder / "objects" / "projects" / "lab" / "global" / "networks"
    (objects / "three.new").write_text('{"name": "thr')
    # A token that was never written whole is none: without this, an empty one would open the door.
    with daemon(folder) as (lab, process):
        assert lab.token == token
        assert networks(lab) == ["one"]
        with pytest.raises(LabError, match="authentication"):
            Lab(lab.endpoint, "", folder).compute("GET", "global/networks")
        process.terminate()
        assert process.wait(PATIENCE) == 0
        assert not (folder / "lab.json").exists()
    (folder / "token").write_text("")
    # As another user, who has no capability. Root's own files stay readable to it, the interpreter among them.
    user = ("unshare", "--user", "--map-user=1000", "--map-group=1000") if os.geteuid() == 0 else ()
    with daemon(folder, *user) as (lab, process):
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert "CapEff:\t0000000000000000\n" in status
        assert len(lab.token) > 20
        make(lab, "four")
        assert networks(lab) == ["four", "one"]


def test_the_command_ends_when_its_lab_does(tmp_path: Path) -> None:
    """It sat there for ever, without a word, when the daemon had died."""
    folder, port = tmp_path / "lab", free_port()
    line = [sys.executable, "-m", "multinic", "lab", "up", "--no-guests", "--folder", str(folder)]
    with subprocess.Popen(
        [*line, "--port", str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as up:
        try:
            assert up.stdout is not None
            told = up.stdout.readline()
            assert told.startswith("The lab answers at")
            # What it tells to type leads to this lab, not to the one in the default folder.
            assert f'eval "$(multinic lab env --folder {folder})"' in told
            os.kill(json.loads((folder / "lab.json").read_text())["pid"], signal.SIGKILL)
            said = up.communicate(timeout=PATIENCE)[1]
        finally:
            up.kill()
    assert up.returncode == 1
    assert said.startswith("multinic: the lab has ended") and str(folder / "lab.log") in said


def test_a_file_torn_by_a_power_cut_is_named(tmp_path: Path) -> None:
    objects = tmp_path / "objects" / "projects" / "lab" / "global" / "networks"
    objects.mkdir(parents=True)
    for torn in (b"", b'{"name": "n', b"[]", b"1", b"\xff\xfe"):
        (objects / "n.json").write_bytes(torn)
        with pytest.raises(ApiError, match=re.escape(f"{objects / 'n.json'} is not readable")):
            Store(tmp_path / "objects")
    line = fails(tmp_path)
    assert str(objects / "n.json") in line
    assert "Delete it and start again" in line


def test_a_folder_that_cannot_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    line = fails(tmp_path / "file")
    assert str(tmp_path / "file") in line
    assert "choose another" in line


@pytest.mark.root
def test_a_full_disk_is_said_and_mended(tmp_path: Path) -> None:
    """On a file system of 256 kB that only the lab sees."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=256k none "$0" && exec "$@"', str(disk))
    with daemon(disk, *mounted) as (lab, _):
        made = []
        with pytest.raises(LabError, match=r"No space left on device.*Free some space and retry"):
            for number in range(500):
                make(lab, f"n{number}")
                made.append(f"n{number}")
        assert made
        assert sorted(networks(lab)) == sorted(made)
        # Deleting makes room, and everything goes on.
        for name in made[:2]:
            for route in lab.items("global/routes"):
                if route["network"].endswith(f"/{name}"):
                    lab.compute("DELETE", f"global/routes/{route['name']}")
            lab.compute("DELETE", f"global/networks/{name}")
        make(lab, "again")
        assert "again" in networks(lab)

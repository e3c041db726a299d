"""One boot of a guest after the other: systemd-nspawn on the VM's own disk over the image's layers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from pathlib import Path

from multinic.lab.guests import names
from multinic.lab.guests.image import Image
from multinic.lab.namespaces import Namespace
from multinic.lab.substrate import Machine, SubstrateError

SERIAL_LIMIT = 1_000_000
"""Bytes of console output that are kept, as Google does."""
SERIAL_HEAD = 65536
"""Bytes of it that are still there after it was cut."""
HAND_BACK = 5.0
"""Seconds that nspawn gets to hand the NICs back after the death of process 1."""


class Nspawn:
    """The guest's process, its disk, console and control group.

    Attributes:
        leader: Process id of the guest's process 1, in the daemon's process namespace; None while it does not run.
    """

    def __init__(self, folder: Path, image: Image, staging: Namespace, index: int, nic_names: tuple[str, ...]) -> None:
        """Describes it.

        Args:
            folder: Disk, console output and NIC configuration go here.
            image: What lies under the disk.
            staging: Network namespace that holds the NICs while the guest does not run.
            index: A number that no other guest of this daemon has.
            nic_names: Names of the NICs inside.
        """
        self.leader: int | None = None
        self._folder = folder
        self._image = image
        self._staging = staging
        self._index = index
        self._nic_names = nic_names
        self._process: asyncio.subprocess.Process | None = None
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    @property
    def cgroup(self) -> Path:
        """The guest's folder in the cgroup hierarchy, from the first boot on."""
        own = Path("/proc/self/cgroup").read_text().rpartition("::")[2].strip()
        return Path("/sys/fs/cgroup", own.lstrip("/")).parent / "machines" / str(self._index)

    async def boot(self, machine: Machine) -> None:
        """Boots, and returns once process 1 runs.

        Raises:
            SubstrateError: It does not; with the end of what it printed.
        """
        notify = Path("/run/multinic", f"{self._index}.notify")
        notify.parent.mkdir(exist_ok=True)
        notify.unlink(missing_ok=True)
        self._prepare(machine)
        self._close_listener()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._listener.bind(str(notify))
        self._process = await self._launch(machine, notify)
        self.leader = await self._first_message(machine, self._process)
        # nspawn passes on more messages, above all while the guest shuts down; unread, they would soon block it.
        asyncio.get_running_loop().add_reader(self._listener, self._read_on)

    async def wait(self) -> int:
        """Waits for the guest's end and returns nspawn's exit code."""
        assert self._process is not None
        code = await self._process.wait()
        self.leader = None
        return code

    async def kill(self) -> None:
        """Ends what is left of the guest: process 1 first, so that nspawn hands the NICs back."""
        process = self._process
        leader, self.leader = self.leader, None
        if process is None or process.returncode is not None:
            return
        if leader is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(leader, signal.SIGKILL)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), HAND_BACK)
        if process.returncode is None:
            process.kill()
            await process.wait()

    def close(self) -> None:
        """Forgets what is not on the disk."""
        self._close_listener()
        for path in sorted(self.cgroup.rglob("*/"), reverse=True):
            with contextlib.suppress(OSError):
                path.rmdir()
        with contextlib.suppress(OSError):
            self.cgroup.rmdir()

    def _read_on(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._listener.recv(4096):
                pass

    def _close_listener(self) -> None:
        if self._listener.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._listener)
        self._listener.close()

    def freeze(self, frozen: bool) -> None:
        """Freezes or thaws the guest's programs."""
        if self.leader is not None:
            (self.cgroup / "payload" / "cgroup.freeze").write_text("1" if frozen else "0")

    def cpu_seconds(self) -> float:
        """CPU time of the guest's programs since it was created."""
        try:
            lines = (self.cgroup / "cpu.stat").read_text().split()
        except OSError:
            return 0.0
        return int(lines[lines.index("usage_usec") + 1]) / 1e6

    def serial_output(self) -> str:
        """What the console printed, the newest megabyte of it."""
        try:
            with (self._folder / "serial.log").open("rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - SERIAL_LIMIT))
                return log.read().decode(errors="replace").replace("\r\n", "\n")
        except FileNotFoundError:
            return ""

    def print(self, line: str) -> None:
        """Adds a line of the lab's own to the console output."""
        with (self._folder / "serial.log").open("a") as log:
            log.write(f"{line}\n")

    def _prepare(self, machine: Machine) -> None:
        for name in ("upper", "work"):
            (self._folder / name).mkdir(parents=True, exist_ok=True, mode=0o755)
        nic0 = machine.interfaces[0]
        (self._folder / "nic0").write_text(
            f"NAME={self._nic_names[0]}\nADDRESS={nic0.address}\nGATEWAY={nic0.gateway}\nMTU={nic0.mtu}\n"
            f'SEARCH="{" ".join(names.search_domains(machine.key))}"\n'
        )
        log = self._folder / "serial.log"
        if log.exists() and log.stat().st_size > SERIAL_LIMIT:
            log.write_bytes(log.read_bytes()[-SERIAL_HEAD:])

    async def _launch(self, machine: Machine, notify: Path) -> asyncio.subprocess.Process:
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "MACHINE": machine.name,
            "CGROUP": str(self.cgroup.relative_to("/sys/fs/cgroup")),
            "LAYERS": ":".join(map(str, self._image.layers)),
            "DISK": str(self._folder),
            "NIC0": str(self._folder / "nic0"),
            "NICS": " ".join(self._nic_names),
            "NOTIFY_SOCKET": str(notify),
        }
        script = Path(__file__).with_name("launch.sh")
        with (self._folder / "serial.log").open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *("nsenter", f"--net={self._staging.path}", "unshare", "--mount", "--propagation", "private"),
                *("bash", str(script)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )

    async def _first_message(self, machine: Machine, process: asyncio.subprocess.Process) -> int:
        """Waits for nspawn's own message that process 1 runs, and returns its id."""
        loop = asyncio.get_running_loop()
        ended = asyncio.create_task(process.wait())
        try:
            while True:
                message = asyncio.create_task(loop.sock_recv(self._listener, 4096))
                try:
                    await asyncio.wait({message, ended}, return_when=asyncio.FIRST_COMPLETED)
                    if not message.done():
                        tail = self.serial_output()[-400:].strip()
                        raise SubstrateError(
                            f"{machine.key} did not boot: {tail or 'systemd-nspawn ended'}. `multinic lab doctor` says "
                            "what is missing here; an image that is broken is built anew after "
                            f"rm -r {self._image.layers[-1].parent}"
                        )
                    for line in message.result().decode(errors="replace").splitlines():
                        key, _, value = line.partition("=")
                        if key == "X_NSPAWN_LEADER_PID":
                            return int(value)
                finally:
                    message.cancel()
        finally:
            ended.cancel()

"""One VM of the lab: a systemd-nspawn guest on its own disk, with what a VM can suffer.

Its life is one task: boot, wait for the end, and by the reason of the end boot again or stay off. A panic is the
sudden death of the guest's process 1: silent at once, nothing shut down, and after the kernel's own pause the same
disk boots again. The NICs stay plugged in at the fabric all the time, so that what is sent to a dead VM is lost as in
the cloud.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Awaitable, Callable
from enum import Enum
from pathlib import Path

from multinic.lab.guests import names
from multinic.lab.guests.image import Image
from multinic.lab.namespaces import Namespace, unplug_all
from multinic.lab.substrate import Machine, MachineEvent, SubstrateError

PANIC_PAUSE = 10.0
"""Seconds between a panic and the reboot: ``kernel.panic`` of Google's images."""
REBOOT = 133
"""nspawn's exit code for a guest that asked for a reboot, with --keep-unit."""
POWER_OFF = signal.SIGRTMIN + 4
"""systemd as process 1 takes it for ``systemctl poweroff``; see systemd(1)."""
SERIAL_LIMIT = 1_000_000
"""Bytes of console output that are kept, as Google does."""
SERIAL_HEAD = 65536


class _Reason(Enum):
    PANIC = "panic"
    RESET = "reset"
    CUT = "cut"
    STOP = "stop"


class Guest:
    """A VM.

    Attributes:
        machine: What the cloud asked for.
        staging: Network namespace that holds the NICs while the guest does not run.
        leader: Process id of the guest's process 1, in the daemon's process namespace; None while it does not run.
    """

    def __init__(
        self,
        machine: Machine,
        folder: Path,
        image: Image,
        *,
        index: int,
        nic_names: tuple[str, ...],
        plug: Callable[[], Awaitable[None]],
        tell: Callable[[MachineEvent], None],
        panic_pause: float = PANIC_PAUSE,
    ) -> None:
        """Describes the VM; nothing runs yet.

        Args:
            machine: What the cloud asked for.
            folder: Disk, console output and NIC configuration go here.
            image: What lies under the disk.
            index: A number that no other guest of this daemon has.
            nic_names: Names of the NICs inside.
            plug: Makes sure that all NICs are in `staging`.
            tell: Called with what the machine does by itself.
            panic_pause: Seconds between a panic and the reboot.
        """
        self.machine = machine
        self.staging = Namespace(f"vm-{index}")
        self.leader: int | None = None
        self._folder = folder
        self._image = image
        self._index = index
        self._nic_names = nic_names
        self._plug = plug
        self._tell = tell
        self._panic_pause = panic_pause
        self._life: asyncio.Task[None] | None = None
        self._first_boot: asyncio.Future[None] | None = None
        self._reason: _Reason | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._wake = asyncio.Event()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    @property
    def cgroup(self) -> Path:
        """The guest's folder in the cgroup hierarchy; it exists while the guest runs."""
        own = Path("/proc/self/cgroup").read_text().rpartition("::")[2].strip()
        return Path("/sys/fs/cgroup", own.lstrip("/")).parent / "machines" / str(self._index)

    @property
    def alive(self) -> bool:
        """Whether the VM is on: running, booting, or silent after a panic."""
        return self._life is not None and not self._life.done()

    async def start(self) -> None:
        """Switches on and returns once process 1 runs."""
        if not self.alive:
            self._reason = None
            self._first_boot = asyncio.get_running_loop().create_future()
            self._life = asyncio.create_task(self._live(self._first_boot), name=f"life of {self.machine.key}")
        assert self._first_boot is not None
        # The machine boots on if whoever waits for it is cancelled.
        await asyncio.shield(self._first_boot)

    async def stop(self, timeout: float) -> None:
        """Orderly power-off, hard after `timeout` seconds; tells nobody."""
        if self.alive and self.leader is not None and self._life is not None:
            self._end(_Reason.STOP, POWER_OFF)
            await asyncio.wait({self._life}, timeout=timeout)
        await self.off()

    async def off(self) -> None:
        """Power off at once; tells nobody."""
        self._reason = _Reason.STOP
        if self._life is not None:
            self._life.cancel()
            await asyncio.wait({self._life})

    async def delete(self) -> None:
        """Powers off and removes disk and NICs."""
        await self.off()
        self._listener.close()
        await self.staging.delete()
        await asyncio.to_thread(shutil.rmtree, self._folder, True)

    async def reset(self) -> None:
        """Dies and boots again."""
        await self._die(_Reason.RESET)

    async def panic(self) -> None:
        """Dies silently and boots again after the kernel's pause."""
        await self._die(_Reason.PANIC)
        self._tell(MachineEvent.PANICKED)

    async def cut_power(self) -> None:
        """Dies and stays off."""
        await self._die(_Reason.CUT)

    def freeze(self, frozen: bool) -> None:
        """Freezes or thaws the guest's programs; forwarding is the kernel's and goes on."""
        if self.leader is not None:
            (self.cgroup / "payload" / "cgroup.freeze").write_text("1" if frozen else "0")

    def cpu_seconds(self) -> float:
        """CPU time of the guest's programs since it booted."""
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

    async def _die(self, reason: _Reason) -> None:
        """Ends the guest the hard way, silent from the first moment.

        Without that its kernel would forward until the last of its processes is gone.
        """
        if self.leader is not None:
            await asyncio.to_thread(unplug_all, Path(f"/proc/{self.leader}/ns/net"))
        self._end(reason)

    def _end(self, reason: _Reason, number: int = signal.SIGKILL) -> None:
        if not self.alive:
            raise SubstrateError(f"{self.machine.key} does not run")
        self._reason = reason
        if self.leader is None:
            # Between two boots, or booting: the wait is cut short, and the next boot's start is the last.
            self._wake.set()
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.leader, number)

    async def _live(self, first_boot: asyncio.Future[None]) -> None:
        pause = 0.0
        try:
            while True:
                await self._sleep(pause + self.machine.boot_delay)
                if self._reason is _Reason.CUT:
                    self._tell(MachineEvent.STOPPED)
                    return
                self._reason = None
                self.leader = await self._boot()
                if not first_boot.done():
                    first_boot.set_result(None)
                self._tell(MachineEvent.BOOTED)
                assert self._process is not None
                code = await self._process.wait()
                self.leader = None
                reason = self._reason
                if reason is _Reason.PANIC:
                    pause = self._panic_pause
                elif reason is _Reason.RESET or (reason is None and code == REBOOT):
                    pause = 0.0
                else:
                    if reason is not _Reason.STOP:
                        self._tell(MachineEvent.STOPPED)
                    return
        except SubstrateError as error:
            if first_boot.done():
                self._write_serial(f"{error}\n")
                self._tell(MachineEvent.STOPPED)
            else:
                first_boot.set_exception(error)
                # Whoever started it may be gone.
                first_boot.exception()
        finally:
            if not first_boot.done():
                first_boot.set_exception(SubstrateError(f"{self.machine.key} was switched off while it booted"))
                first_boot.exception()
            await asyncio.shield(asyncio.ensure_future(self._kill()))

    async def _sleep(self, seconds: float) -> None:
        self._wake.clear()
        if seconds > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), seconds)

    async def _boot(self) -> int:
        await self._plug()
        notify = Path("/run/multinic", f"{self._index}.notify")
        notify.parent.mkdir(exist_ok=True)
        notify.unlink(missing_ok=True)
        self._prepare_disk()
        # Open until the next boot: nspawn has a few more messages, and complains on the console if nobody takes them.
        self._listener.close()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._listener.bind(str(notify))
        await self._launch(notify)
        return await self._leader(self._listener)

    def _prepare_disk(self) -> None:
        for name in ("upper", "work"):
            (self._folder / name).mkdir(parents=True, exist_ok=True, mode=0o755)
        nic0 = self.machine.interfaces[0]
        (self._folder / "nic0").write_text(
            f"NAME={self._nic_names[0]}\nADDRESS={nic0.address}\nGATEWAY={nic0.gateway}\nMTU={nic0.mtu}\n"
            f'SEARCH="{" ".join(names.search_domains(self.machine.key))}"\n'
        )
        log = self._folder / "serial.log"
        if log.exists() and log.stat().st_size > SERIAL_LIMIT:
            log.write_bytes(log.read_bytes()[-SERIAL_HEAD:])

    async def _launch(self, notify: Path) -> None:
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "MACHINE": self.machine.name,
            "CGROUP": str(self.cgroup.relative_to("/sys/fs/cgroup")),
            "LAYERS": ":".join(map(str, self._image.layers)),
            "DISK": str(self._folder),
            "NIC0": str(self._folder / "nic0"),
            "NICS": " ".join(self._nic_names),
            "NOTIFY_SOCKET": str(notify),
        }
        script = Path(__file__).with_name("launch.sh")
        with (self._folder / "serial.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *("nsenter", f"--net={self.staging.path}", "unshare", "--mount", "--propagation", "private"),
                *("bash", str(script)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )

    async def _leader(self, listener: socket.socket) -> int:
        """Waits for nspawn's own message that process 1 runs."""
        assert self._process is not None
        loop = asyncio.get_running_loop()
        ended = asyncio.create_task(self._process.wait())
        try:
            while True:
                message = asyncio.create_task(loop.sock_recv(listener, 4096))
                try:
                    await asyncio.wait({message, ended}, return_when=asyncio.FIRST_COMPLETED)
                    if not message.done():
                        tail = self.serial_output()[-400:].strip()
                        raise SubstrateError(f"{self.machine.key} did not boot: {tail or 'systemd-nspawn ended'}")
                    for line in message.result().decode(errors="replace").splitlines():
                        key, _, value = line.partition("=")
                        if key == "X_NSPAWN_LEADER_PID":
                            return int(value)
                finally:
                    message.cancel()
        finally:
            ended.cancel()

    async def _kill(self) -> None:
        """Ends what is left of the guest: process 1 first, so that nspawn hands the NICs back."""
        process = self._process
        leader, self.leader = self.leader, None
        if process is None or process.returncode is not None:
            return
        if leader is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(leader, signal.SIGKILL)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), 5)
        if process.returncode is None:
            process.kill()
            await process.wait()

    def _write_serial(self, text: str) -> None:
        with (self._folder / "serial.log").open("a") as log:
            log.write(text)

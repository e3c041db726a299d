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
from collections.abc import Awaitable, Callable
from enum import Enum
from pathlib import Path

from multinic.lab.guests.image import Image
from multinic.lab.guests.nspawn import Nspawn
from multinic.lab.namespaces import Namespace, unplug_all
from multinic.lab.substrate import Machine, MachineEvent, SubstrateError

PANIC_PAUSE = 10.0
"""Seconds between a panic and the reboot: ``kernel.panic`` of Google's images."""
REBOOT = 133
"""nspawn's exit code for a guest that asked for a reboot, with --keep-unit."""
POWER_OFF = signal.SIGRTMIN + 4
"""systemd as process 1 takes it for ``systemctl poweroff``; see systemd(1)."""


def _told(key: str, error: OSError) -> SubstrateError:
    """What the host's disk or kernel refused, with the cure of the usual case."""
    where = f" ({error.filename})" if error.filename else ""
    return SubstrateError(f"{key} cannot run: {error.strerror}{where}; free some space or memory, and start it again")


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
        self._folder = folder
        self._nspawn = Nspawn(folder, image, self.staging, index, nic_names)
        self._plug = plug
        self._tell = tell
        self._panic_pause = panic_pause
        self._life: asyncio.Task[None] | None = None
        self._first_boot: asyncio.Future[None] | None = None
        self._reason: _Reason | None = None
        self._panicked = False
        self._wake = asyncio.Event()

    @property
    def leader(self) -> int | None:
        """Process id of the guest's process 1, in the daemon's process namespace; None while it does not run."""
        return self._nspawn.leader

    @property
    def alive(self) -> bool:
        """Whether the VM is on: running, booting, or silent after a panic."""
        return self._life is not None and not self._life.done()

    async def start(self) -> None:
        """Switches on and returns once process 1 runs."""
        first = self._first_boot
        if self._life is not None and first is not None and first.done() and first.exception() is not None:
            # It failed and is being tidied up.
            await asyncio.wait({self._life})
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
        self._nspawn.close()
        await self.staging.delete()
        await asyncio.to_thread(shutil.rmtree, self._folder, True)

    async def reset(self) -> None:
        """Dies and boots again."""
        await self._die(_Reason.RESET)

    async def panic(self) -> None:
        """Dies silently and boots again after the kernel's pause; one that has panicked already has nothing to add."""
        if not self._panicked:
            await self._die(_Reason.PANIC)
        self._tell(MachineEvent.PANICKED)

    async def cut_power(self) -> None:
        """Dies and stays off."""
        await self._die(_Reason.CUT)

    def freeze(self, frozen: bool) -> None:
        """Freezes or thaws the guest's programs; forwarding is the kernel's and goes on."""
        self._nspawn.freeze(frozen)

    def cpu_seconds(self) -> float:
        """CPU time of the guest's programs since it was created."""
        return self._nspawn.cpu_seconds()

    def serial_output(self) -> str:
        """What the console printed, the newest megabyte of it."""
        return self._nspawn.serial_output()

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
            # Between two boots the wait is cut short; in the middle of a boot, its end is seen to there.
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
                self._panicked = False
                await self._plug()
                await self._nspawn.boot(self.machine)
                if not first_boot.done():
                    first_boot.set_result(None)
                self._tell(MachineEvent.BOOTED)
                if self._reason is not None:
                    # It came while the guest booted.
                    self._end(self._reason)
                code = await self._nspawn.wait()
                reason = self._reason
                if reason is _Reason.PANIC:
                    self._panicked = True
                    pause = self._panic_pause
                elif reason is _Reason.RESET or (reason is None and code == REBOOT):
                    pause = 0.0
                else:
                    if reason is not _Reason.STOP:
                        self._tell(MachineEvent.STOPPED)
                    return
        except (SubstrateError, OSError) as caught:
            error = caught if isinstance(caught, SubstrateError) else _told(self.machine.key, caught)
            if first_boot.done():
                with contextlib.suppress(OSError):
                    self._nspawn.print(str(error))
                self._tell(MachineEvent.STOPPED)
            else:
                first_boot.set_exception(error)
                # Whoever started it may be gone.
                first_boot.exception()
        finally:
            if not first_boot.done():
                first_boot.set_exception(SubstrateError(f"{self.machine.key} was switched off while it booted"))
                first_boot.exception()
            await asyncio.shield(asyncio.ensure_future(self._nspawn.kill()))

    async def _sleep(self, seconds: float) -> None:
        self._wake.clear()
        if seconds > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), seconds)

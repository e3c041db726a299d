"""The daemon's side of `multinic lab exec`: runs programs in guests for whoever may open the lab's control socket.

A program gets the caller's own standard input, output and error, runs in all of the guest's namespaces and in a
control group of its own below the guest's, with no more capabilities than the guest's process 1, and is killed when
its caller goes away.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import re
import signal
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path

from multinic.lab.guests import channel
from multinic.lab.remains import CONTROL_SOCKET
from multinic.lab.substrate import SubstrateError

ENVIRONMENT = {
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "LOGNAME": "root",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "USER": "root",
}
JOIN = 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"'
"""First into the guest's control group, so that entering its cgroup namespace makes that group's parent the root."""


class ControlSocket:
    """Listens in the lab's folder."""

    def __init__(self, folder: Path, leader_of: Callable[[str], int]) -> None:
        """Does not listen yet.

        Args:
            folder: The lab's folder.
            leader_of: Name or key of a machine → process id of its guest's process 1; raises `SubstrateError`.
        """
        self._folder = folder
        self._leader_of = leader_of
        self._numbers = itertools.count()
        self._listener: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Begins to listen; only the lab's owner may connect."""
        (self._folder / CONTROL_SOCKET).unlink(missing_ok=True)
        listener = channel.make()
        mask = os.umask(0o177)
        try:
            channel.at_control_socket(self._folder, listener.bind)
        finally:
            os.umask(mask)
        listener.listen(64)
        listener.setblocking(False)
        self._listener = listener
        self._spawn(self._accept(listener))

    async def close(self) -> None:
        """Ends all programs and stops listening."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._listener is not None:
            self._listener.close()
            (self._folder / CONTROL_SOCKET).unlink(missing_ok=True)

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            connection, _ = await asyncio.get_running_loop().sock_accept(listener)
            self._spawn(self._serve(connection))

    async def _serve(self, connection: socket.socket) -> None:
        handles: list[int] = []
        with connection:
            connection.setblocking(False)
            try:
                await _readable(connection)
                message, handles, _, _ = socket.recv_fds(connection, channel.MAX_MESSAGE, 3)
                if not message:
                    return
                reply = await self._execute(connection, json.loads(message), handles)
            except SubstrateError as error:
                reply = {"error": str(error)}
            except (ValueError, KeyError, TypeError) as error:
                reply = {"error": f"not a request: {error!r}"}
            finally:
                for handle in handles:
                    with contextlib.suppress(OSError):
                        os.close(handle)
            with contextlib.suppress(OSError):
                await asyncio.get_running_loop().sock_sendall(connection, json.dumps(reply).encode())

    async def _execute(
        self, connection: socket.socket, request: dict[str, object], handles: list[int]
    ) -> dict[str, object]:
        argv = request["argv"]
        if (
            not isinstance(argv, list)
            or not argv
            or not all(isinstance(word, str) for word in argv)
            or len(handles) != 3
        ):
            raise ValueError("argv must be words, and three file descriptors must come with it")
        leader = self._leader_of(str(request["machine"]))
        group = _group_of(leader) / f"lab-exec-{next(self._numbers)}"
        term = request.get("term")
        environment = ENVIRONMENT | ({"TERM": term} if isinstance(term, str) else {})
        try:
            group.mkdir()
            process = await asyncio.create_subprocess_exec(
                *("sh", "-c", JOIN, "sh", str(group)),
                *(
                    "nsenter",
                    "--target",
                    str(leader),
                    "--mount",
                    "--uts",
                    "--ipc",
                    "--net",
                    "--pid",
                    "--cgroup",
                    "--root",
                    "--wd",
                ),
                *("setpriv", f"--bounding-set={_capabilities(leader)}", "--inh-caps=-all", "--", *argv),
                stdin=handles[0],
                stdout=handles[1],
                stderr=handles[2],
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise SubstrateError(f"{request['machine']}: the guest has just ended ({error.strerror})") from None
        # The caller's pipe must see its end when the program is done, so no copy stays here.
        while handles:
            os.close(handles.pop())
        gone = asyncio.create_task(_readable(connection))
        done = asyncio.create_task(process.wait())
        try:
            await asyncio.wait({gone, done}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not done.done():
                _kill(group, process.pid)
            code = await done
            with contextlib.suppress(OSError):
                group.rmdir()
        return {"exit": 128 - code if code < 0 else code}


def _group_of(leader: int) -> Path:
    """The control group that holds all of the guest."""
    try:
        path = Path(f"/proc/{leader}/cgroup").read_text().rpartition("::")[2].strip()
    except OSError:
        raise SubstrateError("the guest has just ended") from None
    return Path("/sys/fs/cgroup", path.lstrip("/").removesuffix("/init.scope"))


def _capabilities(leader: int) -> str:
    """The guest's own bounding set, in setpriv's words."""
    try:
        status = Path(f"/proc/{leader}/status").read_text()
    except OSError:
        raise SubstrateError("the guest has just ended") from None
    found = re.search(r"^CapBnd:\s*([0-9a-f]+)", status, re.MULTILINE)
    mask = int(found[1], 16) if found else 0
    return ",".join(["-all", *(f"+cap_{number}" for number in range(64) if mask >> number & 1)])


def _kill(group: Path, pid: int) -> None:
    try:
        # Kernel 5.14 and newer: all processes of the group, whatever session they are in.
        (group / "cgroup.kill").write_text("1")
    except OSError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


async def _readable(connection: socket.socket) -> None:
    """Returns when a message, or the end of the connection, has come."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(connection, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(connection)

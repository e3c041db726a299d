"""The metadata server: 169.254.169.254 in every VPC network, which knows a VM by the address of its nic0."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from multinic.lab.fabric.vpc import Vpc
from multinic.lab.guests import metadata
from multinic.lab.guests.metadata import Answer

PORT = 80
IDLE = 60.0
"""Seconds after which a connection without a request is closed."""
FORBIDDEN = Answer(403, b"Missing Metadata-Flavor:Google header.\n", "text/html; charset=UTF-8")
"""Keeps programs from being tricked into asking. https://docs.cloud.google.com/compute/docs/metadata/querying-metadata"""


class MetadataServer:
    """One listener in each network, one source of answers."""

    def __init__(self, token: str) -> None:
        """Begins without VMs.

        Args:
            token: What service accounts of VMs get as access token.
        """
        self.metadata_of: Callable[[str], dict[str, Any] | None] = lambda _: None
        self._token = token
        self._machines: dict[tuple[str, str], str] = {}
        self._servers: dict[str, asyncio.Server] = {}
        self._connections: dict[str, set[asyncio.Task[None]]] = {}
        self._changes: dict[str, asyncio.Event] = {}

    async def listen(self, network: str, vpc: Vpc) -> None:
        """Answers in a network from now on."""
        if network in self._servers:
            return
        tasks = self._connections.setdefault(network, set())

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                await self._serve(network, reader, writer)
            finally:
                tasks.discard(task)
                writer.close()

        self._servers[network] = await asyncio.start_server(serve, sock=vpc.listen(PORT), limit=65536)

    async def leave(self, network: str) -> None:
        """Stops answering in a network; an open socket would keep its namespace alive."""
        server = self._servers.pop(network, None)
        if server is None:
            return
        server.close()
        tasks = self._connections.pop(network)
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def know(self, network: str, address: str, machine: str) -> None:
        """Says which VM has this address as its nic0's."""
        self._machines[network, address] = machine

    def forget(self, network: str, address: str, machine: str) -> None:
        """Takes `know` back, unless the address is another VM's by now."""
        if self._machines.get((network, address)) == machine:
            del self._machines[network, address]
            self.changed(machine)

    def changed(self, machine: str) -> None:
        """Wakes requests of this VM that wait for a change."""
        self._changes.pop(machine, asyncio.Event()).set()

    async def _serve(self, network: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(
            OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError
        ):
            while True:
                async with asyncio.timeout(IDLE):
                    head = await reader.readuntil(b"\r\n\r\n")
                lines = head.decode("latin-1").split("\r\n")
                method, target, _ = lines[0].split(" ", 2)
                headers = {
                    n.strip().lower(): v.strip() for n, _, v in (line.partition(":") for line in lines[1:] if line)
                }
                if headers.get("content-length", "0") != "0":
                    await reader.readexactly(int(headers["content-length"]))
                address = str(writer.get_extra_info("peername")[0])
                machine = self._machines.get((network, address))
                if machine is None:
                    # The address of another NIC, or of no VM: as if nobody were there.
                    return
                reply = await self._answer(machine, method, target, headers, reader)
                if reply is None:
                    return
                close = headers.get("connection", "").lower() == "close" or lines[0].endswith("HTTP/1.0")
                writer.write(_encode(reply, close=close, body=method != "HEAD"))
                await writer.drain()
                if close:
                    return

    async def _answer(
        self, machine: str, method: str, target: str, headers: dict[str, str], reader: asyncio.StreamReader
    ) -> Answer | None:
        """The answer, after a wait if asked for; None if the asker has gone meanwhile."""
        if headers.get("metadata-flavor") != "Google" or "x-forwarded-for" in headers:
            return FORBIDDEN
        if method not in {"GET", "HEAD"}:
            return Answer(405, b"Method not allowed\n", "text/html; charset=UTF-8")
        query = metadata.parse(target)
        if query is None:
            listing = Answer(200, b"computeMetadata/\n")
            return listing if target in {"", "/"} else metadata.MISSING
        ends = None if query.timeout is None else asyncio.get_running_loop().time() + query.timeout
        first: str | None = query.last_etag
        while True:
            change = self._changes.setdefault(machine, asyncio.Event())
            tree = self.metadata_of(machine)
            answer = metadata.MISSING if tree is None else metadata.answer(tree, query, self._token)
            if not query.wait or answer.status != 200:
                return answer
            if first is None:
                first = answer.etag
            elif answer.etag != first:
                return answer
            if not await _until(change, ends, reader):
                return None
            if ends is not None and asyncio.get_running_loop().time() >= ends:
                return answer


async def _until(change: asyncio.Event, ends: float | None, reader: asyncio.StreamReader) -> bool:
    """Waits for the change or the time; False when the asker hangs up first."""
    changed = asyncio.create_task(change.wait())
    gone = asyncio.create_task(_end_of(reader))
    try:
        left = None if ends is None else max(0.0, ends - asyncio.get_running_loop().time())
        await asyncio.wait({changed, gone}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        return not gone.done()
    finally:
        for task in (changed, gone):
            task.cancel()
        await asyncio.gather(changed, gone, return_exceptions=True)


async def _end_of(reader: asyncio.StreamReader) -> None:
    # Nobody sends a second request before the first is answered; its bytes would be lost here.
    with contextlib.suppress(OSError):
        await reader.read(1)


def _encode(answer: Answer, *, close: bool, body: bool) -> bytes:
    head = [
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}",
        "Metadata-Flavor: Google",
        "Server: Metadata Server for VM",
        f"ETag: {answer.etag}",
        f"Content-Type: {answer.kind}",
        f"Content-Length: {len(answer.body)}",
        *(["Connection: close"] if close else []),
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + (answer.body if body else b"")

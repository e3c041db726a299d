"""The metadata server: 169.254.169.254 in every VPC network, which knows a VM by the address of its nic0."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from multinic.lab.fabric.vpc import Vpc
from multinic.lab.guests import connections, metadata
from multinic.lab.guests.connections import Listeners, Request
from multinic.lab.guests.metadata import Answer

PORT = 80
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
        self.change_guest_attribute: Callable[[str, str, str, str | None], tuple[int, str]] = lambda *_: (404, "")
        self._token = token
        self._machines: dict[tuple[str, str], str] = {}
        self._listeners = Listeners()
        self._changes: dict[str, asyncio.Event] = {}

    async def listen(self, network: str, vpc: Vpc) -> None:
        """Answers in a network from now on."""
        if network in self._listeners:
            return

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._serve(network, reader, writer)

        await self._listeners.open(network, vpc.listen(PORT), serve)

    async def leave(self, network: str) -> None:
        """Stops answering in a network."""
        await self._listeners.close(network)

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
        address = str(writer.get_extra_info("peername")[0])
        async with contextlib.aclosing(connections.requests(reader)) as requests:
            async for request in requests:
                machine = self._machines.get((network, address))
                if machine is None:
                    # The address of another NIC, or of no VM: as if nobody were there.
                    return
                reply = await self._answer(machine, request, reader)
                if reply is None:
                    return
                headers = {
                    "Metadata-Flavor": "Google",
                    "Server": "Metadata Server for VM",
                    "ETag": reply.etag,
                    "Content-Type": reply.kind,
                }
                with contextlib.suppress(OSError):
                    await connections.answer(writer, request, reply.status, headers, reply.body)

    async def _answer(self, machine: str, request: Request, reader: asyncio.StreamReader) -> Answer | None:
        """The answer, after a wait if asked for; None if the asker has gone meanwhile."""
        if request.headers.get("metadata-flavor") != "Google" or "x-forwarded-for" in request.headers:
            return FORBIDDEN
        query = metadata.parse(request.target)
        if request.method not in {"GET", "HEAD"}:
            return self._change(machine, request, query.path if query else ())
        if query is None:
            listing = Answer(200, b"computeMetadata/\n")
            return listing if request.target in {"", "/"} else metadata.MISSING
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

    def _change(self, machine: str, request: Request, path: tuple[str, ...]) -> Answer:
        """Guest attributes are the one thing that a VM may write."""
        if request.method not in {"PUT", "DELETE"} or path[:2] != metadata.GUEST_ATTRIBUTES or len(path) != 4:
            return Answer(405, b"Method not allowed\n", "text/html; charset=UTF-8")
        value = request.body.decode(errors="replace") if request.method == "PUT" else None
        status, text = self.change_guest_attribute(machine, path[2], path[3], value)
        return Answer(status, text.encode())


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

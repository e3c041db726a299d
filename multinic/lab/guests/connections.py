"""HTTP from VMs: listeners in the networks' namespaces, and requests and answers of one connection."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from socket import socket

IDLE = 60.0
"""Seconds after which a connection without a request is closed."""
BIGGEST_HEAD = 65536
BIGGEST_BODY = 4 * 1024 * 1024

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes:
        method: ``GET`` …
        target: Path and query.
        headers: Names in lower case.
        body: What came with it.
        last: The asker wants the connection closed afterwards.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    last: bool


class Listeners:
    """One listener in each network, and the connections that came of it."""

    def __init__(self) -> None:
        """Listens nowhere."""
        self._servers: dict[str, asyncio.Server] = {}
        self._connections: dict[str, set[asyncio.Task[None]]] = {}

    def __contains__(self, network: str) -> bool:
        return network in self._servers

    async def open(self, network: str, listener: socket, serve: Serve, context: ssl.SSLContext | None = None) -> None:
        """Has `serve` called for each connection; with a `context` by TLS."""
        tasks = self._connections.setdefault(network, set())

        async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                await serve(reader, writer)
            finally:
                tasks.discard(task)
                writer.close()

        self._servers[network] = await asyncio.start_server(hold, sock=listener, limit=BIGGEST_HEAD, ssl=context)

    async def close(self, network: str) -> None:
        """Ends all in a network; an open socket would keep its namespace alive."""
        server = self._servers.pop(network, None)
        if server is None:
            return
        server.close()
        tasks = self._connections.pop(network)
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def requests(reader: asyncio.StreamReader) -> AsyncGenerator[Request, None]:
    """The requests of a connection, until it ends, goes idle, or sends what is none."""
    with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        while True:
            request = await _read(reader)
            yield request
            if request.last:
                return


async def _read(reader: asyncio.StreamReader) -> Request:
    async with asyncio.timeout(IDLE):
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ", 2)
        headers = {n.strip().lower(): v.strip() for n, _, v in (line.partition(":") for line in lines[1:] if line)}
        length = int(headers.get("content-length", "0"))
        if not 0 <= length <= BIGGEST_BODY:
            raise ValueError(f"{length} bytes")
        body = await reader.readexactly(length)
    last = headers.get("connection", "").lower() == "close" or lines[0].endswith("HTTP/1.0")
    return Request(method, target, headers, body, last)


async def answer(
    writer: asyncio.StreamWriter, request: Request, status: int, headers: Mapping[str, str], body: bytes
) -> None:
    """Sends the answer to a request."""
    head = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        *(f"{name}: {value}" for name, value in headers.items()),
        f"Content-Length: {len(body)}",
        *(["Connection: close"] if request.last else []),
    ]
    writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + (b"" if request.method == "HEAD" else body))
    await writer.drain()

"""Health probes: real connections from Google's probe range to one machine's NIC, by HTTP, HTTPS, TCP or SSL.

A machine that is silent makes a probe really time out: the time that it takes to notice is what the lab measures.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from dataclasses import dataclass
from functools import cache

from multinic.lab.fabric.port import Port
from multinic.lab.fabric.ruleset import PROBER
from multinic.lab.namespaces import Namespace
from multinic.lab.substrate import Probe, ProbeResult

MAX_ANSWER = 65536
"""Bytes of an answer that are read; what Google compares lies in the first 1024."""
COMPARED = 1024
"""Discovery document compute.v1, ``HTTPHealthCheck.response`` and ``TCPHealthCheck.response``."""
SILENT = ProbeResult(False, "timeout")


@dataclass(frozen=True)
class _Connection:
    """Both directions of an open connection to the machine."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, text: str) -> None:
        """Sends a text as it is."""
        self.writer.write(text.encode())
        await self.writer.drain()


async def send(probe: Probe, namespace: Namespace, port: Port | None) -> ProbeResult:
    """Sends one probe and waits for its answer, no longer than its timeout.

    Args:
        probe: What to ask and where.
        namespace: The network's.
        port: The NIC that must receive it, whoever else owns the same address; None if the machine has none there.
    """
    loop = asyncio.get_running_loop()
    ends = loop.time() + probe.timeout
    if port is not None:
        try:
            async with asyncio.timeout_at(ends):
                return await _ask(probe, namespace, port)
        except TimeoutError:
            return SILENT
        except ConnectionRefusedError:
            return ProbeResult(False, "refused")
        except ConnectionResetError:
            return ProbeResult(False, "reset")
        except ssl.SSLError as error:
            return ProbeResult(False, f"no TLS: {error.reason}")
        except OSError:
            # No way to the machine: for a prober outside of it that is silence, not an answer.
            pass
    await asyncio.sleep(max(0.0, ends - loop.time()))
    return SILENT


async def _ask(probe: Probe, namespace: Namespace, port: Port) -> ProbeResult:
    with namespace.socket(socket.AF_INET, socket.SOCK_STREAM) as raw:
        # All routers own the load balancer's address: the mark chooses the one.
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, port.index)
        raw.bind((str(PROBER), 0))
        await asyncio.get_running_loop().sock_connect(raw, (str(probe.address), probe.port))
        reader, writer = await asyncio.open_connection(sock=raw)
        try:
            connection = _Connection(reader, writer)
            if probe.proxy:
                source, number = raw.getsockname()
                # https://www.haproxy.org/download/1.8/doc/proxy-protocol.txt, section 2.1
                await connection.send(f"PROXY TCP4 {source} {probe.address} {number} {probe.port}\r\n")
            if probe.tls:
                await writer.start_tls(_any_certificate())
            return await (_by_http(probe, connection) if probe.http else _by_text(probe, connection))
        finally:
            writer.transport.abort()


@cache
def _any_certificate() -> ssl.SSLContext:
    """Google's probers look at no certificate.

    https://cloud.google.com/load-balancing/docs/ssl-certificates/encryption-to-the-backends
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _by_http(probe: Probe, connection: _Connection) -> ProbeResult:
    await connection.send(
        f"GET {probe.path} HTTP/1.1\r\nHost: {probe.host or probe.address}\r\nUser-Agent: GoogleHC/1.0\r\n"
        "Accept: */*\r\nConnection: close\r\n\r\n"
    )
    answer = b""
    while len(answer) < MAX_ANSWER and not _complete(answer):
        more = await connection.reader.read(MAX_ANSWER)
        if not more:
            break
        answer += more
    return _result(answer, probe.response.encode())


async def _by_text(probe: Probe, connection: _Connection) -> ProbeResult:
    """The connection alone, or what the machine says in it.

    https://cloud.google.com/load-balancing/docs/health-check-concepts#criteria-protocol-ssl-tcp
    """
    if probe.request:
        await connection.send(probe.request)
    wanted = probe.response.encode()
    if not wanted:
        return ProbeResult(True, "connected")
    answer = b""
    while len(answer) < len(wanted):
        more = await connection.reader.read(COMPARED)
        if not more:
            break
        answer += more
    same = answer[: len(wanted)] == wanted
    return ProbeResult(same, "answered" if same else "another answer" if answer else "closed without an answer", answer)


def _complete(answer: bytes) -> bool:
    """Whether all of the announced body is there, for servers that keep the connection open."""
    head, separator, body = answer.partition(b"\r\n\r\n")
    if not separator:
        return False
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return len(body) >= int(value)
    return False


def _result(answer: bytes, wanted: bytes) -> ProbeResult:
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(b"\r\n")[0].split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        return ProbeResult(False, "no HTTP answer" if answer else "closed without an answer")
    status = int(words[1])
    if status == 200 and wanted not in body[:COMPARED]:
        return ProbeResult(False, "http 200, another answer", body)
    return ProbeResult(status == 200, f"http {status}", body)

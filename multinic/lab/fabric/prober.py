"""Health probes: real HTTP requests from Google's probe range to one machine's NIC.

A machine that is silent makes a probe really time out: the time that it takes to notice is what the lab measures.
"""

from __future__ import annotations

import asyncio
import socket

from multinic.lab.fabric.port import Port
from multinic.lab.fabric.ruleset import PROBER
from multinic.lab.namespaces import Namespace
from multinic.lab.substrate import Probe, ProbeResult

MAX_ANSWER = 65536
"""Bytes of an answer that are read; what Google compares lies in the first 1024."""
SILENT = ProbeResult(False, "timeout")


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
        except OSError:
            # No way to the machine: for a prober outside of it that is silence, not an answer.
            pass
    await asyncio.sleep(max(0.0, ends - loop.time()))
    return SILENT


async def _ask(probe: Probe, namespace: Namespace, port: Port) -> ProbeResult:
    loop = asyncio.get_running_loop()
    with namespace.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        # All routers own the load balancer's address: the mark chooses the one.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, port.index)
        connection.bind((str(PROBER), 0))
        await loop.sock_connect(connection, (str(probe.address), probe.port))
        request = (
            f"GET {probe.path} HTTP/1.1\r\nHost: {probe.host or probe.address}\r\nUser-Agent: GoogleHC/1.0\r\n"
            "Accept: */*\r\nConnection: close\r\n\r\n"
        )
        await loop.sock_sendall(connection, request.encode())
        answer = b""
        while len(answer) < MAX_ANSWER and not _complete(answer):
            more = await loop.sock_recv(connection, MAX_ANSWER)
            if not more:
                break
            answer += more
    return _result(answer)


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


def _result(answer: bytes) -> ProbeResult:
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(b"\r\n")[0].split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        return ProbeResult(False, "no HTTP answer" if answer else "closed without an answer")
    status = int(words[1])
    return ProbeResult(status == 200, f"http {status}", body)

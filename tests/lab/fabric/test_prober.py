"""Probes by TCP, SSL and HTTPS, and what a check wants to hear; plain HTTP and silence: `test_firewall.py`."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from multinic.lab.fabric import prober
from multinic.lab.guests.authority import Authority
from multinic.lab.substrate import FirewallRule, Probe
from tests.lab.fabric.rig import OPEN, Rig
from tests.lab.inside import run_inside

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def by_every_protocol(folder: Path) -> None:
    rig = Rig()
    network = await rig.network(0)
    await network.change(firewall=[OPEN])
    inside = await rig.machine("m", {0: "10.0.0.10"})
    heard: list[bytes] = []

    async def listen(port: int, talk: Talk, context: ssl.SSLContext | None = None) -> None:
        listener = inside.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.bind(("0.0.0.0", port))
        listener.listen(100)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await talk(reader, writer)
            finally:
                writer.close()

        await asyncio.start_server(serve, sock=listener, ssl=context)

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"ready and more")
        await reader.read()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"?"))
        writer.write(b"yes: " + heard[-1])

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + b"a" * 1000 + b"good" + b"b" * 996)

    tls = Authority(["m"]).context
    for port, talk, context in ((1, greet, None), (2, echo, None), (3, answer, None), (4, echo, tls), (5, answer, tls)):
        await listen(port, talk, context)
    plugged = next(iter(network.vpc.ports.values()))

    async def ask(port: int, **more: object) -> tuple[bool, str]:
        more.setdefault("timeout", 5.0)
        more.setdefault("path", "/x")
        probe = Probe(network.vpc.plan.key, "m", IPv4Address("10.0.0.10"), port, **more)  # type: ignore[arg-type]
        result = await prober.send(probe, network.vpc.namespace, plugged)
        return result.healthy, result.detail

    # TCP: the connection alone; what comes by itself; what is answered to a question.
    assert await ask(1, http=False) == (True, "connected")
    assert await ask(1, http=False, response="ready") == (True, "answered")
    assert await ask(1, http=False, response="and") == (False, "another answer"), "it begins with something else"
    assert await ask(1, http=False, response="ready and more, but later", timeout=0.5) == (False, "timeout")
    assert await ask(2, http=False, request="well?", response="yes: well?") == (True, "answered")
    assert await ask(2, http=False, request="well?", response="yes: well? and then") == (False, "another answer")
    assert await ask(9, http=False) == (False, "refused")
    # In TLS, whatever the certificate; who does not speak it is not healthy.
    assert await ask(4, http=False, tls=True) == (True, "connected")
    assert await ask(4, http=False, tls=True, request="well?", response="yes") == (True, "answered")
    healthy, detail = await ask(1, http=False, tls=True)
    assert not healthy and detail.startswith("no TLS")
    # HTTP and HTTPS: 200, and what is wanted stands in the first 1024 bytes of the body.
    assert await ask(3) == (True, "http 200")
    assert await ask(3, response="good") == (True, "http 200")
    assert await ask(3, response="bbb" * 30) == (False, "http 200, another answer")
    assert await ask(5, tls=True, host="m") == (True, "http 200")
    assert heard[-1].startswith(b"GET /x HTTP/1.1\r\nHost: m\r\n")
    # The PROXY header comes first, before TLS.
    assert await ask(2, http=False, proxy=True, request="well?", response="yes: PROXY TCP4 35.191.") == (
        True,
        "answered",
    )
    assert heard[-1].endswith(b" 10.0.0.10 " + heard[-1].split()[4] + b" 2\r\nwell?")
    # The firewall is in the way of a connection as of a request.
    nearby = (IPv4Network("10.0.0.0/8"),)
    await network.change(firewall=[FirewallRule("near", 1000, True, True, nearby, (("all", ()),))])
    assert await ask(1, http=False, timeout=0.5) == (False, "timeout")


@pytest.mark.root
@pytest.mark.parametrize("check", [by_every_protocol], ids=lambda check: check.__name__)
def test_probes(check: object, tmp_path: Path) -> None:
    run_inside(check, tmp_path)  # type: ignore[arg-type]

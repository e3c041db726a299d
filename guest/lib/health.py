"""The health endpoints: small single-threaded HTTP servers that answer from the verdict file.

They hold no lock, start no program and wait for nobody, so that a probe is answered in well under a millisecond of CPU
time, and no client can hold up another: whoever sends nothing, or too much, is closed.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time

import paths
import verdict
from notify import notify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    Judge = Callable[[dict[str, Any], float], list[dict[str, str]]]

MAX_CLIENTS = 128
"""Connections that wait for their request's end; beyond it the oldest goes."""

CLIENT_SECONDS = 2.0
"""A prober sends its request at once."""

MAX_REQUEST = 4096


def settings(kind: str) -> tuple[int, str]:
    """Port and path, from the file that the start-up script keeps; reference values before it has ever run."""
    port, path = {"traffic": 9001, "heal": 9000}[kind], "/status.json"
    try:
        held = json.loads(paths.read(paths.CONFIG) or "{}")
        return int(held.get(f"{kind}_port") or port), str(held.get("request_path") or path)
    except (ValueError, TypeError, AttributeError, OSError):
        return port, path


def answer(request: bytes, path: str, judge: Judge) -> bytes:
    """The whole response to a request."""
    words = request.split(b"\r\n", 1)[0].split(b" ")
    if len(words) < 2 or words[0] not in (b"GET", b"HEAD"):
        return _response(405, {"status": "GET only"}, False)
    if words[1].split(b"?", 1)[0] != path.encode():
        return _response(404, {"status": f"ask for {path}"}, words[0] == b"HEAD")
    held = verdict.load()
    reasons = judge(held, time.monotonic())
    if not reasons:
        status = "ok"
    elif any(reason.get("name") == "drained" for reason in reasons) and len(reasons) == 1:
        status = "drained"
    else:
        status = "unhealthy"
    body = {
        "status": status,
        "reasons": reasons,
        "repairs": held.get("repairs", 0),
        "warnings": held.get("warnings", []),
    }
    return _response(503 if reasons else 200, body, words[0] == b"HEAD")


def _response(code: int, body: dict[str, Any], head: bool) -> bytes:
    content = (json.dumps(body) + "\n").encode()
    phrase = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}[code]
    headers = (
        f"HTTP/1.1 {code} {phrase}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return headers.encode() + (b"" if head else content)


class Server:
    """One endpoint on all addresses: probes come to NIC addresses and to forwarding rules' addresses alike."""

    def __init__(self, port: int, path: str, judge: Judge) -> None:
        self.path, self.judge = path, judge
        self.listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("0.0.0.0", port))
        self.listener.listen(1024)
        self.poller = select.epoll()
        self.poller.register(self.listener.fileno(), select.EPOLLIN)
        self.clients: dict[int, tuple[socket.socket, float, bytes]] = {}
        self.running = True

    def run(self) -> None:
        """Serves until `running` is false."""
        while self.running:
            for descriptor, _ in self.poller.poll(CLIENT_SECONDS if self.clients else -1):
                if descriptor == self.listener.fileno():
                    self._accept()
                elif descriptor in self.clients:
                    self._read(descriptor)
            limit = time.monotonic() - CLIENT_SECONDS
            for descriptor in [key for key, (_, since, _) in self.clients.items() if since < limit]:
                self._close(descriptor)

    def _accept(self) -> None:
        for _ in range(64):
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            client.setblocking(False)
            self.clients[client.fileno()] = (client, time.monotonic(), b"")
            self.poller.register(client.fileno(), select.EPOLLIN)
            if len(self.clients) > MAX_CLIENTS:
                self._close(next(iter(self.clients)))
            # The request is mostly there already: answering now saves a turn of the loop.
            if client.fileno() in self.clients:
                self._read(client.fileno())

    def _read(self, descriptor: int) -> None:
        client, since, held = self.clients[descriptor]
        try:
            more = client.recv(MAX_REQUEST)
        except BlockingIOError:
            return
        except OSError:
            more = b""
        held += more
        if b"\r\n\r\n" in held:
            try:
                client.send(answer(held, self.path, self.judge))
                client.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # The prober has gone.
        elif more and len(held) < MAX_REQUEST:
            self.clients[descriptor] = (client, since, held)
            return
        self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        client, _, _ = self.clients.pop(descriptor)
        client.close()


def main(kind: str) -> int:
    """Runs the endpoint ``traffic`` or ``heal``."""
    port, path = settings(kind)
    server = Server(port, path, verdict.traffic if kind == "traffic" else verdict.heal)
    # os._exit: nothing is to be saved, and the port must close at once: that is what drains.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    notify(f"READY=1\nSTATUS=port {port}")
    server.run()
    return 0

"""Somebody between the commands and the lab, who answers some requests as Google Cloud does, and breaks some."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

READS = re.compile("/(wait|getHealth|listManagedInstances|listErrors)([?]|$)|:(list|testIamPermissions)([?]|$)")
"""POST requests that change nothing."""
HANG = 0
"""A status that is none: the request is taken and never answered, until the end of the test."""


class Between:
    """Sends on what no rule of his names.

    Attributes:
        endpoint: Where he listens.
        asked: Method and path of every request, in order.
    """

    def __init__(self, behind: str) -> None:
        self._behind = urlsplit(behind)
        self._rules: list[tuple[re.Pattern[str], int, Any, list[int]]] = []
        self._end = threading.Event()
        self.asked: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def answer(self, request: str, status: int, body: Any = None, *, times: int = -1) -> None:
        """From now on answers requests whose ``METHOD /path`` matches, the latest rule first.

        Args:
            request: A regular expression.
            status: HTTP status, or `HANG`.
            body: JSON; a text is the message of an error in Google's form; bytes are sent as they are.
            times: How often; -1 always.
        """
        if isinstance(body, str):
            body = {"error": {"code": status, "message": body, "errors": [{"message": body, "reason": "forbidden"}]}}
        self._rules.insert(0, (re.compile(request), status, body, [times]))

    def forget(self) -> None:
        """Only sends on from now on."""
        self._rules.clear()
        self.asked.clear()

    def changes(self) -> list[str]:
        """The requests that were to change something."""
        return [one for one in self.asked if not one.startswith("GET ") and not READS.search(one)]

    def close(self) -> None:
        """Ends; whoever still waits is let go."""
        self._end.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _rule(self, request: str) -> tuple[int, Any] | None:
        for pattern, status, body, left in self._rules:
            if left[0] and pattern.search(request):
                left[0] -= 1
                return status, body
        return None

    def _handler(between) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - the handler inside has a self of its own
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                request = f"{self.command} {self.path}"
                between.asked.append(request)
                rule = between._rule(request)
                if rule is None:
                    self._send(*between._forward(self.command, self.path, content, dict(self.headers)))
                elif rule[0] == HANG:
                    between._end.wait()
                    self.close_connection = True
                else:
                    self._send(rule[0], rule[1] if isinstance(rule[1], bytes) else json.dumps(rule[1]).encode())

            def _send(self, status: int, content: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve  # noqa: N815 - the library calls them so

            def log_message(self, *args: Any) -> None:
                pass

        return Handler

    def _forward(self, method: str, path: str, content: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        assert self._behind.hostname is not None
        connection = http.client.HTTPConnection(self._behind.hostname, self._behind.port, timeout=150)
        try:
            kept = {name: value for name, value in headers.items() if name.lower() in ("authorization", "content-type")}
            connection.request(method, path, content or None, kept)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@contextmanager
def between(behind: str) -> Iterator[Between]:
    """Somebody between for as long as the block lasts."""
    made = Between(behind)
    try:
        yield made
    finally:
        made.close()

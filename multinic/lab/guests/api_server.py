"""Google's APIs as VMs of the lab see them: Cloud Logging by TLS, in each VPC network, with the VM's own token.

Other APIs have no name here, so a guest that needs one fails as it would without a way to Google.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
from collections.abc import Callable

from multinic.lab.fabric.ruleset import APIS
from multinic.lab.fabric.vpc import Vpc
from multinic.lab.guests import connections
from multinic.lab.guests.authority import Authority
from multinic.lab.guests.connections import Listeners, Request

PORT = 443
LOGGING = "logging.googleapis.com"
WRITE = "/v2/entries:write"
"""https://cloud.google.com/logging/docs/reference/v2/rest/v2/entries/write"""


class ApiServer:
    """One TLS listener in each network."""

    def __init__(self, token: str, authority: Authority) -> None:
        """Listens nowhere yet.

        Args:
            token: What VMs must send as bearer token: the one that the metadata server gives them.
            authority: Has the certificate.
        """
        self.write_log: Callable[[bytes], tuple[int, bytes]] = lambda _: _error(503, "UNAVAILABLE", "No log is kept.")
        self._token = token
        self._authority = authority
        self._listeners = Listeners()

    async def listen(self, network: str, vpc: Vpc) -> None:
        """Answers in a network from now on."""
        if network not in self._listeners:
            await self._listeners.open(network, vpc.listen(PORT, APIS), self._serve, self._authority.context)

    async def leave(self, network: str) -> None:
        """Stops answering in a network."""
        await self._listeners.close(network)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with contextlib.aclosing(connections.requests(reader)) as requests:
            async for request in requests:
                status, body = self._answer(request)
                headers = {"Content-Type": "application/json; charset=UTF-8", "Server": "ESF"}
                with contextlib.suppress(OSError):
                    await connections.answer(writer, request, status, headers, body)

    def _answer(self, request: Request) -> tuple[int, bytes]:
        host = request.headers.get("host", "").partition(":")[0].lower()
        if host != LOGGING or request.target.partition("?")[0] != WRITE:
            return _error(404, "NOT_FOUND", f"The lab does not serve {host}{request.target[:100]} to VMs.")
        if request.method != "POST":
            return _error(405, "INVALID_ARGUMENT", "Only POST.")
        word, _, value = request.headers.get("authorization", "").partition(" ")
        if word.lower() != "bearer" or not hmac.compare_digest(value.strip().encode(), self._token.encode()):
            return _error(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
        return self.write_log(request.body)


def _error(code: int, status: str, message: str) -> tuple[int, bytes]:
    return code, json.dumps({"error": {"code": code, "message": message, "status": status}}).encode()

"""Cloud Logging as VMs reach it: certificate, token, and requests that are none, on loopback."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, cast

import pytest

from multinic.lab.api.log import write_of_guest
from multinic.lab.cloud import Cloud
from multinic.lab.fabric.vpc import Vpc
from multinic.lab.guests.api_server import LOGGING, ApiServer
from multinic.lab.guests.authority import BUNDLE, Authority
from multinic.lab.substrate import NoMachines

TOKEN = "the guest's"
ENTRY = {"logName": "projects/lab/logs/multinic", "entries": [{"severity": "INFO", "jsonPayload": {"event": "e"}}]}


class Loopback:
    """In the place of a VPC network's namespace."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))

    def listen(self, port: int, address: IPv4Address) -> socket.socket:
        return self.listener


class Door:
    def __init__(self, port: int, root: Path, cloud: Cloud) -> None:
        self.port, self.cloud = port, cloud
        self.context = ssl.create_default_context(cafile=str(root / BUNDLE))
        # What Python 3.13 does by default.
        self.context.verify_flags |= ssl.VERIFY_X509_STRICT

    def open(self, name: str = LOGGING, context: ssl.SSLContext | None = None) -> http.client.HTTPSConnection:
        made = http.client.HTTPSConnection(name, timeout=30)
        raw = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        try:
            made.sock = (context or self.context).wrap_socket(raw, server_hostname=name)
        except BaseException:
            raw.close()
            raise
        return made

    def ask(
        self,
        connection: http.client.HTTPSConnection,
        body: Any = ENTRY,
        path: str = "/v2/entries:write",
        method: str = "POST",
        token: str = TOKEN,
    ) -> tuple[int, Any]:
        text = body if isinstance(body, str) else json.dumps(body)
        connection.request(method, path, text, {"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    """The server in a loop of its own, with a cloud behind it."""
    authority = Authority([LOGGING])
    authority.write_trust(tmp_path / "root")
    network = Loopback()
    ready, stop = threading.Event(), asyncio.Event()
    held: dict[str, Any] = {}

    async def serve() -> None:
        cloud = Cloud(tmp_path, NoMachines())
        server = ApiServer(TOKEN, authority)
        server.write_log = lambda body: write_of_guest(cloud, body)
        await server.listen("n", cast(Vpc, network))
        held.update(cloud=cloud, loop=asyncio.get_running_loop())
        ready.set()
        await stop.wait()
        await server.leave("n")

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(30)
        yield Door(network.listener.getsockname()[1], tmp_path / "root", held["cloud"])
    finally:
        held["loop"].call_soon_threadsafe(stop.set)
        thread.join(30)
        network.listener.close()


def test_entries_are_kept_and_the_connection_goes_on(door: Door) -> None:
    connection = door.open()
    assert door.ask(connection) == (200, {})
    assert door.ask(connection) == (200, {})
    connection.close()
    assert [entry["jsonPayload"] for entry in door.cloud.log_entries.all()] == [{"event": "e"}] * 2


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ({"token": "another"}, 401),
        ({"token": ""}, 401),
        ({"path": "/v2/entries:list"}, 404),
        ({"method": "PUT"}, 405),
        ({"body": "no JSON"}, 400),
        ({"body": "[" * 100_000}, 400),
        ({"body": {**ENTRY, "logName": "nonsense"}}, 400),
        ({"body": {**ENTRY, "logName": "projects/other/logs/multinic"}}, 403),
    ],
)
def test_refusals_have_googles_form(door: Door, what: dict[str, Any], code: int) -> None:
    connection = door.open()
    status, answer = door.ask(connection, **what)
    assert status == answer["error"]["code"] == code
    assert answer["error"]["message"] and answer["error"]["status"]
    assert door.ask(connection) == (200, {}), "the connection is none the worse"
    connection.close()
    assert len(door.cloud.log_entries.all()) == 1


def test_only_who_trusts_the_lab_gets_in_and_only_by_this_name(door: Door) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        door.open(context=ssl.create_default_context())
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        door.open("compute.googleapis.com")


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"x" * 200_000,
    ],
)
def test_nonsense_harms_nobody(door: Door, sent: bytes) -> None:
    for connection in (socket.create_connection(("127.0.0.1", door.port)), door.open().sock):
        connection.settimeout(30)
        with connection:
            try:
                connection.sendall(sent)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(100)
            except OSError:
                pass  # It may hang up before all is sent.
    connection = door.open()
    assert door.ask(connection) == (200, {})
    connection.close()


def test_no_key_is_written_anywhere(tmp_path: Path) -> None:
    Authority([LOGGING]).write_trust(tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files and all("PRIVATE" not in path.read_text() for path in files if not path.is_symlink())
    assert (tmp_path / BUNDLE).stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "etc").stat().st_mode & 0o777 == 0o755

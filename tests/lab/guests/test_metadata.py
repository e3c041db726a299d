"""What the metadata server answers to whom, and when."""

from __future__ import annotations

import asyncio
import json
import socket
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest

from multinic.lab.fabric.port import Port
from multinic.lab.fabric.vpc import Vpc
from multinic.lab.guests.metadata import answer, parse
from multinic.lab.guests.metadata_server import MetadataServer
from multinic.lab.namespaces import Namespace
from multinic.lab.substrate import NetworkPlan
from tests.lab.inside import run_inside

TREE: dict[str, Any] = {
    "instance": {
        "attributes": {"my-key": "one\ntwo", "camelCase": "x"},
        "id": 42,
        "name": "r1",
        "networkInterfaces": [
            {"ip": "10.0.0.2", "forwardedIps": ["10.0.0.100"], "mtu": 1460},
            {"ip": "10.1.0.2", "forwardedIps": [], "mtu": 8896},
        ],
        "serviceAccounts": {"default": {"email": "a@b", "scopes": ["s"]}},
        "tags": [],
    },
    "project": {"projectId": "lab"},
}
TEXT = "0/forwarded-ips/0 10.0.0.100\n0/ip 10.0.0.2\n0/mtu 1460\n1/ip 10.1.0.2\n1/mtu 8896\n"


def ask(target: str) -> tuple[int, str]:
    query = parse("/computeMetadata/v1" + target)
    assert query is not None
    found = answer(TREE, query, "secret")
    return found.status, found.body.decode()


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/instance/name", "r1"),
        ("/instance/id", "42"),
        ("/instance/attributes/my-key", "one\ntwo"),
        ("/instance/attributes/", "camelCase\nmy-key\n"),
        ("/instance/network-interfaces/", "0/\n1/\n"),
        ("/instance/networkInterfaces/1/mtu", "8896"),
        ("/instance/network-interfaces/0/forwarded-ips/0", "10.0.0.100"),
        ("/instance/network-interfaces/0/", "forwarded-ips/\nip\nmtu\n"),
        ("/project/project-id", "lab"),
        ("/instance/name?alt=json", '"r1"'),
        ("/instance/attributes/?alt=json", '["camelCase", "my-key"]'),
        ("/instance/service-accounts/default/email", "a@b"),
        (
            "/instance/network-interfaces/0/?recursive=true&alt=text",
            "forwarded-ips/0 10.0.0.100\nip 10.0.0.2\nmtu 1460\n",
        ),
    ],
)
def test_paths(target: str, expected: str) -> None:
    assert ask(target) == (200, expected)


@pytest.mark.parametrize(
    "target",
    [
        "/instance/nothing",
        "/instance/attributes/myKey",
        "/instance/attributes/camel-case",
        "/instance/network-interfaces/2/ip",
        "/instance/name/more",
        "/instance/service-accounts/other/token",
    ],
)
def test_what_is_not_there(target: str) -> None:
    assert ask(target)[0] == 404


def test_recursion_gives_the_tree_as_it_is() -> None:
    assert json.loads(ask("/?recursive=true")[1]) == TREE
    assert json.loads(ask("/instance/attributes/?recursive=true&alt=json")[1]) == TREE["instance"]["attributes"]


def test_tokens_of_the_accounts() -> None:
    assert json.loads(ask("/instance/service-accounts/default/token")[1])["access_token"] == "secret"


class Http:
    """Just enough of a client to see connections, headers and waiting."""

    def __init__(self, inside: Namespace) -> None:
        self._inside = inside

    async def get(
        self, target: str, *headers: str, verb: str = "GET", body: str = ""
    ) -> tuple[int, dict[str, str], str]:
        connection = self._inside.socket(socket.AF_INET, socket.SOCK_STREAM)
        await asyncio.get_running_loop().sock_connect(connection, ("169.254.169.254", 80))
        reader, writer = await asyncio.open_connection(sock=connection)
        more = [f"Content-Length: {len(body.encode())}"] if body else []
        lines = [f"{verb} {target} HTTP/1.1", "Host: m", "Connection: close", *headers, *more]
        writer.write("\r\n".join([*lines, "", body]).encode())
        try:
            text = (await reader.read()).decode()
        finally:
            writer.close()
        head, _, body = text.partition("\r\n\r\n")
        if not head:
            return 0, {}, ""
        lines = head.split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        return int(lines[0].split()[1]), fields, body

    async def metadata(self, target: str, **more: str) -> tuple[int, dict[str, str], str]:
        return await self.get(f"/computeMetadata/v1{target}", "Metadata-Flavor: Google", **more)


async def server(folder: Path) -> None:
    vpc = Vpc("projects/lab/global/networks/n0")
    await vpc.apply(NetworkPlan(vpc.plan.key, 1460, {"s": IPv4Network("10.0.0.0/24")}))
    clients = []
    for number, address in enumerate(("10.0.0.2", "10.0.0.3", "10.0.0.4"), 1):
        inside = Namespace(f"m{number}")
        await inside.create()
        port = Port(f"vm{number}", number, 0, IPv4Address(address), IPv4Address("10.0.0.1"), 1460, False)
        await vpc.plug(port, inside, "eth0")
        await inside.ip(
            *(f"address add {address}/32 dev eth0", "link set eth0 up"),
            *("route add 10.0.0.1 dev eth0", "route add default via 10.0.0.1"),
        )
        clients.append(Http(inside))
    served = MetadataServer("secret")
    trees: dict[str, dict[str, Any]] = {
        "vm1": {"instance": {"name": "vm1", "attributes": {"a": "1"}}},
        "vm2": {"instance": {"name": "vm2", "attributes": {}}},
    }
    served.metadata_of = trees.get
    await served.listen(vpc.plan.key, vpc)
    served.know(vpc.plan.key, "10.0.0.2", "vm1")
    served.know(vpc.plan.key, "10.0.0.3", "vm2")
    one, two, stranger = clients

    # Who asks is known by the address; a stranger gets nothing, with or without a firewall.
    status, fields, body = await one.metadata("/instance/name")
    assert (status, body, fields["metadata-flavor"]) == (200, "vm1", "Google")
    assert (await two.metadata("/instance/name"))[2] == "vm2"
    assert (await stranger.metadata("/instance/name"))[0] == 0
    assert (await one.get("/computeMetadata/v1/instance/name"))[0] == 403
    assert (await one.get("/computeMetadata/v1/instance/name", "Metadata-Flavor: Google", "X-Forwarded-For: 1.2.3.4"))[
        0
    ] == 403
    assert (await one.metadata("/nothing"))[0] == 404
    assert (await one.get("/", "Metadata-Flavor: Google"))[2] == "computeMetadata/\n"

    # Waiting: answered by a change of what was asked for, and by no other; by the time; at once with an old etag.
    etag = fields["etag"]
    waiting = "/instance/attributes/?recursive=true&wait_for_change=true"
    slow = asyncio.create_task(one.metadata(f"{waiting}&timeout_sec=60"))
    other = asyncio.create_task(one.metadata("/instance/name?wait_for_change=true&timeout_sec=60"))
    await asyncio.sleep(0.2)
    served.changed("vm1")
    await asyncio.sleep(0.2)
    assert not slow.done() and not other.done(), "nothing has changed"
    trees["vm1"]["instance"]["attributes"]["a"] = "2"
    served.changed("vm1")
    status, fields, body = await asyncio.wait_for(slow, 20)
    assert json.loads(body) == {"a": "2"}
    assert not other.done()
    other.cancel()
    loop = asyncio.get_running_loop()
    began = loop.time()
    status, again, body = await one.metadata(f"{waiting}&last_etag={fields['etag']}&timeout_sec=1")
    assert loop.time() - began > 0.9 and again["etag"] == fields["etag"]
    for old in ("NONE", "0", etag):
        assert (await asyncio.wait_for(one.metadata(f"{waiting}&last_etag={old}&timeout_sec=60"), 20))[0] == 200

    # Guest attributes: written by the VM whose they are, where that is enabled; nothing else can be written.
    written: list[tuple[str, str, str, str | None]] = []

    def change(*what: Any) -> tuple[int, str]:
        written.append(what)
        return 200, ""

    served.change_guest_attribute = change
    trees["vm1"]["instance"]["guestAttributes"] = {"my-space": {"my-key": "x"}}
    assert (await one.metadata("/instance/guest-attributes/my-space/my-key"))[2] == "x"
    assert (await one.metadata("/instance/guest-attributes/my-space/"))[2] == "my-key\n"
    assert (await one.metadata("/instance/guest-attributes/mySpace/"))[0] == 404
    status, _, body = await two.metadata("/instance/guest-attributes/")
    assert (status, body) == (403, "Guest attributes endpoint access is disabled.\n")
    assert (await one.metadata("/instance/guest-attributes/s/k", verb="PUT", body="väl\nue"))[0] == 200
    assert (await one.metadata("/instance/guest-attributes/s/k", verb="DELETE"))[0] == 200
    assert written == [("vm1", "s", "k", "väl\nue"), ("vm1", "s", "k", None)]
    for path in ("attributes/a", "guest-attributes/s", "guest-attributes/s/k/more"):
        assert (await one.metadata(f"/instance/{path}", verb="PUT", body="x"))[0] == 405
    assert (await one.get("/computeMetadata/v1/instance/guest-attributes/s/k", verb="PUT", body="x"))[0] == 403
    assert len(written) == 2

    # A waiting request does not keep a network from being removed.
    hanging = asyncio.create_task(one.metadata(waiting))
    await asyncio.sleep(0.2)
    await served.leave(vpc.plan.key)
    await asyncio.wait_for(asyncio.gather(hanging, return_exceptions=True), 20)
    await vpc.remove()
    assert not vpc.namespace.path.exists()


@pytest.mark.root
def test_server(tmp_path: Path) -> None:
    run_inside(server, tmp_path)

"""The front door in-process, without guests, and over a real socket for Google's own client."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from multinic.lab.api import create_app
from multinic.lab.api.documents import document
from multinic.lab.cloud import Cloud
from multinic.lab.substrate import NoMachines
from tests.lab.pulumi.conftest import HAVE_RECORDING

# The recording of the real plugin is not part of the repository.
collect_ignore = [] if HAVE_RECORDING else ["test_recorded_requests.py"]
TOKEN = "the-lab's-token"
PATIENCE = 60.0


class Door:
    """Sends requests; every good answer must have Google's form."""

    def __init__(self, runner: asyncio.Runner, client: httpx.AsyncClient, cloud: Cloud) -> None:
        self._runner, self._client, self.cloud = runner, client, cloud

    def send(self, verb: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        return self._runner.run(self._client.request(verb, path, json=body, **more))

    def wait(self, seconds: float) -> None:
        """Lets the controllers act for that many lab seconds."""
        self._runner.run(self.cloud.clock.sleep(seconds))

    def ok(self, verb: str, path: str, body: Any = None) -> dict[str, Any]:
        """A request that must succeed; its operation is waited for."""
        response = self.send(verb, path, body)
        assert response.status_code == 200, (verb, path, response.text)
        answer: dict[str, Any] = response.json()
        conforms(verb, path, answer)
        if answer.get("kind") == "compute#operation" and answer["status"] != "DONE":
            link = answer["selfLink"].removeprefix("https://www.googleapis.com")
            answer = self.ok("POST", f"{link}/wait")
            assert answer["status"] == "DONE", answer
        if answer.get("kind") == "compute#operation":
            assert "error" not in answer, answer
        return answer

    def refused(self, verb: str, path: str, body: Any = None) -> tuple[int, str, str]:
        """(code, reason, message) of a request that must fail."""
        response = self.send(verb, path, body)
        error = response.json()["error"]
        assert error["code"] == response.status_code
        if not path.startswith("/compute"):
            return error["code"], error.get("status", ""), error["message"]
        (detail,) = error["errors"]
        assert detail["message"] == error["message"]
        assert detail["domain"] == "global"
        return error["code"], detail["reason"], error["message"]


def conforms(verb: str, path: str, answer: Any) -> None:
    """Holds an answer to the response schema of the discovery document, and to having no empty values."""
    assert_no_empty(answer, path)
    api, _, rest = path.lstrip("/").partition("/")
    if api != "compute":
        return
    # v1 answers may carry beta fields (docs/lab-fidelity.md), so the wider document judges.
    found = document("compute.beta").match(verb, rest.partition("/")[2].partition("?")[0])
    assert not isinstance(found, set), path
    method, _ = found
    if "fields=" not in path:
        check(method.response, answer, method.name)


def check(schema: str | None, value: Any, where: str) -> None:
    documents = [document("compute.beta"), document("compute.v1")]
    assert isinstance(value, dict), where
    for name, content in value.items():
        properties = [d.schemas[schema]["properties"].get(name) for d in documents if schema in d.schemas]
        definition = next((p for p in properties if p), None)
        assert definition is not None, f"{where}.{name} is not in {schema}"
        check_value(definition, content, f"{where}.{name}")


def check_value(definition: dict[str, Any], value: Any, where: str) -> None:
    if "$ref" in definition:
        check(definition["$ref"], value, where)
        return
    kinds: dict[str, Any] = {
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": (int, float),
        "array": list,
        "object": dict,
    }
    assert isinstance(value, kinds[definition["type"]]), f"{where}: {value!r} is no {definition['type']}"
    if definition.get("enum"):
        assert value in definition["enum"], f"{where}: {value!r} is not one of {sorted(definition['enum'])}"
    if definition["type"] == "array":
        for index, item in enumerate(value):
            check_value(definition["items"], item, f"{where}[{index}]")
    if "properties" in definition:
        for name, item in value.items():
            check_value(definition["properties"][name], item, f"{where}.{name}")
    elif definition["type"] == "object":
        for name, item in value.items():
            check_value(definition["additionalProperties"], item, f"{where}.{name}")


def assert_no_empty(value: Any, where: str) -> None:
    if isinstance(value, dict):
        for name, content in value.items():
            if name != "labels":
                assert content not in (None, "", [], {}), f"{where}.{name} is {content!r}"
                assert_no_empty(content, f"{where}.{name}")
            assert not name.startswith("_"), f"{where}.{name} is the lab's own"
    elif isinstance(value, list):
        for index, content in enumerate(value):
            assert content not in (None, "", [], {}), f"{where}[{index}] is {content!r}"
            assert_no_empty(content, f"{where}[{index}]")


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    yield from _opened(tmp_path, strict=False)


@pytest.fixture
def strict_door(tmp_path: Path) -> Iterator[Door]:
    yield from _opened(tmp_path, strict=True)


def _opened(folder: Path, *, strict: bool) -> Iterator[Door]:
    with asyncio.Runner() as runner:
        cloud = runner.run(_started(folder, strict=strict))
        transport = httpx.ASGITransport(app=create_app(cloud, TOKEN))
        headers = {"Authorization": f"Bearer {TOKEN}"}
        client = httpx.AsyncClient(transport=transport, base_url="http://lab", headers=headers, timeout=PATIENCE)
        try:
            yield Door(runner, client, cloud)
        finally:
            runner.run(client.aclose())
            runner.run(cloud.close())


async def _started(folder: Path, *, strict: bool) -> Cloud:
    cloud = Cloud(folder, NoMachines(), strict=strict, speed=1000)
    await cloud.start()
    return cloud


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    """A lab on a real port of 127.0.0.1, in a thread of its own."""
    door = socket.create_server(("127.0.0.1", 0))
    started, ended = threading.Event(), threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        cloud = Cloud(tmp_path, NoMachines(), speed=1000)
        await cloud.start()
        server = uvicorn.Server(uvicorn.Config(create_app(cloud, TOKEN), log_level="warning", lifespan="off"))
        serving = asyncio.create_task(server._serve(sockets=[door]))
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        started.set()
        await stop.wait()
        server.should_exit = True
        await serving
        await cloud.close()

    def run() -> None:
        try:
            loop.run_until_complete(serve())
        finally:
            loop.close()
            ended.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert started.wait(PATIENCE)
    try:
        yield f"http://127.0.0.1:{door.getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        assert ended.wait(PATIENCE)
        door.close()


@pytest.fixture
def token() -> str:
    return TOKEN

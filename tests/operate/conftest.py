"""A lab without guests, whose routers answer probes as their metadata says, with the dev stack's fleet in it."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pulumi
import pytest
import uvicorn
import yaml

from multinic import Endpoints, MultinicRouter, RoutedNetworks
from multinic.cli import main
from multinic.lab.api import create_app
from multinic.lab.cloud import Cloud
from multinic.lab.pulumi import in_process
from multinic.lab.substrate import Machine, NoMachines, Probe, ProbeResult
from multinic.operate.fleet import DRAIN_KEY
from multinic.operate.reading import drain_asked
from stacks import dev

from .between import Between, between
from .seen import quiet, wait_for

ROOT = Path(__file__).parents[2]
TOKEN = "the-lab's-token"
PATIENCE = 60.0
SPEED = 20
"""Lab seconds in a second: a probe each 50 ms."""
REGION = "us-central1"


class Machines(NoMachines):
    """Machines of pretence: `ill` VMs answer no probe, `dull` and drained ones no traffic probe."""

    cloud: Cloud

    def __init__(self) -> None:
        self.ill: set[str] = set()
        self.dull: set[str] = set()

    async def start(self, machine: Machine) -> None:
        # A VM that was recreated is well again.
        self.ill.discard(machine.name)

    async def panic(self, machine: str) -> None:
        # Silent for a while, then it has booted again.
        name = machine.rpartition("/")[2]
        self.dull.add(name)
        asyncio.get_running_loop().call_later(1.0, self.dull.discard, name)

    async def probe(self, probe: Probe) -> ProbeResult:
        machine = self.cloud.store.get(probe.machine)
        if machine is None or machine["name"] in self.ill:
            return ProbeResult(False, "timeout")
        asked = (item["value"] for item in machine["metadata"]["items"] if item["key"] == DRAIN_KEY)
        drained = probe.port == 9001 and (machine["name"] in self.dull or drain_asked(next(asked, "")))
        return ProbeResult(not drained, "http 503" if drained else "http 200")


class Ground:
    """A running lab with a fleet, and what a test does to it behind the commands' back."""

    def __init__(self, folder: Path) -> None:
        self.machines = Machines()
        self.outputs: dict[str, Any] = {}
        self.cloud: Cloud
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._stop = asyncio.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._started.wait(PATIENCE)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self.cloud = self.machines.cloud = Cloud(self._folder, self.machines, speed=SPEED)
        await self.cloud.start()
        config = uvicorn.Config(
            create_app(self.cloud, TOKEN), log_level="warning", lifespan="off", timeout_keep_alive=600
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server._serve(sockets=[self._socket]))
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        self._started.set()
        await self._stop.wait()
        server.should_exit = True
        await serving
        await self.cloud.close()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        self._socket.close()

    def inside(self, function: Callable[[Cloud], Any]) -> Any:
        """Runs a function of the cloud in its own thread."""

        async def call() -> Any:
            return function(self.cloud)

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(PATIENCE)

    def environment(self) -> dict[str, str]:
        return {"MULTINIC_LAB_ENDPOINT": self.endpoint, "MULTINIC_LAB_TOKEN": TOKEN}


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    made = Ground(tmp_path_factory.mktemp("lab"))
    try:
        config = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())["config"]
        config["multinic:router"]["next_hop"] = {"draining_sec": 5}
        made.outputs = in_process.up(
            two_generations, project="multinic", stack="dev", config=config, endpoint=made.endpoint, token=TOKEN
        ).outputs
        yield made
    finally:
        made.close()


def two_generations() -> None:
    """The dev stack with a second router beside the first, in two zones, of one VM each."""
    settings = dev.read()
    joined = RoutedNetworks("dev", settings.networks_args())
    networks = joined.router_networks
    first = MultinicRouter("router", settings.router_args(networks))
    args = settings.router_args(networks)
    args |= {"generation": "v2", "replicas": {"min": 1, "max": 1}, "routes": {"priority": 901}}
    args["zones"] = settings.zones[:2]
    MultinicRouter("second", args)
    ends = Endpoints("ends", settings.endpoints_args(networks, first.zones))
    pulumi.export("region", settings.region)
    pulumi.export("backend_services", first.backend_services)
    pulumi.export("clients", ends.clients)
    pulumi.export("servers", ends.servers)


class Command:
    """Runs `multinic` in this process, as the shell would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capsys = monkeypatch, capsys
        self.out = self.err = ""

    def __call__(self, *words: str, code: int = 0) -> str:
        """What it printed; its exit code must be this one."""
        self._patch.setattr(sys, "argv", ["multinic", *words])
        try:
            main()
            ended: Any = 0
        except SystemExit as error:
            ended = error.code or 0
        self.out, self.err = self._capsys.readouterr()
        assert ended == code, f"exit code {ended}\n{self.out}\n{self.err}"
        assert "Traceback" not in self.err
        return self.out

    def json(self, *words: str, code: int = 0) -> Any:
        """Its JSON."""
        return json.loads(self(*words, "--json", code=code))

    def refuses(self, *words: str, code: int) -> str:
        """The one sentence that it says instead."""
        self(*words, code=code)
        lines = self.err.strip().splitlines()
        assert lines and lines[-1].startswith("multinic: "), self.err
        return lines[-1].removeprefix("multinic: ")

    def until(self, test: Callable[[], bool]) -> None:
        """Waits until something is so."""
        deadline = time.monotonic() + PATIENCE
        while not test():
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.fixture
def multinic(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Command:
    """The command in the ground's lab, for its first fleet, by a `pulumi` that prints the ground's outputs."""
    (tmp_path / "outputs.json").write_text(json.dumps(ground.outputs))
    program = tmp_path / "bin" / "pulumi"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nexec cat {tmp_path}/outputs.json\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, value in ground.environment().items():
        monkeypatch.setenv(name, value)
    command = Command(monkeypatch, capsys)
    # Each test finds the fleet at rest, whatever the one before has set going.
    wait_for(command, quiet)
    return command


@pytest.fixture
def fleet(multinic: Command) -> Callable[[], Any]:
    """The first fleet, as `status` has it."""
    return lambda: multinic.json("status")["fleet"]


@pytest.fixture
def google(ground: Ground, multinic: Command, monkeypatch: pytest.MonkeyPatch) -> Iterator[Between]:
    """Somebody between the commands and the lab."""
    with between(ground.endpoint) as made:
        monkeypatch.setenv("MULTINIC_LAB_ENDPOINT", made.endpoint)
        yield made


@pytest.fixture
def free_port() -> int:
    """A port on 127.0.0.1 that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])

"""A cloud on a substrate of pretence: machines boot at once, and answer probes as the test says."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from multinic.lab.cloud import Cloud
from multinic.lab.cloud.call import Call
from multinic.lab.substrate import (
    Machine,
    MachineEvent,
    NetworkPlan,
    NoMachines,
    Probe,
    ProbeResult,
    SubstrateError,
)

HEAL, TRAFFIC = 9000, 9001
PATIENCE = 60.0


class FakeSubstrate(NoMachines):
    """Remembers what it was asked; machines in `failing[port]` answer probes on that port with 503."""

    def __init__(self) -> None:
        self.running: dict[str, Machine] = {}
        self.plans: dict[str, NetworkPlan] = {}
        self.log: list[tuple[str, str]] = []
        self.silent: set[str] = set()
        self.failing: dict[int, set[str]] = defaultdict(set)
        self.broken: set[str] = set()
        self.probes: list[Probe] = []
        self.told: list[str] = []

    def listen(self, on_event: Callable[[str, int, MachineEvent], None]) -> None:
        self._on_event = on_event

    def metadata_changed(self, machine: str) -> None:
        self.told.append(machine)

    async def apply(self, network: NetworkPlan) -> None:
        self.plans[network.key] = network
        self.log.append(("apply", network.key))

    async def remove_network(self, network: str) -> None:
        self.plans.pop(network)

    async def start(self, machine: Machine) -> None:
        for nic in machine.interfaces:
            assert nic.subnetwork in self.plans[nic.network].subnetworks, "a machine was started before its network"
        await asyncio.sleep(0)
        if machine.name in self.broken or "*" in self.broken:
            raise SubstrateError("no room for another guest")
        self.log.append(("start", machine.key))
        self.running[machine.key] = machine

    async def stop(self, machine: str, *, timeout: float) -> None:
        self.log.append(("stop", machine))
        self.running.pop(machine, None)

    async def delete(self, machine: str) -> None:
        self.log.append(("delete", machine))
        self.running.pop(machine, None)

    async def panic(self, machine: str) -> None:
        self.silent.add(machine)
        self._on_event(machine, self.running[machine].id, MachineEvent.PANICKED)

    async def cut_power(self, machine: str) -> None:
        gone = self.running.pop(machine)
        self._on_event(machine, gone.id, MachineEvent.STOPPED)

    async def probe(self, probe: Probe) -> ProbeResult:
        self.probes.append(probe)
        if probe.machine not in self.running or probe.machine in self.silent:
            return ProbeResult(False, "timeout")
        if probe.machine in self.failing[probe.port] or "*" in self.failing[probe.port]:
            return ProbeResult(False, "http 503")
        return ProbeResult(True, "http 200")

    def came_to_life(self, machine: str) -> None:
        self.silent.discard(machine)
        self._on_event(machine, self.running[machine].id, MachineEvent.BOOTED)


class World:
    """A cloud, its substrate, and the objects of a small router fleet."""

    def __init__(self, cloud: Cloud, substrate: FakeSubstrate) -> None:
        self.cloud, self.substrate = cloud, substrate

    async def do(self, method: str, body: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
        """Calls a method and waits for its operation."""
        answer = await self.cloud.call(Call(method, params, body or {}))
        if answer.get("kind") == "compute#operation" and answer["status"] != "DONE":
            answer = await self.cloud.operations.wait(Call(method, params).scope, answer["name"])
        return answer

    async def until(self, test: Callable[[], Any], what: str) -> Any:
        """Waits until `test` is true."""
        for _ in range(int(PATIENCE / 0.01)):
            if found := test():
                return found
            await asyncio.sleep(0.01)
        raise AssertionError(f"never happened: {what}; events: {self.cloud.events.as_json()[-20:]}")

    async def networks(self) -> None:
        for name, cidr in (("a", "10.0.0.0/24"), ("b", "10.1.0.0/24")):
            await self.do("networks.insert", {"name": name, "autoCreateSubnetworks": False, "mtu": 1460})
            await self.do(
                "subnetworks.insert",
                {"name": f"sub-{name}", "network": f"global/networks/{name}", "ipCidrRange": cidr},
                region="us-central1",
            )

    async def template(self, name: str, **properties: Any) -> None:
        base = {
            "machineType": "n2-highcpu-4",
            "canIpForward": True,
            "disks": [
                {
                    "boot": True,
                    "autoDelete": True,
                    "initializeParams": {
                        "sourceImage": "projects/debian-cloud/global/images/debian-12-bookworm-v20260101"
                    },
                }
            ],
            "networkInterfaces": [
                {"subnetwork": "regions/us-central1/subnetworks/sub-a"},
                {"subnetwork": "regions/us-central1/subnetworks/sub-b"},
            ],
            "metadata": {"items": [{"key": "startup-script", "value": "true"}]},
            "tags": {"items": ["router"]},
        }
        await self.do("instanceTemplates.insert", {"name": name, "properties": base | properties})

    async def checks(self, **heal: Any) -> None:
        http = {"requestPath": "/status.json"}
        await self.do(
            "healthChecks.insert",
            {
                "name": "heal",
                "type": "HTTP",
                "checkIntervalSec": 10,
                "timeoutSec": 5,
                "healthyThreshold": 2,
                "unhealthyThreshold": 3,
                "httpHealthCheck": http | {"port": HEAL},
            }
            | heal,
        )
        await self.do(
            "healthChecks.insert",
            {
                "name": "traffic",
                "type": "HTTP",
                "checkIntervalSec": 1,
                "timeoutSec": 1,
                "httpHealthCheck": http | {"port": TRAFFIC},
            },
        )

    async def group(self, name: str = "fleet", size: int = 1, zone: str = "us-central1-a", **fields: Any) -> str:
        body = {
            "name": name,
            "baseInstanceName": "r",
            "targetSize": size,
            "versions": [{"instanceTemplate": "global/instanceTemplates/t1"}],
            "autoHealingPolicies": [{"healthCheck": "global/healthChecks/heal", "initialDelaySec": 60}],
            "updatePolicy": {
                "type": "PROACTIVE",
                "minimalAction": "REPLACE",
                "maxSurge": {"fixed": 1},
                "maxUnavailable": {"fixed": 0},
                "minReadySec": 10,
            },
        } | fields
        await self.do("instanceGroupManagers.insert", body, zone=zone)
        return f"projects/lab/zones/{zone}/instanceGroupManagers/{name}"

    async def balancers(self, groups: list[str], draining: int = 0, **service: Any) -> None:
        for name in ("a", "b"):
            await self.do(
                "regionBackendServices.insert",
                {
                    "name": f"bs-{name}",
                    "loadBalancingScheme": "INTERNAL",
                    "protocol": "TCP",
                    "network": f"global/networks/{name}",
                    "backends": [{"group": g.replace("Managers", "s")} for g in groups],
                    "healthChecks": ["global/healthChecks/traffic"],
                    "sessionAffinity": "CLIENT_IP_PORT_PROTO",
                    "connectionDraining": {"drainingTimeoutSec": draining},
                    "connectionTrackingPolicy": {"connectionPersistenceOnUnhealthyBackends": "NEVER_PERSIST"},
                }
                | service,
                region="us-central1",
            )
            await self.do(
                "forwardingRules.insert",
                {
                    "name": f"fr-{name}",
                    "loadBalancingScheme": "INTERNAL",
                    "backendService": f"regions/us-central1/backendServices/bs-{name}",
                    "subnetwork": f"regions/us-central1/subnetworks/sub-{name}",
                    "allPorts": True,
                    "IPProtocol": "TCP",
                },
                region="us-central1",
            )

    def group_view(self, key: str) -> dict[str, Any]:
        return self.cloud.instance_group_managers.view(key, self.cloud.store.require(key))

    def members(self, key: str) -> list[str]:
        return self.cloud.groups.open(key).members.instances()

    def identity(self, instance: str) -> str | None:
        value = self.cloud.store.get(instance)
        return value["id"] if value else None

    async def stable(self, key: str) -> None:
        await self.until(lambda: self.group_view(key)["status"]["isStable"], f"{key} is stable")

    async def serving(self, rule: str = "fr-a", count: int = 1) -> None:
        key = f"projects/lab/regions/us-central1/forwardingRules/{rule}"

        def healthy() -> bool:
            machines = list(self.substrate.running)
            states = [self.cloud.health.traffic_state(key, machine) for machine in machines]
            return sum(1 for state in states if state and state.healthy) >= count

        await self.until(healthy, f"{count} backends of {rule} are healthy")


@pytest.fixture
def world(tmp_path: Path) -> Callable[..., Any]:
    """Opens a `World` on the test's folder: ``async with world(speed=…) as w``."""

    @asynccontextmanager
    async def opened(speed: float = 100.0, substrate: FakeSubstrate | None = None) -> AsyncIterator[World]:
        below = substrate or FakeSubstrate()
        cloud = Cloud(tmp_path, below, speed=speed)
        await cloud.start()
        try:
            yield World(cloud, below)
        finally:
            await cloud.close()
        broken = [e for e in cloud.events.after() if e.subject == "background"]
        assert not broken, broken

    return opened


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Runs a test's coroutine."""
    return asyncio.run


@pytest.fixture
def fake_substrate() -> type[FakeSubstrate]:
    return FakeSubstrate

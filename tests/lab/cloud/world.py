"""A cloud on a substrate of pretence, and the objects of a small router fleet in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

from multinic.lab.cloud import Cloud
from multinic.lab.cloud.call import Call
from multinic.lab.cloud.events import Event
from tests.lab.cloud.fake_substrate import FakeSubstrate

HEAL, TRAFFIC = 9000, 9001
PATIENCE = 60.0

OpenWorld = Callable[..., AbstractAsyncContextManager["World"]]
"""The fixture `world`: ``async with world(speed=…) as w``."""
Run = Callable[[Coroutine[Any, Any, Any]], Any]
"""The fixture `run`: runs a test's coroutine."""


class World:
    """A cloud, its substrate, and the objects of a small router fleet."""

    def __init__(self, cloud: Cloud, substrate: FakeSubstrate) -> None:
        self.cloud, self.substrate = cloud, substrate

    async def do(self, method: str, body: dict[str, Any] | None = None, /, **params: Any) -> dict[str, Any]:
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

    async def instance(self, name: str) -> None:
        """Makes a VM that belongs to no group."""
        await self.template("of-one")
        properties = self.cloud.store.require("projects/lab/global/instanceTemplates/of-one")["properties"]
        await self.do("instances.insert", {"name": name} | properties, zone="us-central1-a")

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

    def metadata(self, instance: str) -> dict[str, Any]:
        tree = self.cloud.metadata(instance)
        assert tree is not None
        return tree

    async def stable(self, key: str) -> None:
        await self.until(lambda: self.group_view(key)["status"]["isStable"], f"{key} is stable")

    async def serving(self, rule: str = "fr-a", count: int = 1) -> None:
        key = f"projects/lab/regions/us-central1/forwardingRules/{rule}"

        def healthy() -> bool:
            machines = list(self.substrate.running)
            states = [self.cloud.health.traffic_state(key, machine) for machine in machines]
            return sum(1 for state in states if state and state.healthy) >= count

        await self.until(healthy, f"{count} backends of {rule} are healthy")

    async def fleet(self, size: int = 1, draining: int = 0, **fields: Any) -> str:
        """A whole router fleet that serves: networks, checks, template, group, load balancers; the group's key."""
        await self.networks()
        await self.checks()
        await self.template("t1")
        key = await self.group(size=size, **fields)
        await self.balancers([key], draining=draining)
        await self.stable(key)
        await self.serving(count=size)
        return key

    async def roll(self, key: str, name: str = "t2", **properties: Any) -> None:
        """Gives a group a new template, with its name as the startup script."""
        await self.template(name, metadata={"items": [{"key": "startup-script", "value": name}]}, **properties)
        await self.do(
            "instanceGroupManagers.patch",
            {"versions": [{"instanceTemplate": f"global/instanceTemplates/{name}"}]},
            zone=key.split("/")[3],
            instanceGroupManager=key.rpartition("/")[2],
        )

    def changes(self, kind: str, what: str, subject: str | None = None) -> list[Event]:
        """The events of a kind so far, of one subject or of all."""
        found = [e for e in self.cloud.events.after() if e.kind == kind and e.detail["what"] == what]
        return [e for e in found if subject in (None, e.subject)]

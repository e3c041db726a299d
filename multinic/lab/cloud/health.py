"""Health checks at work: one prober for each check and target, real probes, counted as Google counts them.

A backend of a load balancer is probed at the forwarding rule's address on the NIC in the service's network; a VM of a
group is probed for healing at nic0's address. https://cloud.google.com/load-balancing/docs/health-check-concepts
Google probes from several places at once; the lab has one prober a target (docs/lab-fidelity.md).
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any, NamedTuple

from ..substrate import Probe, SubstrateError
from .health_checks import Check
from .links import key_of, link, name_of
from .store import Object

if TYPE_CHECKING:
    from .cloud import Cloud


LEAST_TIMEOUT = 0.5
"""Real seconds."""


class Target(NamedTuple):
    """What is probed. `user` is the forwarding rule (traffic) or the group manager (heal)."""

    kind: str
    user: str
    check: str
    machine: str
    identity: str
    network: str
    address: IPv4Address


@dataclass
class State:
    """What the probes of one target said so far. It is unhealthy until enough of them have succeeded."""

    healthy: bool = False
    ever_healthy: bool = False
    confirmed_unhealthy: bool = False
    successes: int = 0
    failures: int = 0
    detail: str = "not probed yet"
    probed: bool = False

    def record(self, good: bool, detail: str, check: Check, *, counts: bool = True) -> bool:
        """Counts one probe; True when the state changed.

        Args:
            good: It succeeded.
            detail: What came instead.
            check: For the thresholds.
            counts: False while a group's initial delay lasts: a failure is then ignored.
        """
        before = (self.healthy, self.confirmed_unhealthy)
        self.detail, self.probed = detail, True
        if good:
            self.successes, self.failures = self.successes + 1, 0
            if self.successes >= check.healthy:
                self.healthy = self.ever_healthy = True
                self.confirmed_unhealthy = False
        else:
            self.successes = 0
            if counts or self.ever_healthy:
                self.failures += 1
            if self.failures >= check.unhealthy:
                self.healthy, self.confirmed_unhealthy = False, True
        return before != (self.healthy, self.confirmed_unhealthy)

    @property
    def detailed(self) -> str:
        """``detailedHealthState`` of a managed instance."""
        if not self.probed:
            return "UNKNOWN"
        if self.healthy:
            return "HEALTHY"
        return "TIMEOUT" if self.detail == "timeout" else "UNHEALTHY"


@dataclass
class _Prober:
    target: Target
    state: State = field(default_factory=State)
    task: asyncio.Task[None] | None = None


class Health:
    """All probers; `refresh` makes them match the objects."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._probers: dict[Target, _Prober] = {}
        self._by_user: dict[tuple[str, str, str], _Prober] = {}
        self._random = random.Random()  # noqa: S311 - spreads probes in time, keeps no secret
        self._closed = False

    def refresh(self) -> None:
        """Begins and ends probers."""
        wanted = set() if self._closed else {*self._traffic_targets(), *self._heal_targets()}
        for target in set(self._probers) - wanted:
            prober = self._probers.pop(target)
            if prober.task:
                prober.task.cancel()
        for target in wanted - set(self._probers):
            prober = self._probers[target] = _Prober(target)
            prober.task = asyncio.get_running_loop().create_task(self._run(prober))
        self._by_user = {(t.kind, t.user, t.machine): prober for t, prober in self._probers.items()}

    def _traffic_targets(self) -> list[Target]:
        store, found = self._cloud.store, []
        for rule_key, rule in store.everywhere("forwardingRules"):
            service = store.get(key_of(rule["backendService"]))
            if service is None or not service.get("healthChecks"):
                continue
            for group in self._cloud.backend_services.groups(service):
                for instance in self._cloud.instance_groups.instances(group):
                    value = store.get(instance)
                    if value is not None and self._running(value) and self._nic(value, key_of(rule["network"])):
                        found.append(
                            Target(
                                "traffic",
                                rule_key,
                                key_of(service["healthChecks"][0]),
                                instance,
                                value["id"],
                                key_of(rule["network"]),
                                IPv4Address(rule["IPAddress"]),
                            )
                        )
        return found

    def _heal_targets(self) -> list[Target]:
        store, found = self._cloud.store, []
        for manager, value in store.everywhere("instanceGroupManagers"):
            policies = value.get("autoHealingPolicies") or []
            controller = self._cloud.groups.get(manager)
            if not policies or not policies[0].get("healthCheck") or controller is None:
                continue
            for instance in controller.members.instances():
                machine = store.get(instance)
                if machine is not None and self._running(machine):
                    nic = machine["networkInterfaces"][0]
                    found.append(
                        Target(
                            "heal",
                            manager,
                            key_of(policies[0]["healthCheck"]),
                            instance,
                            machine["id"],
                            key_of(nic["network"]),
                            IPv4Address(nic["networkIP"]),
                        )
                    )
        return found

    @staticmethod
    def _running(instance: Object) -> bool:
        # STOPPING too: the shutdown script closes the traffic port, and the load balancer has to see it.
        return instance["status"] in ("RUNNING", "STOPPING")

    @staticmethod
    def _nic(instance: Object, network: str) -> Object | None:
        return next((nic for nic in instance["networkInterfaces"] if key_of(nic["network"]) == network), None)

    async def _run(self, prober: _Prober) -> None:
        clock, target = self._cloud.clock, prober.target
        check = self._cloud.health_checks.read(target.check)
        if check is None:
            return
        began = clock.now()
        due = began + self._random.random() * check.interval
        while True:
            await clock.sleep(due - clock.now())
            check = self._cloud.health_checks.read(target.check)
            if check is None:
                return
            due = max(due + check.interval, clock.now())
            good, detail = await self._probe(target, check)
            counts = target.kind != "heal" or clock.now() - began >= self._initial_delay(target.user)
            if prober.state.record(good, detail, check, counts=counts):
                self._tell(prober)

    async def _probe(self, target: Target, check: Check) -> tuple[bool, str]:
        probe = Probe(
            network=target.network,
            machine=target.machine,
            address=target.address,
            port=check.port,
            path=check.path,
            host=check.host,
            http=check.http,
            tls=check.tls,
            proxy=check.proxy,
            request=check.request,
            response=check.response,
            # Guests keep real time: however fast the controllers are, a guest that is alive is given time to answer.
            timeout=max(check.timeout / self._cloud.clock.speed, min(check.timeout, LEAST_TIMEOUT)),
        )
        try:
            result = await self._cloud.substrate.probe(probe)
        except SubstrateError as error:
            return False, str(error)
        return result.healthy, result.detail

    def _initial_delay(self, manager: str) -> float:
        value = self._cloud.store.get(manager) or {}
        policies = value.get("autoHealingPolicies") or [{}]
        return float(policies[0].get("initialDelaySec") or 0)

    def _tell(self, prober: _Prober) -> None:
        target, state = prober.target, prober.state
        self._cloud.events.add(
            "health",
            target.machine,
            "HEALTHY" if state.healthy else "UNHEALTHY",
            check=name_of(target.check),
            purpose=target.kind,
            user=target.user,
            id=target.identity,
            reason=state.detail,
        )
        if target.kind == "traffic":
            self._cloud.fabric.changed()
        self._cloud.groups.instance_changed(target.machine)

    def heal_state(self, manager: str, instance: str) -> State | None:
        """What the heal check says of a group's VM; None while it is not probed."""
        return self._state("heal", manager, instance)

    def traffic_state(self, rule: str, instance: str) -> State | None:
        """What the traffic check says of a backend of a forwarding rule; None while it is not probed."""
        return self._state("traffic", rule, instance)

    def _state(self, kind: str, user: str, instance: str) -> State | None:
        value = self._cloud.store.get(instance)
        prober = self._by_user.get((kind, user, instance))
        if value is None or prober is None or prober.target.identity != value["id"]:
            return None
        return prober.state

    def statuses(self, service: str, group: str) -> list[dict[str, Any]]:
        """``healthStatus`` of a group as a backend of a service."""
        rows = []
        for rule_key, rule in self._cloud.store.everywhere("forwardingRules"):
            if key_of(rule["backendService"]) != service:
                continue
            for instance in self._cloud.instance_groups.instances(group):
                value = self._cloud.store.require(instance)
                nic = self._nic(value, key_of(rule["network"]))
                state = self.traffic_state(rule_key, instance)
                row = {
                    "instance": link(instance),
                    "healthState": "HEALTHY" if state and state.healthy else "UNHEALTHY",
                    "forwardingRule": link(rule_key),
                    "forwardingRuleIp": rule["IPAddress"],
                }
                if nic:
                    row["ipAddress"] = nic["networkIP"]
                rows.append(row)
        return rows

    async def close(self) -> None:
        """Ends all probers."""
        self._closed = True
        tasks = [prober.task for prober in self._probers.values() if prober.task]
        self._probers.clear()
        self._by_user.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

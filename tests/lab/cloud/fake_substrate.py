"""A substrate of pretence: machines boot at once, and answer probes as the test says."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection

from multinic.lab.substrate import (
    Machine,
    MachineEvent,
    NetworkPlan,
    NoMachines,
    Probe,
    ProbeResult,
    SubstrateError,
)


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
        self.kept: list[int] = []

    def listen(self, on_event: Callable[[str, int, MachineEvent], None]) -> None:
        self._on_event = on_event

    def metadata_changed(self, machine: str) -> None:
        self.told.append(machine)

    def keep_only(self, ids: Collection[int]) -> None:
        self.kept = list(ids)

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
        self.log.append(("stop" if timeout else "off", machine))
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

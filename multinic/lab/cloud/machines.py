"""The life cycle of instances: from a record to a machine that runs, and back.

https://cloud.google.com/compute/docs/instances/instance-life-cycle
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from ..substrate import Machine, MachineEvent, NetworkInterface, SubstrateError
from . import addressing, catalog
from .errors import ApiError
from .links import key_of, name_of, split
from .rules import at
from .store import Object

if TYPE_CHECKING:
    from .cloud import Cloud

RETRY_SECONDS = 1.0
STOP_SECONDS = 90.0
"""How long a shutdown may take: https://cloud.google.com/compute/docs/shutdownscript#limitations"""
SPOT_STOP_SECONDS = 30.0
"""The same for a Spot VM: https://cloud.google.com/compute/docs/instances/spot#preemption-process"""


def is_spot(value: Object) -> bool:
    """Whether Google may take an instance back at any time; ``preemptible`` is the older way to ask for that."""
    scheduling = value.get("scheduling") or {}
    return scheduling.get("provisioningModel") == "SPOT" or bool(scheduling.get("preemptible"))


class Machines:
    """Starts, stops and deletes the machines of instances, one step at a time for each."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._locks: dict[str, asyncio.Lock] = {}
        self._panicked: set[str] = set()
        self._stopping: set[str] = set()
        self._preempted: set[str] = set()

    def machine(self, key: str, value: Object) -> Machine:
        """What the substrate is asked to run for an instance."""
        store = self._cloud.store
        nics = []
        for nic in value["networkInterfaces"]:
            subnetwork, network = key_of(nic["subnetwork"]), key_of(nic["network"])
            nics.append(
                NetworkInterface(
                    network=network,
                    subnetwork=subnetwork,
                    address=IPv4Address(nic["networkIP"]),
                    gateway=addressing.gateway(addressing.range_of(store, subnetwork)),
                    mtu=store.require(network)["mtu"],
                )
            )
        return Machine(
            key=key,
            id=int(value["id"]),
            name=value["name"],
            interfaces=tuple(nics),
            can_ip_forward=bool(value.get("canIpForward")),
            boot_delay=self._cloud.boot_delay,
            egress=int(self.egress(value)),
        )

    def egress(self, value: Object) -> float:
        """Bits per second that an instance may send: its machine type's, times the lab's scale."""
        tier = at(value, "networkPerformanceConfig.totalEgressBandwidthTier")
        machine_type = catalog.machine_type(name_of(value["machineType"]))
        assert machine_type, "an instance of a type that there is not cannot be made"
        return machine_type.egress(tier_1=tier == "TIER_1") * 1e9 * self._cloud.egress_scale

    async def start(self, key: str) -> None:
        """Runs a machine: PROVISIONING, STAGING, RUNNING.

        Raises:
            ApiError: 503, with what the substrate says; the instance is TERMINATED then.
        """
        async with self._lock(key):
            value = self._cloud.store.get(key)
            if value is None:
                return
            identity = value["id"]
            try:
                self._cloud.outages.require_up(name_of(value["zone"]))
            except ApiError:
                self._cloud.instances.set_status(key, "TERMINATED")
                raise
            self._cloud.instances.set_status(key, "STAGING")
            # The networks must be there before a NIC is put into them.
            await self._cloud.fabric.settled()
            self._cloud.events.add("machine", key, "starting", id=identity)
            try:
                await self._cloud.substrate.start(self.machine(key, value))
            except SubstrateError as error:
                self._cloud.events.add("machine", key, "failed to start", id=identity, reason=str(error))
                self._cloud.instances.set_status(key, "TERMINATED")
                raise ApiError(503, "backendError", f"The instance '{name_of(key)}' did not start: {error}") from error
            self._panicked.discard(key)
            self._preempted.discard(key)
            if self._is(key, identity):
                self._cloud.instances.set_status(key, "RUNNING")
                self._cloud.events.add("machine", key, "running", id=identity)
        self._cloud.fabric.changed()

    async def stop(self, key: str) -> None:
        """Orderly power-off: STOPPING, TERMINATED."""
        async with self._lock(key):
            await self._power_off(key)
            if self._cloud.store.get(key) is not None:
                self._cloud.instances.set_status(key, "TERMINATED")
                self._cloud.events.add("machine", key, "stopped")
        self._cloud.fabric.changed()
        # One that should run is repaired by its group.
        self._cloud.groups.instance_changed(key)

    async def power_off(self, key: str, then: Callable[[], object]) -> None:
        """Orderly power-off of a machine that is started again by whoever asks, which `then` prepares.

        It is never TERMINATED: nobody else may think that it failed.
        """
        async with self._lock(key):
            await self._power_off(key)
            then()
        self._cloud.fabric.changed()

    async def delete(self, key: str) -> None:
        """Orderly power-off, then the machine, its record and its disk go."""
        async with self._lock(key):
            await self._power_off(key)
            if self._cloud.store.get(key) is not None:
                self._cloud.instances.set_status(key, "TERMINATED")
            # Nobody may be sent to it any more when it goes.
            self._cloud.fabric.changed()
            await self._cloud.fabric.settled()
            await self._cloud.substrate.delete(key)
            self._cloud.instances.forget(key)
            self._panicked.discard(key)
            self._preempted.discard(key)
            self._cloud.events.add("machine", key, "deleted")
        self._locks.pop(key, None)
        self._cloud.fabric.changed()
        self._cloud.groups.instance_changed(key)

    async def _power_off(self, key: str) -> None:
        value = self._cloud.store.get(key)
        if value is None or value["status"] == "TERMINATED":
            return
        self._cloud.instances.set_status(key, "STOPPING")
        # After a panic nobody is there to hear the power button, but it must not reboot by itself any more.
        patience = 0.0 if key in self._panicked else SPOT_STOP_SECONDS if is_spot(value) else STOP_SECONDS
        self._stopping.add(key)
        try:
            await self._cloud.substrate.stop(key, timeout=patience)
        except SubstrateError as error:
            self._cloud.events.add("machine", key, "failed to stop", reason=str(error))
        finally:
            self._stopping.discard(key)

    def preempt(self, key: str) -> None:
        """Takes a Spot VM back: the notice in its metadata and the power button at once, power off after 30 s.

        https://cloud.google.com/compute/docs/instances/spot#preemption-process

        Raises:
            ApiError: It is not a Spot VM that runs.
        """
        value = self._cloud.store.require(key)
        if not is_spot(value):
            raise ApiError(400, "invalid", f"The instance '{name_of(key)}' is not a Spot VM: only those are preempted.")
        if value["status"] != "RUNNING":
            raise ApiError(400, "invalid", f"The instance '{name_of(key)}' is {value['status']}, not RUNNING.")
        self._preempted.add(key)
        self._cloud.events.add("machine", key, "preempted", id=value["id"])
        self._cloud.operations.done("compute.instances.preempted", split(key).scope, key)
        self._cloud.substrate.metadata_changed(key)
        deletes = value["scheduling"].get("instanceTerminationAction") == "DELETE"
        self._cloud.background(self.delete(key) if deletes else self.stop(key))

    def preempted(self, key: str) -> bool:
        """Whether an instance has had its notice of preemption."""
        return key in self._preempted

    async def reset(self, key: str) -> None:
        """Hard reset; the instance stays RUNNING."""
        async with self._lock(key):
            self._cloud.events.add("machine", key, "reset")
            try:
                await self._cloud.substrate.reset(key)
            except SubstrateError as error:
                raise ApiError(503, "backendError", str(error)) from error
            self._panicked.discard(key)

    def on_event(self, key: str, identity: int, event: MachineEvent) -> None:
        """Takes note of what a machine did by itself."""
        value = self._cloud.store.get(key)
        if value is None or int(value["id"]) != identity:
            return
        # In a zone's outage nobody says so: the log has it for people, by another name.
        silent = event is MachineEvent.STOPPED and self._cloud.outages.hides(key, name_of(value["zone"]))
        self._cloud.events.add("machine", key, "lost power unseen" if silent else event.value, id=str(identity))
        if event is MachineEvent.PANICKED:
            self._panicked.add(key)
        elif event is MachineEvent.BOOTED:
            self._panicked.discard(key)
        elif key not in self._stopping and not silent:
            # A VM that was powered off from inside or preempted stays down, unless a group repairs it:
            # https://cloud.google.com/compute/docs/instances/instance-life-cycle
            self._panicked.discard(key)
            if not self._note_stop(key):
                self._cloud.background(self._note_stop_later(key, value["id"]))

    def _note_stop(self, key: str) -> bool:
        """Writes that a machine stopped; False where the disk is full."""
        try:
            self._cloud.instances.set_status(key, "TERMINATED")
        except ApiError as error:
            self._cloud.events.add("machine", key, "not noted", reason=error.message)
            return False
        self._cloud.fabric.changed()
        self._cloud.groups.instance_changed(key)
        return True

    async def _note_stop_later(self, key: str, identity: str) -> None:
        await asyncio.sleep(RETRY_SECONDS)
        if self._is(key, identity) and not self._note_stop(key):
            self._cloud.background(self._note_stop_later(key, identity))

    def _is(self, key: str, identity: str) -> bool:
        value = self._cloud.store.get(key)
        return value is not None and value["id"] == identity

    def _lock(self, key: str) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())

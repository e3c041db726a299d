"""The substrate of a lab with guests: VMs by systemd-nspawn, VPC networks by namespaces and nftables.

It runs inside the namespaces that `multinic.lab.supervisor` makes; nothing of it is seen on the host.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Self

from multinic.lab.fabric import prober
from multinic.lab.fabric.egress import EgressCap
from multinic.lab.fabric.port import Port
from multinic.lab.fabric.vpc import Vpc
from multinic.lab.guests import image as images
from multinic.lab.guests.api_server import LOGGING, ApiServer
from multinic.lab.guests.authority import Authority
from multinic.lab.guests.control import ControlSocket
from multinic.lab.guests.image import Image
from multinic.lab.guests.machine import PANIC_PAUSE, Guest
from multinic.lab.guests.metadata_server import MetadataServer
from multinic.lab.guests.names import NameServer, names_of
from multinic.lab.substrate import Machine, MachineEvent, NetworkPlan, Probe, ProbeResult, SubstrateError

GUEST_TOKEN = "lab-guest"  # noqa: S105 - what service accounts of the lab's VMs get; it opens nothing outside
DISKS = "machines"
"""Folder of the guests' disks in the lab's own, by number of the machine."""
NIC_NAMES = {"ens": 4, "eth": 0}
"""How NICs are called inside → number of the first one. The image's choice on Google Cloud too: Debian and Ubuntu name
them by their PCI slot (ens4, ens5), Rocky and CentOS boot with net.ifnames=0 (eth0, eth1). Sources:
GoogleCloudPlatform/cloud-image-tests and the kickstart files of GoogleCloudPlatform/compute-image-tools."""


@dataclass
class _Entry:
    guest: Guest
    ports: list[tuple[Vpc, Port]]
    egress: EgressCap | None
    sent_before: int = 0


class LinuxSubstrate:
    """Carries out what the cloud decides, on this Linux machine. See `multinic.lab.substrate.Substrate`."""

    def __init__(
        self,
        folder: Path,
        image: Image,
        *,
        guest_token: str = GUEST_TOKEN,
        nic_names: str = "ens",
        panic_pause: float = PANIC_PAUSE,
    ) -> None:
        """Describes it; `create` also opens the control socket.

        Args:
            folder: The lab's folder: disks of guests and the control socket.
            image: What lies under every guest's disk.
            guest_token: Access token that the metadata server gives to VMs.
            nic_names: A key of `NIC_NAMES`.
            panic_pause: Seconds between a kernel panic and the reboot.
        """
        self._folder = folder
        self._nic_names = nic_names
        self._panic_pause = panic_pause
        self._numbers = itertools.count(1)
        self._vpcs: dict[str, Vpc] = {}
        self._machines: dict[str, _Entry] = {}
        self._metadata = MetadataServer(guest_token)
        authority = Authority([LOGGING])
        # In the lab's own /run: gone with the lab.
        trust = Path("/run/multinic/trust")
        authority.write_trust(trust)
        self._image = Image((trust, *image.layers))
        self._apis = ApiServer(guest_token, authority)
        self._names = NameServer(self._address_of)
        self._control = ControlSocket(folder, self._leader_of)
        self._on_event: Callable[[str, int, MachineEvent], None] = lambda *_: None

    @classmethod
    async def create(
        cls, folder: Path, *, agent: bool = False, release: str = "", more: Sequence[str] = (), **options: Any
    ) -> Self:
        """Makes the substrate of the lab in `folder`, with its image from the cache and its control socket open.

        Args:
            folder: The lab's folder.
            agent: Guests have Google's guest agent.
            release: Code name of the guests' release; the host's own if empty.
            more: Further packages of the guests.
            options: Those of the class.

        Raises:
            SubstrateError: The image is not there and cannot be built, or the process is not inside of the lab's
            namespaces.
        """
        if not Path("/run/multinic").is_dir():
            raise SubstrateError("machines need the lab's own namespaces: start it by `multinic lab up`")
        try:
            image = await asyncio.to_thread(images.ensure, agent=agent, release=release, more=more)
        except images.ImageError as error:
            raise SubstrateError(str(error)) from error
        made = cls(folder.resolve(), image, **options)
        await made._control.open()
        return made

    def listen(self, on_event: Callable[[str, int, MachineEvent], None]) -> None:
        """See `Substrate.listen`."""
        self._on_event = on_event

    def serve_metadata(self, metadata_of: Callable[[str], dict[str, Any] | None]) -> None:
        """See `Substrate.serve_metadata`."""
        self._metadata.metadata_of = metadata_of

    def serve_guest_attributes(self, change: Callable[[str, str, str, str | None], tuple[int, str]]) -> None:
        """See `Substrate.serve_guest_attributes`."""
        self._metadata.change_guest_attribute = change

    def serve_logging(self, write: Callable[[bytes], tuple[int, bytes]]) -> None:
        """See `Substrate.serve_logging`."""
        self._apis.write_log = write

    def metadata_changed(self, machine: str) -> None:
        """See `Substrate.metadata_changed`."""
        self._metadata.changed(machine)

    async def apply(self, network: NetworkPlan) -> None:
        """See `Substrate.apply`."""
        vpc = await self._vpc(network.key)
        await vpc.apply(network)

    async def remove_network(self, network: str) -> None:
        """See `Substrate.remove_network`."""
        vpc = self._vpcs.pop(network, None)
        if vpc is not None:
            await self._metadata.leave(network)
            await self._apis.leave(network)
            self._names.leave(network)
            await vpc.remove()

    async def start(self, machine: Machine) -> None:
        """See `Substrate.start`."""
        entry = self._machines.get(machine.key)
        if entry is not None and entry.guest.machine.id != machine.id:
            await self.delete(machine.key)
            entry = None
        if entry is None:
            entry = self._machines[machine.key] = self._entry(machine)
        if entry.egress is not None and machine.egress != entry.guest.machine.egress:
            await entry.egress.change(machine.egress)
        entry.guest.machine = machine
        await entry.guest.start()

    async def stop(self, machine: str, *, timeout: float) -> None:
        """See `Substrate.stop`."""
        if machine in self._machines:
            await self._machines[machine].guest.stop(timeout)

    async def delete(self, machine: str) -> None:
        """See `Substrate.delete`."""
        entry = self._machines.pop(machine, None)
        if entry is None:
            return
        await entry.guest.off()
        for vpc, port in entry.ports:
            self._metadata.forget(vpc.plan.key, str(port.address), machine)
            await vpc.unplug(port)
        if entry.egress is not None:
            await entry.egress.close()
        await entry.guest.delete()

    def keep_only(self, ids: Collection[int]) -> None:
        """See `Substrate.keep_only`: what was deleted while the lab was down has nobody else who removes its disk."""
        for disk in (self._folder / DISKS).glob("*"):
            if disk.name not in {str(number) for number in ids}:
                shutil.rmtree(disk, ignore_errors=True)

    async def reset(self, machine: str) -> None:
        """See `Substrate.reset`."""
        await self._guest(machine).reset()

    async def panic(self, machine: str) -> None:
        """See `Substrate.panic`."""
        await self._guest(machine).panic()

    async def cut_power(self, machine: str) -> None:
        """See `Substrate.cut_power`."""
        await self._guest(machine).cut_power()

    async def freeze(self, machine: str, frozen: bool) -> None:
        """See `Substrate.freeze`."""
        self._guest(machine).freeze(frozen)

    async def probe(self, probe: Probe) -> ProbeResult:
        """See `Substrate.probe`."""
        vpc = await self._vpc(probe.network)
        port = next((port for port in vpc.ports.values() if port.machine == probe.machine), None)
        return await prober.send(probe, vpc.namespace, port)

    def serial_output(self, machine: str) -> str:
        """See `Substrate.serial_output`."""
        entry = self._machines.get(machine)
        return "" if entry is None else entry.guest.serial_output()

    def egress_bytes(self, machine: str) -> int:
        """See `Substrate.egress_bytes`."""
        entry = self._machines.get(machine)
        if entry is None:
            return 0
        return entry.sent_before + sum(vpc.namespace.received_bytes().get(port.device, 0) for vpc, port in entry.ports)

    def ingress_bytes(self, machine: str) -> int:
        """See `Substrate.ingress_bytes`."""
        entry = self._machines.get(machine)
        if entry is None:
            return 0
        return sum(vpc.namespace.sent_bytes().get(port.device, 0) for vpc, port in entry.ports)

    def cpu_seconds(self, machine: str) -> float:
        """See `Substrate.cpu_seconds`."""
        entry = self._machines.get(machine)
        return 0.0 if entry is None else entry.guest.cpu_seconds()

    async def close(self) -> None:
        """See `Substrate.close`. Disks stay."""
        await self._control.close()
        await asyncio.gather(*(entry.guest.off() for entry in self._machines.values()))
        for entry in self._machines.values():
            await entry.guest.staging.delete()
            if entry.egress is not None:
                await entry.egress.close()
        self._machines.clear()
        for network in list(self._vpcs):
            await self.remove_network(network)

    def _entry(self, machine: Machine) -> _Entry:
        index = next(self._numbers)
        first = NIC_NAMES[self._nic_names]
        names = tuple(f"{self._nic_names}{first + number}" for number in range(len(machine.interfaces)))

        async def plug() -> None:
            await self._plug(entry, names)

        def tell(event: MachineEvent) -> None:
            self._on_event(machine.key, machine.id, event)

        guest = Guest(
            machine,
            self._folder / DISKS / str(machine.id),
            self._image,
            index=index,
            nic_names=names,
            plug=plug,
            tell=tell,
            panic_pause=self._panic_pause,
        )
        smallest = min(nic.mtu for nic in machine.interfaces)
        entry = _Entry(guest, [], EgressCap(index, machine.egress, smallest) if machine.egress else None)
        return entry

    async def _plug(self, entry: _Entry, names: tuple[str, ...]) -> None:
        """Has all NICs in the guest's staging namespace: new ones at first, the same ones after a reboot."""
        guest = entry.guest
        machine = guest.machine
        await guest.staging.create()
        there = guest.staging.received_bytes()
        plugged = {port.nic: (vpc, port) for vpc, port in entry.ports}
        for number, (nic, name) in enumerate(zip(machine.interfaces, names, strict=True)):
            if number in plugged:
                vpc, port = plugged[number]
                if name in there and port.index in vpc.ports:
                    continue
                # nspawn itself died and could not hand the NIC back, or a start was cancelled half-way.
                entry.sent_before += vpc.namespace.received_bytes().get(port.device, 0)
                await vpc.unplug(port)
                entry.ports.remove((vpc, port))
            vpc = await self._vpc(nic.network)
            port = Port(
                *(machine.key, next(self._numbers), number, nic.address, nic.gateway, nic.mtu, machine.can_ip_forward),
                egress=entry.egress,
            )
            # Noted first: a cancelled start must be able to undo a half-made plug.
            entry.ports.append((vpc, port))
            if number == 0:
                self._metadata.know(nic.network, str(nic.address), machine.key)
            await vpc.plug(port, guest.staging, name)

    async def _vpc(self, network: str) -> Vpc:
        vpc = self._vpcs.get(network)
        if vpc is None:
            vpc = self._vpcs[network] = Vpc(network)
        await vpc.ensure()
        await self._metadata.listen(network, vpc)
        await self._apis.listen(network, vpc)
        await self._names.listen(network, vpc)
        return vpc

    def _address_of(self, network: str, name: str) -> IPv4Address | None:
        """Address of the VM of this full name, if its nic0 is in the network."""
        for key, entry in self._machines.items():
            nic0 = entry.guest.machine.interfaces[0]
            if nic0.network == network and name in names_of(key):
                return nic0.address
        return None

    def _guest(self, machine: str) -> Guest:
        try:
            return self._machines[machine].guest
        except KeyError:
            raise SubstrateError(f"{machine} does not run") from None

    def _leader_of(self, name: str) -> int:
        found = [entry.guest for key, entry in self._matching(name)]
        if not found:
            raise SubstrateError(
                f"no machine is called {name}; there are: {', '.join(sorted(self._machines)) or 'none'}"
            )
        if len(found) > 1:
            keys = ", ".join(guest.machine.key for guest in found)
            raise SubstrateError(f"several machines are called {name}, name one of them in full: {keys}")
        leader = found[0].leader
        if leader is None:
            raise SubstrateError(f"{name} does not run at the moment")
        return leader

    def _matching(self, name: str) -> Iterator[tuple[str, _Entry]]:
        return ((key, entry) for key, entry in self._machines.items() if name in (key, entry.guest.machine.name))

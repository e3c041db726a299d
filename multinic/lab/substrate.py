# ruff: noqa: D102 - what each method is for stands in `Substrate`; `NoMachines` does not repeat it.
"""What the lab's cloud asks of the machines and the packets below it.

`multinic.lab.cloud` decides (groups, health, routes); a `Substrate` carries it out (guests, namespaces, nftables).
The two meet in these types only. `NoMachines` is the substrate of a lab without guests: everything can be declared,
nothing runs, and every probe says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import IPv4Address, IPv4Network
from typing import Any, Protocol

from multinic.lab.errors import LabError


@dataclass(frozen=True)
class NetworkInterface:
    """One NIC of a machine.

    Attributes:
        network: Key of its VPC network, ``projects/P/global/networks/N``.
        subnetwork: Key of its subnetwork.
        address: The NIC's own address; the guest gets it as a /32.
        gateway: First usable address of the subnetwork, answered by the fabric.
        mtu: The network's MTU in bytes, set alike on both ends of the veth.
    """

    network: str
    subnetwork: str
    address: IPv4Address
    gateway: IPv4Address
    mtu: int


@dataclass(frozen=True)
class Machine:
    """A VM to run.

    Attributes:
        key: ``projects/P/zones/Z/instances/NAME``. A re-created VM has the same key and another `id`.
        id: Google-style numeric id, new with each creation.
        name: Host name.
        interfaces: NICs in order; the first one is nic0.
        can_ip_forward: Without it the fabric drops packets whose source or destination is not the VM's own.
        boot_delay: Seconds added before the guest starts, also when it reboots after a panic.
        egress: Bits per second that all its NICs together may send; 0 is no cap.
    """

    key: str
    id: int
    name: str
    interfaces: tuple[NetworkInterface, ...]
    can_ip_forward: bool = False
    boot_delay: float = 0.0
    egress: int = 0


class MachineEvent(Enum):
    """What a machine did by itself, told to the cloud."""

    BOOTED = "booted"
    """The guest's kernel (here: its pid 1) runs."""
    STOPPED = "stopped"
    """Powered off from inside, or power was cut: the VM is TERMINATED and its group repairs it at once."""
    PANICKED = "panicked"
    """Silent, still RUNNING for the cloud; it reboots by itself after `kernel.panic` seconds."""


@dataclass(frozen=True)
class Backend:
    """A router behind a load balancer.

    Attributes:
        machine: Key of the machine.
        takes_new: Gets new connections (healthy and not draining; or everybody is unhealthy).
        keeps_existing: Keeps the connections that it has (healthy, draining, or persistence says so).
        keeps_connectionless: The same for protocols without connections, UDP above all; not without `keeps_existing`.
    """

    machine: str
    takes_new: bool
    keeps_existing: bool
    keeps_connectionless: bool


@dataclass(frozen=True)
class Balancer:
    """An internal passthrough load balancer in one network.

    Attributes:
        address: The forwarding rule's address; every backend owns it as a local address.
        backends: In a stable order (by machine key).
        affinity: ``sessionAffinity`` of the backend service as Google names it, ``NONE`` included.
        per_session: ``trackingMode`` PER_SESSION.
        idle_timeout: Seconds that an idle session is remembered with PER_SESSION tracking.
        clients: Keys of the machines whose packets it takes (those of its region); None takes all (global access).
    """

    address: IPv4Address
    backends: tuple[Backend, ...]
    affinity: str = "NONE"
    per_session: bool = False
    idle_timeout: int = 600
    clients: frozenset[str] | None = None


@dataclass(frozen=True)
class Route:
    """A static route in effect. Subnet routes always win and are not listed.

    Attributes:
        destination: What it matches.
        balancer: Address of the load balancer that is the next hop; None drops (next hop is gone).
        sources: Keys of the machines that it applies to (network tags); None means all of the network.
        priority: Lower wins among equal destinations; longer prefixes win before that.
    """

    destination: IPv4Network
    balancer: IPv4Address | None
    sources: frozenset[str] | None = None
    priority: int = 1000


@dataclass(frozen=True)
class FirewallRule:
    """A VPC firewall rule, already resolved to machines.

    Attributes:
        name: For counters and logs.
        priority: 0 to 65535, lower wins; deny wins among equals.
        allow: False denies.
        ingress: False means egress.
        ranges: Source ranges (ingress) or destination ranges (egress).
        protocols: (protocol, ports) pairs; the protocol is ``all``, a name or a number as text; no ports means
            all ports; a port is ``80`` or ``8000-8100``.
        sources: Machine keys that also match as source, by their NIC address (source tags or accounts); ingress only.
        targets: Machine keys; None means all machines of the network.
    """

    name: str
    priority: int
    allow: bool
    ingress: bool
    ranges: tuple[IPv4Network, ...]
    protocols: tuple[tuple[str, tuple[str, ...]], ...]
    sources: frozenset[str] = frozenset()
    targets: frozenset[str] | None = None


@dataclass(frozen=True)
class NetworkPlan:
    """The whole wanted state of one VPC network; applied as one, replacing the last.

    Attributes:
        key: ``projects/P/global/networks/N``.
        mtu: Bytes.
        subnetworks: Ranges by subnetwork key; the gateway is each range's first address.
        balancers: Load balancers whose rule is in this network.
        routes: Static routes in effect.
        firewall: Rules in effect; implied ones (deny ingress, allow egress) are the fabric's own.
    """

    key: str
    mtu: int
    subnetworks: Mapping[str, IPv4Network]
    balancers: tuple[Balancer, ...] = ()
    routes: tuple[Route, ...] = ()
    firewall: tuple[FirewallRule, ...] = ()


@dataclass(frozen=True)
class Probe:
    """One health probe, sent from 35.191.0.0/16 inside the network's namespace to one machine.

    Attributes:
        network: Key of the network that it is sent in.
        machine: Key of the machine that must receive it.
        address: Destination: the forwarding rule's address (traffic) or nic0's address (heal).
        port: TCP port.
        path: What an HTTP request asks for.
        timeout: Seconds; a machine that is silent makes the probe really time out.
        host: The HTTP request's host; None is the address.
        http: Asks by HTTP; else the connection counts, or what is said in it.
        tls: In TLS, whatever the certificate (HTTPS and SSL).
        proxy: Begins with a PROXY header of version 1.
        request: What is sent once connected, without HTTP.
        response: What must come: in the first 1024 bytes of the body (HTTP), or first of all (else). Empty: anything.
    """

    network: str
    machine: str
    address: IPv4Address
    port: int
    path: str
    timeout: float
    host: str | None = None
    http: bool = True
    tls: bool = False
    proxy: bool = False
    request: str = ""
    response: str = ""


@dataclass(frozen=True)
class ProbeResult:
    """Answer to a `Probe`.

    Attributes:
        healthy: The answer that was wanted came in time.
        detail: What came: ``http 200``, ``timeout``, ``refused``, ``http 503`` …
        body: The beginning of the answer.
    """

    healthy: bool
    detail: str
    body: bytes = field(default=b"", repr=False)


class Substrate(Protocol):
    """Carries out what the cloud decides.

    Coroutines run in the daemon's one event loop, may be called in any order, and are safe to repeat. A failure
    raises `SubstrateError` with a sentence and a cure.
    """

    def listen(self, on_event: Callable[[str, int, MachineEvent], None]) -> None:
        """Has `on_event(machine key, machine id, event)` called for what machines do by themselves."""

    def serve_metadata(self, metadata_of: Callable[[str], dict[str, Any] | None]) -> None:
        """Sets the function that gives a machine's metadata tree, ``{"instance": …, "project": …}``."""

    def serve_guest_attributes(self, change: Callable[[str, str, str, str | None], tuple[int, str]]) -> None:
        """Sets the function that writes a VM's guest attribute.

        It takes the machine's key, namespace, key and value (None deletes), and gives HTTP status and text.
        """

    def serve_logging(self, write: Callable[[bytes], tuple[int, bytes]]) -> None:
        """Sets the function that takes the body of a VM's ``entries:write``; it gives HTTP status and body."""

    def metadata_changed(self, machine: str) -> None:
        """Wakes `wait_for_change` requests of the machine."""

    async def apply(self, network: NetworkPlan) -> None:
        """Makes the network as planned, in one transaction for the packets."""

    async def remove_network(self, network: str) -> None:
        """Removes a network that has no machines."""

    async def start(self, machine: Machine) -> None:
        """Waits `boot_delay`, boots, and returns once the guest's pid 1 runs. A stopped machine kept its disk."""

    async def stop(self, machine: str, *, timeout: float) -> None:
        """Orderly power-off with the shutdown script, hard after `timeout` seconds; keeps the disk, tells no event."""

    async def delete(self, machine: str) -> None:
        """Power off at once if running, and forget NICs and disk."""

    def keep_only(self, ids: Collection[int]) -> None:
        """Removes the disks of all machines but these; called before any machine starts."""

    async def reset(self, machine: str) -> None:
        """Hard reset: the same disk boots again at once."""

    async def panic(self, machine: str) -> None:
        """Kernel panic: silent at once, reboots after `kernel.panic` = 10 s plus the machine's boot delay."""

    async def cut_power(self, machine: str) -> None:
        """Power cut or preemption without warning: STOPPED at once."""

    async def freeze(self, machine: str, frozen: bool) -> None:
        """Freezes the guest's programs; its kernel goes on forwarding."""

    async def probe(self, probe: Probe) -> ProbeResult:
        """Sends one health probe and waits for its answer or time-out."""

    def serial_output(self, machine: str) -> str:
        """What the machine's console printed so far."""

    def egress_bytes(self, machine: str) -> int:
        """Bytes that the machine sent over all NICs since it was created."""

    def cpu_seconds(self, machine: str) -> float:
        """CPU time of the machine's programs since it was created; what its kernel does for packets is not in it."""

    def ingress_bytes(self, machine: str) -> int:
        """Bytes that the machine received over all NICs since it last started."""

    async def close(self) -> None:
        """Ends all machines and removes all networks."""


class SubstrateError(LabError):
    """The machine below cannot do what was asked; the text says what and how to cure it."""


class NoMachines:
    """The substrate of a lab without guests: accepts everything, runs nothing, answers no probe."""

    def listen(self, on_event: Callable[[str, int, MachineEvent], None]) -> None:
        pass

    def serve_metadata(self, metadata_of: Callable[[str], dict[str, Any] | None]) -> None:
        pass

    def serve_guest_attributes(self, change: Callable[[str, str, str, str | None], tuple[int, str]]) -> None:
        pass

    def serve_logging(self, write: Callable[[bytes], tuple[int, bytes]]) -> None:
        pass

    def metadata_changed(self, machine: str) -> None:
        pass

    async def apply(self, network: NetworkPlan) -> None:
        pass

    async def remove_network(self, network: str) -> None:
        pass

    async def start(self, machine: Machine) -> None:
        pass

    async def stop(self, machine: str, *, timeout: float) -> None:
        pass

    async def delete(self, machine: str) -> None:
        pass

    def keep_only(self, ids: Collection[int]) -> None:
        pass

    async def reset(self, machine: str) -> None:
        pass

    async def panic(self, machine: str) -> None:
        pass

    async def cut_power(self, machine: str) -> None:
        pass

    async def freeze(self, machine: str, frozen: bool) -> None:
        pass

    async def probe(self, probe: Probe) -> ProbeResult:
        return ProbeResult(False, "no guests run in this lab")

    def serial_output(self, machine: str) -> str:
        return ""

    def egress_bytes(self, machine: str) -> int:
        return 0

    def cpu_seconds(self, machine: str) -> float:
        return 0.0

    def ingress_bytes(self, machine: str) -> int:
        return 0

    async def close(self) -> None:
        pass

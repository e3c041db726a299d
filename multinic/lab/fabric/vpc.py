"""A VPC network: a namespace that is router, firewall and load balancer for the NICs plugged into it."""

from __future__ import annotations

import asyncio
import logging
import socket
from ipaddress import IPv4Address

from multinic.lab.fabric.port import Port, mac_of
from multinic.lab.fabric.ruleset import APIS, METADATA, PROBER, Ruleset, hop_rules, ruleset
from multinic.lab.namespaces import Namespace
from multinic.lab.process import run
from multinic.lab.substrate import NetworkPlan, SubstrateError

log = logging.getLogger("multinic.lab")
MARKED = 1000
"""Priority of the rules that lead a marked packet to one NIC's table; all are alike, so all have the same."""

SETTINGS = {
    "ipv4/ip_forward": "1",
    "ipv4/conf/all/rp_filter": "0",
    "ipv4/conf/default/rp_filter": "0",
    "ipv4/conf/all/send_redirects": "0",
    "ipv4/conf/default/send_redirects": "0",
    # Machines may ask for any address of their network; the fabric answers for all.
    "ipv4/conf/all/proxy_arp": "1",
    "ipv4/neigh/default/proxy_delay": "0",
    # A flow that is seen from its middle on is a flow: each direction may come by another router.
    "netfilter/nf_conntrack_tcp_loose": "1",
    "netfilter/nf_conntrack_tcp_be_liberal": "1",
    # Idle entries are dropped after 10 minutes. https://docs.cloud.google.com/compute/docs/troubleshooting/general-tips
    "netfilter/nf_conntrack_tcp_timeout_established": "600",
}

SINK = "sink0"
"""A device without carrier: what is sent to it is lost without a word, as with a machine that is no more."""


class Vpc:
    """A VPC network's namespace.

    Attributes:
        plan: The plan that is in effect.
        ports: What is plugged in, by index.
    """

    def __init__(self, key: str) -> None:
        project, name = key.split("/")[1], key.split("/")[-1]
        self.namespace = Namespace(f"vpc-{project}-{name}"[:200])
        self.plan = NetworkPlan(key, 1460, {})
        self.ports: dict[int, Port] = {}
        self._gateways: set[str] = set()
        self._loaded: Ruleset | None = None
        self._lock = asyncio.Lock()
        self._exists = False

    async def ensure(self) -> None:
        """Makes the namespace; without a plan it lets nothing through."""
        async with self._lock:
            if self._exists:
                return
            await self.namespace.create()
            self.namespace.sysctl(SETTINGS)
            await self.namespace.ip(
                f"address add {METADATA}/32 dev lo",
                f"address add {APIS}/32 dev lo",
                f"address add {PROBER}/32 dev lo",
                f"link add {SINK} type veth peer name sink1",
                # Without ARP nothing waits for an answer that will not come.
                f"link set {SINK} up arp off",
                # An address without a machine swallows packets, as in a VPC network.
                "route add blackhole default metric 9999",
            )
            await self.namespace.nft(hop_rules())
            # Settings of the connection table are there only once something uses it.
            await self._load()
            self.namespace.sysctl(SETTINGS)
            self._exists = True

    async def apply(self, plan: NetworkPlan) -> None:
        """Puts a plan into effect."""
        await self.ensure()
        async with self._lock:
            self.plan = plan
            wanted = {str(network[1]) for network in plan.subnetworks.values()}
            lines = [f"address add {gateway}/32 dev lo" for gateway in sorted(wanted - self._gateways)]
            lines += [f"address delete {gateway}/32 dev lo" for gateway in sorted(self._gateways - wanted)]
            if lines:
                await self.namespace.ip(*lines)
                self._gateways = wanted
            await self._load()

    async def plug(self, port: Port, staging: Namespace, nic_name: str) -> None:
        """Makes the veth of a NIC, one end here, the other named `nic_name` in `staging`."""
        await self.ensure()
        async with self._lock:
            await self._wire(port, staging, nic_name)
            await self.namespace.ip(
                f"link set {port.device} up",
                f"route replace {port.address}/32 dev {port.device}",
                # Permanent: a new machine at an old address is reached at once, and a dead one never turns into an
                # error.
                f"neighbor replace {port.address} lladdr {mac_of(port.address)} dev {port.device} nud permanent",
                f"route replace default via {port.address} dev {port.device} onlink table {port.table}",
                f"route replace default dev {SINK} table {port.table} metric 9999",
                f"rule add priority {MARKED} fwmark {port.index} table {port.table}",
            )
            self.ports[port.index] = port
            await self._load()

    async def _wire(self, port: Port, staging: Namespace, nic_name: str) -> None:
        # All ends have the same MTU: a veth drops silently what the receiving end is too small for.
        mtu = ("mtu", str(port.mtu))
        fabric = (port.device, *mtu, "address", mac_of(port.gateway), "netns", self.namespace.name)
        guest = (nic_name, *mtu, "address", mac_of(port.address), "netns", staging.name)
        if port.egress is not None:
            try:
                await port.egress.plug(port.nic, port.mtu, fabric, guest)
                return
            except SubstrateError as error:
                # A lab whose VMs send more than they could is better than none.
                log.warning("%s: egress is not capped here: %s", port.machine, error)
        await run("ip", "link", "add", *fabric, "type", "veth", "peer", "name", *guest)

    async def unplug(self, port: Port) -> None:
        """Removes a NIC's veth and all that leads to it, also if it was plugged in by half only."""
        async with self._lock:
            if not self._exists:
                return
            complete = self.ports.pop(port.index, None) is not None
            # First no packet is sent there any more, then the way goes.
            await self._load()
            try:
                await self.namespace.ip(f"link delete {port.device}")
            except SubstrateError:
                # It goes by itself with the namespace that had its other end, in the kernel's own time.
                if port.device in self.namespace.received_bytes():
                    raise
            if port.egress is not None:
                await port.egress.unplug(port.nic)
            if complete:
                await self.namespace.ip(
                    f"rule delete priority {MARKED} fwmark {port.index} table {port.table}",
                    f"route flush table {port.table}",
                )

    async def remove(self) -> None:
        """Removes the namespace with all in it."""
        async with self._lock:
            await self.namespace.delete()
            self._exists = False
            self._loaded = None
            self._gateways = set()
            self.ports.clear()

    def listen(self, port: int, address: IPv4Address = METADATA) -> socket.socket:
        """A listening socket on an address of Google's, by default the metadata server's."""
        listener = self.namespace.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((str(address), port))
        listener.listen(128)
        return listener

    def datagrams(self, port: int) -> socket.socket:
        """A UDP socket on the metadata server's address."""
        made = self.namespace.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((str(METADATA), port))
        return made

    async def _load(self) -> None:
        rules = ruleset(self.plan, [self.ports[index] for index in sorted(self.ports)])
        if rules != self._loaded:
            text = rules.text(self._loaded)
            # A failed or cancelled load leaves it open which rules are in effect: the next one starts from nothing.
            self._loaded = None
            await self.namespace.nft(text)
            self._loaded = rules

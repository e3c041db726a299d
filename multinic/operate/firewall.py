"""VPC firewall rules: which one decides about a packet.

https://docs.cloud.google.com/firewall/docs/firewalls: the smallest priority number wins; at one priority a denial wins;
what no rule names is let out and not let in. Firewall policies (of the organisation, of folders, of networks) come
before, between or after these rules; they are named, and not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from multinic.operate import links
from multinic.operate.errors import WordError

_NUMBERS = {"1": "icmp", "4": "ipip", "6": "tcp", "17": "udp", "50": "esp", "51": "ah", "132": "sctp"}
"""https://www.iana.org/assignments/protocol-numbers"""


@dataclass(frozen=True)
class Party:
    """A sender or receiver, as rules know it; a range instead of an address stands for all of its addresses."""

    addresses: IPv4Network
    tags: frozenset[str] = frozenset()
    account: str = ""

    @classmethod
    def at(cls, address: IPv4Address | str, tags: frozenset[str] = frozenset(), account: str = "") -> Party:
        """A single address."""
        return cls(IPv4Network(address), tags, account)


WITH_PORTS = ("tcp", "udp", "sctp")
PROTOCOLS = (*WITH_PORTS, "icmp", "esp", "ah", "ipip")
"""Those that rules may name; every other one has a number.

https://docs.cloud.google.com/firewall/docs/firewalls#protocols_and_ports
"""


@dataclass(frozen=True)
class Service:
    """What is to pass: a protocol, and its port where it has one; ``all`` is every protocol."""

    protocol: str
    port: int | None = None

    @classmethod
    def parse(cls, protocol: str, port: int | None) -> Service:
        """What a command line names.

        Raises:
            WordError: There is no such protocol, or it has no ports.
        """
        name = protocol.lower()
        if name not in PROTOCOLS and not (name.isascii() and name.isdecimal() and int(name) <= 255):
            raise WordError(f"--protocol {protocol}: must be one of {', '.join(PROTOCOLS)}, or a number up to 255")
        name = _NUMBERS.get(name, name)
        if port is not None and name not in WITH_PORTS:
            raise WordError(f"--port {port}: {name} has no ports; leave it out")
        return cls(name, port)

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.protocol}:{self.port}" if self.port is not None else self.protocol


@dataclass(frozen=True)
class Rule:
    """A firewall rule.

    Attributes:
        name: Its name.
        network: Path of its network.
        ingress: Its direction.
        priority: Smaller wins.
        allow: Whether it lets pass.
        ranges: Sources of an ingress rule, destinations of an egress rule.
        source_tags: Tags of senders.
        source_accounts: Service accounts of senders.
        target_tags: Tags of the VMs that it applies to.
        target_accounts: Service accounts of the VMs that it applies to.
        services: (protocol, ports) pairs; no ports means all.
    """

    name: str
    network: str
    ingress: bool
    priority: int
    allow: bool
    ranges: tuple[IPv4Network, ...] = ()
    source_tags: frozenset[str] = frozenset()
    source_accounts: frozenset[str] = frozenset()
    target_tags: frozenset[str] = frozenset()
    target_accounts: frozenset[str] = frozenset()
    services: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, one: Any) -> Rule | None:
        """A rule of Google's library; None for one that is disabled, or has IPv6 ranges only."""
        ingress = one.direction != "EGRESS"
        texts = list(one.source_ranges if ingress else one.destination_ranges)
        ranges = tuple(IPv4Network(text, strict=False) for text in texts if ":" not in text)
        by_sender = ingress and (one.source_tags or one.source_service_accounts)
        if one.disabled or (texts and not ranges and not by_sender):
            return None
        if not texts and not by_sender:
            ranges = (IPv4Network("0.0.0.0/0"),)
        parts = one.allowed or one.denied
        return cls(
            name=one.name,
            network=links.path(one.network),
            ingress=ingress,
            priority=one.priority,
            allow=bool(one.allowed),
            ranges=ranges,
            source_tags=frozenset(one.source_tags),
            source_accounts=frozenset(one.source_service_accounts),
            target_tags=frozenset(one.target_tags),
            target_accounts=frozenset(one.target_service_accounts),
            services=tuple((part.I_p_protocol.lower(), tuple(part.ports)) for part in parts),
        )

    def applies_to(self, party: Party) -> bool:
        """Whether it is one of this VM's rules."""
        if self.target_accounts:
            return party.account in self.target_accounts
        return not self.target_tags or bool(self.target_tags & party.tags)

    def fits(self, other: Party, service: Service) -> bool:
        """Whether it decides about packets from (ingress) or to (egress) somebody."""
        return self._knows(other) and any(_covers(name, ports, service) for name, ports in self.services)

    def _knows(self, other: Party) -> bool:
        if any(other.addresses.subnet_of(one) for one in self.ranges):
            return True
        return bool(self.source_tags & other.tags) or other.account in self.source_accounts


@dataclass(frozen=True)
class Policy:
    """A firewall policy with rules for a network.

    Attributes:
        network: Path of the network.
        name: Its name.
        kind: Whose it is.
        rules: How many rules it has.
        unknown: Why a network's policies could not be read; the rest is empty then.
    """

    network: str
    name: str = ""
    kind: str = ""
    rules: int = 0
    unknown: str = ""

    @classmethod
    def of(cls, network: str, effective: Any) -> list[Policy]:
        """The policies in Google's answer about a network; Google's own last rules let everything go on."""
        kinds = {
            "HIERARCHY": "of the organisation or a folder",
            "NETWORK": "of the network",
            "SYSTEM": "of Google's system",
        }
        return [
            cls(
                network,
                one.short_name or one.display_name or one.name,
                kinds.get(one.type_, "of a region"),
                len(deciding),
            )
            for one in effective.firewall_policys
            if (deciding := [rule for rule in one.rules if rule.action != "goto_next" and not rule.disabled])
        ]

    @property
    def title(self) -> str:
        """For people."""
        where = f"network {links.name(self.network)}"
        if self.unknown:
            return f"firewall policies of {where} could not be read: {self.unknown}"
        return f"firewall policy {self.name} ({self.kind}) decides in {where} as well, by {self.rules} rules"


@dataclass(frozen=True)
class Decision:
    """What became of a packet, and the rule that decided; empty where no rule names it."""

    allowed: bool
    rule: str

    @property
    def title(self) -> str:
        """For people."""
        if self.rule:
            return f"{'allowed' if self.allowed else 'denied'} by firewall rule {self.rule}"
        return (
            "allowed, since no firewall rule denies it" if self.allowed else "denied, since no firewall rule allows it"
        )


def decide(
    rules: Sequence[Rule], network: str, mine: Party, other: Party, service: Service, *, ingress: bool
) -> Decision:
    """What the rules of a network say.

    Args:
        rules: All of them.
        network: Path of the network.
        mine: The VM at which the packet comes in (ingress) or goes out (egress).
        other: The packet's source (ingress) or destination (egress).
        service: What is to pass.
        ingress: Direction, as the VM sees it.
    """
    fitting = [rule for rule in rules if rule.network == network and rule.ingress == ingress and rule.applies_to(mine)]
    for rule in sorted(fitting, key=lambda rule: (rule.priority, rule.allow)):
        if rule.fits(other, service):
            return Decision(rule.allow, rule.name)
    return Decision(not ingress, "")


def _covers(name: str, ports: tuple[str, ...], service: Service) -> bool:
    name = _NUMBERS.get(name, name)
    if name == "all":
        return True
    if name != service.protocol:
        return False
    if not ports:
        return True
    if service.port is None:
        return False
    spans = [text.partition("-") for text in ports]
    return any(int(first) <= service.port <= int(last or first) for first, _, last in spans)

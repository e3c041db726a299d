"""How much of a packet each encapsulation takes, and what is left inside of several of them.

All sizes are bytes of IP packets, headers included, as an MTU counts them. Sources: VXLAN RFC 7348, Geneve RFC 8926,
GRE RFC 2784 and 2890, ESP RFC 4303 (AES-GCM RFC 4106, AES-CBC RFC 3602, NAT traversal RFC 3948), WireGuard
https://www.wireguard.com/papers/wireguard.pdf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from multinic.measure.errors import MeasureError, WordError

ETHERNET = 14
UDP = 8
TCP = 20
TIMESTAMPS = 12
DOCKER_SUBTRACTS = 50
"""What Docker's overlay driver takes off ``com.docker.network.driver.mtu`` before a container gets it: the option is
the MTU of the hosts, not of the containers. Measured with Docker 20.10 (`multinic bench overlay` shows it)."""
LEAST = {4: 576, 6: 1280}
"""Below it a network is out of order: RFC 791 asks for 576 at the receiver, RFC 8200 for 1280 on each link."""


def ip(version: int) -> int:
    """Bytes of an IP header without options."""
    return {4: 20, 6: 40}[version]


@dataclass(frozen=True)
class Layer:
    """One encapsulation.

    Attributes:
        name: As a user gives it.
        title: What it is made of.
        inner: MTU outside, IP version outside → largest IP packet inside.
    """

    name: str
    title: str
    inner: Callable[[int, int], int]


@dataclass(frozen=True)
class Step:
    """What one layer leaves.

    Attributes:
        layer: The layer's name; ``link`` is the network itself.
        mtu: Largest IP packet inside it.
        overhead: Bytes less than outside, for a packet of the largest size.
        title: What it is made of.
    """

    layer: str
    mtu: int
    overhead: int
    title: str

    def mss(self, version: int) -> int:
        """Largest TCP segment in it, as a SYN announces it."""
        return self.mtu - ip(version) - TCP


def _fixed(name: str, title: str, more: int) -> Layer:
    return Layer(name, title, lambda mtu, version: mtu - ip(version) - more)


def vxlan() -> Layer:
    """VXLAN: outer IP and UDP, its own 8 bytes, the inner Ethernet header."""
    return _fixed("vxlan", "IP + UDP 8 + VXLAN 8 + Ethernet 14", UDP + 8 + ETHERNET)


def geneve(options: int = 0) -> Layer:
    """Geneve with `options` bytes of options, a multiple of 4.

    Raises:
        MeasureError: They cannot be that long.
    """
    if options % 4 or not 0 <= options <= 252:
        raise WordError(f"geneve: {options} bytes of options; a multiple of 4 up to 252 is possible")
    title = f"IP + UDP 8 + Geneve {8 + options} + Ethernet 14"
    return _fixed("geneve", title, UDP + 8 + options + ETHERNET)


def gre(key: bool = False, sequence: bool = False, ethernet: bool = False) -> Layer:
    """GRE; `ethernet` is its kind that carries frames (gretap)."""
    own = 4 + 4 * key + 4 * sequence
    title = f"IP + GRE {own}" + (" + Ethernet 14" if ethernet else "")
    return _fixed("gretap" if ethernet else "gre", title, own + ETHERNET * ethernet)


def ipip() -> Layer:
    """IP in IP."""
    return _fixed("ipip", "IP", 0)


def wireguard() -> Layer:
    """WireGuard: type and receiver 8, counter 8, tag 16. Its padding to 16 bytes never exceeds the device's MTU."""
    return _fixed("wireguard", "IP + UDP 8 + WireGuard 32", UDP + 32)


CIPHERS = {"aes-gcm": (8, 4, 16), "aes-cbc-sha1": (16, 16, 12), "aes-cbc-sha256": (16, 16, 16)}
"""Bytes of the initialisation vector, alignment, bytes of the integrity check value."""


def ipsec(cipher: str = "aes-gcm", *, nat: bool = False, transport: bool = False) -> Layer:
    """ESP of IPsec.

    Args:
        cipher: One of `CIPHERS`.
        nat: Within UDP, for NAT traversal.
        transport: The packet keeps its own IP header, which is then not protected; else tunnel mode.

    Raises:
        MeasureError: The cipher is not known.
    """
    if cipher not in CIPHERS:
        raise WordError(f"ipsec: {cipher!r} is not known; there are {', '.join(CIPHERS)}")
    vector, alignment, check = CIPHERS[cipher]
    own = UDP * nat + 8 + vector + check

    def inner(mtu: int, version: int) -> int:
        # Protected data and two bytes of trailer fill whole blocks.
        protected = (mtu - ip(version) - own) // alignment * alignment - 2
        return protected + ip(version) if transport else protected

    mode = "transport" if transport else "tunnel"
    title = (
        f"{'' if transport else 'IP + '}{'UDP 8 + ' if nat else ''}ESP 8 + {vector} + padding + 2 + {check} ({mode})"
    )
    return Layer("ipsec", title, inner)


def parse(text: str) -> Layer:
    """A layer as the command line names it: its name, then options after colons.

    ``vxlan``, ``geneve:8`` (bytes of options), ``gre:key:seq``, ``gretap``, ``ipip``, ``wireguard``,
    ``ipsec:aes-gcm:nat:transport``.

    Raises:
        MeasureError: There is no such layer or option.
    """
    name, *options = text.strip().lower().split(":")
    if name == "geneve" and len(options) <= 1 and all(option.isdigit() for option in options):
        return geneve(*map(int, options))
    if name in ("gre", "gretap") and set(options) <= {"key", "seq"}:
        return gre("key" in options, "seq" in options, ethernet=name == "gretap")
    if name == "ipsec":
        ciphers = [option for option in options if option not in ("nat", "transport")]
        if len(ciphers) <= 1:
            return ipsec(*ciphers, nat="nat" in options, transport="transport" in options)
    plain = {"vxlan": vxlan, "docker": vxlan, "ipip": ipip, "wireguard": wireguard}
    if name in plain and not options:
        return plain[name]()
    raise WordError(
        f"{text!r} is no encapsulation; there are vxlan (also called docker), geneve[:BYTES], gre[:key][:seq], gretap, "
        "ipip, wireguard, ipsec[:CIPHER][:nat][:transport]"
    )


def nest(mtu: int, layers: Sequence[Layer], *, outer: int = 4) -> list[Step]:
    """What each layer leaves, from the link inwards.

    Args:
        mtu: Of the link that carries all.
        layers: Outermost first.
        outer: IP version of every layer's outer header, 4 or 6.

    Raises:
        MeasureError: Nothing usable is left.
    """
    steps = [Step("link", mtu, 0, f"IPv{outer}")]
    for layer in layers:
        left = layer.inner(steps[-1].mtu, outer)
        steps.append(Step(layer.name, left, steps[-1].mtu - left, layer.title))
    if steps[-1].mtu < LEAST[4]:
        raise MeasureError(
            f"{steps[-1].mtu} bytes are left inside {' in '.join(one.layer for one in reversed(steps))}: "
            f"IPv4 needs {LEAST[4]} (IPv6 {LEAST[6]}); leave a layer out, or use a larger MTU than {mtu}"
        )
    return steps


def tcp_share(mtu: int, *, version: int = 4, link: int = ETHERNET, timestamps: bool = True) -> float:
    """The part of a cap on bytes that is left for TCP payload.

    Args:
        mtu: Of the path.
        version: IP version.
        link: Bytes of each frame beside the IP packet that the cap counts.
        timestamps: TCP's option, which Linux uses: https://www.rfc-editor.org/rfc/rfc7323.
    """
    return (mtu - ip(version) - TCP - TIMESTAMPS * timestamps) / (mtu + link)

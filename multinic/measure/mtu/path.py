"""The way between two hosts, hop by hop: what each says its MTU is, what really passes, and the first mismatch."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from multinic.measure.errors import WordError
from multinic.measure.mtu import cures, probe
from multinic.measure.mtu.cures import Finding, Severity
from multinic.measure.mtu.host import Host, Link, look
from multinic.measure.mtu.probe import Passed
from multinic.measure.shell import Shell


@dataclass(frozen=True)
class Hop:
    """One hop.

    Attributes:
        kind: ``NIC``, ``VPC``, ``router NIC``, ``docker``, ``container``.
        name: For people.
        mtu: What it says, bytes.
    """

    kind: str
    name: str
    mtu: int


@dataclass(frozen=True)
class End:
    """One end of a path.

    Attributes:
        shell: How to run programs there.
        address: By which the other end reaches it.
    """

    shell: Shell
    address: str


@dataclass(frozen=True)
class Path:
    """The whole of it.

    Attributes:
        hops: From the first end to the second.
        there: What passes from the first to the second.
        back: What passes from the second to the first.
        findings: Mismatches, the first on the way first.
    """

    hops: tuple[Hop, ...]
    there: Passed
    back: Passed
    findings: tuple[Finding, ...] = field(default=())

    @property
    def mtu(self) -> int:
        """What passes in both directions."""
        return min(self.there.largest, self.back.largest)


def walk(first: End, second: End, routers: Sequence[Shell] = ()) -> Path:
    """Looks at both ends and the routers between them, and probes both directions.

    Args:
        first: One end.
        second: The other.
        routers: Router VMs on the way, to be asked for their NICs; every one can carry a connection.

    Raises:
        MeasureError: A host cannot be asked, or nothing passes between the two.
    """
    if first.shell == second.shell or first.address == second.address:
        raise WordError(f"{first.shell.title} and {second.shell.title} are one place: a path has two ends")
    left, right = look(first.shell, second.address), look(second.shell, first.address)
    between = [look(router) for router in routers]
    with ThreadPoolExecutor(2) as pool:
        both = [
            pool.submit(probe.measure, first.shell, second.shell, second.address, left.nic.mtu),
            pool.submit(probe.measure, second.shell, first.shell, first.address, right.nic.mtu),
        ]
        there, back = (one.result() for one in both)
    return Path(
        tuple(hops(left, between, right)),
        there,
        back,
        tuple(judge(left, between, right, there, back, first.address, second.address)),
    )


def hops(left: Host, routers: Sequence[Host], right: Host) -> list[Hop]:
    """NIC → VPC → router → VPC → NIC, as far as they are known."""
    found = [_nic(left, left.nic, "NIC")]
    if left.nic.vpc:
        found.append(Hop("VPC", left.nic.vpc, left.nic.vpc_mtu))
    for router in routers:
        nics = [link for link in router.links.values() if link.vpc or (link.kind in ("", "veth") and link.addresses)]
        near = [link for link in nics if link.vpc == left.nic.vpc] or nics[:1]
        far = [link for link in nics if link.vpc == right.nic.vpc and link not in near]
        others = [link for link in nics if link not in near and link not in far]
        found += [_nic(router, link, "router NIC") for link in [*near, *others, *far]]
    if right.nic.vpc and right.nic.vpc != left.nic.vpc:
        found.append(Hop("VPC", right.nic.vpc, right.nic.vpc_mtu))
    return [*found, _nic(right, right.nic, "NIC")]


def _nic(host: Host, link: Link, kind: str) -> Hop:
    mtu = min(link.mtu, host.route_mtu or link.mtu) if link.name == host.device else link.mtu
    return Hop(kind, f"{host.title} {link.name}", mtu)


def judge(
    left: Host, routers: Sequence[Host], right: Host, there: Passed, back: Passed, first: str = "", second: str = ""
) -> list[Finding]:
    """The mismatches on a path, from its first end on.

    Args:
        left: The first end.
        routers: Routers between.
        right: The second end.
        there: What passed from the first to the second.
        back: What passed from the second to the first.
        first: The first end's address.
        second: The second's.
    """
    found: list[Finding] = []
    for host in (left, *routers, right):
        found += nics_against_vpcs(host)
    passed = min(there.largest, back.largest)
    ends_differ = left.sends != right.sends
    for host, other, way, address in ((left, right, there, second), (right, left, back, first)):
        if way.largest >= host.sends:
            continue
        known = [(hop.mtu, hop.name) for hop in hops(left, routers, right) if hop.mtu < host.sends]
        narrow = f"the narrowest hop known is {min(known)[1]} with {min(known)[0]}" if known else "no hop says why"
        if way.told is not None:
            severity = Severity.BREAKS
            heard = f"{way.by or 'a hop'} says so (MTU {way.told}), so TCP adapts after its first large packet"
            options = [cures.route(address, way.largest), cures.link(host.device, way.largest)]
        else:
            severity = Severity.HANGS
            heard = "no error comes back: large packets vanish without a word"
            options = [
                cures.icmp(),
                cures.clamp(way.largest),
                cures.route(address, way.largest),
                cures.link(host.device, way.largest),
                cures.probing(),
            ]
        text = f"{host.title} sends up to {host.sends}, {way.largest} arrive at {other.title}; {heard}; {narrow}"
        found.append(Finding(f"{host.title} → {other.title}", severity, text, tuple(options)))
    if ends_differ and not found:
        larger, smaller = (left, right) if left.sends > right.sends else (right, left)
        text = (
            f"{larger.title} has {larger.sends}, {smaller.title} {smaller.sends}: "
            "TCP agrees on the smaller, UDP does not"
        )
        found.append(Finding(larger.title, Severity.BREAKS, text, (cures.link(larger.device, passed),)))
    return found


def nics_against_vpcs(host: Host) -> list[Finding]:
    """NICs of a host whose MTU is not their VPC network's."""
    found = []
    for link in host.links.values():
        if not link.vpc_mtu or link.mtu == link.vpc_mtu:
            continue
        too_large = link.mtu > link.vpc_mtu
        text = f"{link.name} has MTU {link.mtu}, its network {link.vpc} has {link.vpc_mtu}"
        cured = [cures.link(link.name, link.vpc_mtu)]
        if too_large and link.mtu <= 8896:
            cured.append(cures.vpc(link.vpc, link.mtu))
        found.append(
            Finding(f"{host.title} {link.name}", Severity.HANGS if too_large else Severity.SLOW, text, tuple(cured))
        )
    return found

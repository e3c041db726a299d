"""`multinic mtu check` and `multinic mtu path`: hosts and what lies between them, as hops and findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from multinic.measure.errors import MeasureError
from multinic.measure.mtu import docker
from multinic.measure.mtu.cures import Finding, Severity
from multinic.measure.mtu.host import Host, look
from multinic.measure.mtu.path import End, Hop, Path, nics_against_vpcs, walk
from multinic.measure.mtu.probe import Passed
from multinic.measure.shell import Shell


@dataclass(frozen=True)
class Verdict:
    """What was seen and what is wrong.

    Attributes:
        hops: In order.
        findings: The first one is the first on the way.
        passed: What probes found, one for each direction; empty where none were sent.
    """

    hops: tuple[Hop, ...]
    findings: tuple[Finding, ...]
    passed: tuple[Passed, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether nothing breaks; what is only slower than need be does not count."""
        return all(one.severity is Severity.SLOW for one in self.findings)

    def rows(self) -> list[tuple[str, ...]]:
        """The hops as a table."""
        return [("hop", "name", "MTU"), *((hop.kind, hop.name, str(hop.mtu)) for hop in self.hops)]

    def notes(self) -> list[str]:
        """What passes, what is wrong, and the cure."""
        lines = []
        for one in self.passed:
            told = f"; {one.by} named {one.told}" if one.told is not None else ""
            lines.append(f"{one.sender} → {one.receiver}: packets up to {one.largest} bytes pass{told}")
        for number, finding in enumerate(self.findings):
            first = "first mismatch" if number == 0 else "also"
            lines.append(f"{first} [{finding.severity.value}] {finding.where}: {finding.text}")
            lines += [f"  {'cure' if number == 0 else 'or'}: {cure}" for number, cure in enumerate(finding.cures)]
        return lines or ["no mismatch"]

    def as_json(self) -> dict[str, Any]:
        """All of it, for other programs."""
        return {
            "hops": [asdict(hop) for hop in self.hops],
            "passed": [asdict(one) for one in self.passed],
            "findings": [{**asdict(one), "severity": one.severity.value} for one in self.findings],
            "sound": self.sound,
        }


def check(places: Sequence[Shell], *, with_docker: bool, carries: int = 0) -> Verdict:
    """Looks at hosts one by one: NICs against their VPC networks, Docker's networks against the NICs.

    Args:
        places: The hosts.
        with_docker: Look at their Docker networks too; needs root there.
        carries: What the network between the hosts carries, where that is known to be less than the NICs' MTU.

    Raises:
        MeasureError: A host cannot be asked.
    """
    hops: list[Hop] = []
    findings: list[Finding] = []
    for place in places:
        host = look(place)
        hops.append(Hop("NIC", f"{host.title} {host.nic.name}", host.sends))
        if host.nic.vpc:
            hops.append(Hop("VPC", host.nic.vpc, host.nic.vpc_mtu))
        findings += nics_against_vpcs(host)
        if with_docker:
            carried = min(host.sends, host.nic.vpc_mtu or host.sends, carries or host.sends)
            more_hops, more = _docker(place, carried)
            hops += more_hops
            findings += more
    return Verdict(tuple(hops), tuple(findings))


def between(
    first: Shell, second: Shell, routers: Sequence[Shell], *, with_docker: bool, addresses: Sequence[str]
) -> Verdict:
    """Walks the path between two hosts, by what hops say and by probes in both directions.

    Args:
        first: One end.
        second: The other.
        routers: Routers on the way that can be asked.
        with_docker: Go on into the Docker networks of both ends.
        addresses: Of the two ends; an empty one is taken from the end's own main NIC.

    Raises:
        MeasureError: A host cannot be asked, or nothing passes.
    """
    ends = [
        End(place, address or _address(look(place))) for place, address in zip((first, second), addresses, strict=True)
    ]
    walked: Path = walk(ends[0], ends[1], routers)
    hops, findings = list(walked.hops), list(walked.findings)
    if with_docker:
        for place, at in ((first, 0), (second, len(hops))):
            more_hops, more = _docker(place, walked.mtu)
            hops[at:at] = more_hops[::-1] if at == 0 else more_hops
            findings += more
    return Verdict(tuple(hops), tuple(findings), (walked.there, walked.back))


def _address(host: Host) -> str:
    if not host.nic.addresses:
        raise MeasureError(f"{host.title}: {host.nic.name} has no address; give it as PLACE=ADDRESS")
    return host.nic.addresses[0]


def _docker(place: Shell, carried: int) -> tuple[list[Hop], list[Finding]]:
    networks = docker.networks(place)
    hops = [
        Hop("container" if one.seen else "docker", f"{place.title} {one.driver} {one.name}", one.mtu)
        for one in networks
    ]
    return hops, docker.judge(networks, carried, place.title)

"""What is wrong with an MTU, and the commands that cure it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

OPTION = "com.docker.network.driver.mtu"
"""Docker's name of the option; older documents have another one, which does nothing."""


class Severity(Enum):
    """How bad a mismatch is."""

    HANGS = "hangs"
    """Large packets vanish without a word: connections stall as soon as they send much."""
    BREAKS = "breaks"
    """Large packets are answered by an error, or cut into fragments: slower, and some programs fail."""
    SLOW = "slow"
    """All works, with smaller packets than could be: more packets and more CPU for the same data."""


@dataclass(frozen=True)
class Finding:
    """One mismatch.

    Attributes:
        where: The hop at which it shows, for people.
        severity: How bad it is.
        text: What is wrong, in a sentence.
        cures: Commands or steps, the best one first.
        option: For a Docker network: the value of `OPTION` that is right; 0 elsewhere.
    """

    where: str
    severity: Severity
    text: str
    cures: tuple[str, ...]
    option: int = 0


def link(device: str, mtu: int) -> str:
    """A device of a host."""
    return f"ip link set dev {device} mtu {mtu}"


def route(address: str, mtu: int) -> str:
    """One route of a host: TCP's segments follow it in both directions."""
    return f"ip route change {address} … mtu {mtu} (at the end whose NIC has the larger MTU; both directions follow)"


def vpc(network: str, mtu: int) -> str:
    """A VPC network; its VMs take the new MTU over when they are restarted."""
    return f"gcloud compute networks update {network} --mtu={mtu}, then restart its VMs (https://docs.cloud.google.com/vpc/docs/change-mtu)"


def clamp(mtu: int) -> str:
    """The segments of connections through a router, for ends that cannot be changed."""
    return (
        "clamp the segment size at the routers (`machine.clamp_mss` of MultinicRouter does; by hand: nft … "
        f"tcp flags syn tcp option maxseg size set {mtu - 40})"
    )


def icmp() -> str:
    """Errors that tell senders."""
    return (
        "let ICMP type 3 (fragmentation needed) through every firewall on the way, and set "
        "net.ipv4.icmp_errors_use_inbound_ifaddr=1 on routers with policy routing"
    )


def probing() -> str:
    """Senders that find out by themselves."""
    return "sysctl -w net.ipv4.tcp_mtu_probing=1 at the senders (a first stall of about 3 s stays)"


def daemon_json(mtu: int) -> str:
    """Docker's default bridge."""
    return (
        f'/etc/docker/daemon.json: {{"mtu": {mtu}}}, then systemctl restart docker '
        "(docker0 only: other networks have their own)"
    )


def bridge(name: str, mtu: int) -> str:
    """A bridge network that a user made."""
    return f"docker network rm {name}; docker network create --opt {OPTION}={mtu} {name}"


def gwbridge(mtu: int) -> str:
    """The bridge by which a swarm's containers leave their host; on every node."""
    return (
        "on each node: docker swarm leave; docker network rm docker_gwbridge; docker network create "
        f"--opt {OPTION}={mtu} --opt com.docker.network.bridge.name=docker_gwbridge "
        "--opt com.docker.network.bridge.enable_icc=false docker_gwbridge; docker swarm join …"
    )


def ingress(option: int) -> str:
    """The network of published ports; once a swarm."""
    return (
        f"docker network rm ingress; docker network create --driver overlay --ingress --opt {OPTION}={option} ingress "
        "(services with published ports must be removed before, and come back after)"
    )


def overlay(name: str, option: int, encrypted: bool = False) -> str:
    """An overlay network; the option is the MTU of the hosts: Docker subtracts VXLAN's 50 bytes itself."""
    more = " --opt encrypted" if encrypted else ""
    create = f"docker network create --driver overlay --attachable{more} --opt {OPTION}={option} {name}"
    return f"docker network rm {name}; {create}"

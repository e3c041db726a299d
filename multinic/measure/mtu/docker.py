"""The MTU of a host's Docker networks against the network that carries them.

Three kinds have settings of their own and are forgotten one by one: what a user made (bridge or overlay), the ingress
network of published ports, and docker_gwbridge, by which a swarm's containers leave their host.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from multinic.measure.mtu import cures, encapsulation
from multinic.measure.mtu.cures import Finding, Severity
from multinic.measure.shell import Shell

DEFAULT = 1500
"""Docker's own when nothing is set; an overlay's containers get 50 less."""


@dataclass(frozen=True)
class Network:
    """One Docker network.

    Attributes:
        name: Its name.
        driver: ``bridge`` or ``overlay``; others have no MTU of their own.
        option: Value of `cures.OPTION`; 0 if it is not set.
        encrypted: An overlay with IPsec.
        ingress: The overlay of published ports.
        seen: MTU that a running container has in it; 0 if none runs here.
    """

    name: str
    driver: str
    option: int = 0
    encrypted: bool = False
    ingress: bool = False
    seen: int = 0

    @property
    def mtu(self) -> int:
        """What containers get in it."""
        return self.seen or (self.option or DEFAULT) - (self.driver == "overlay") * encapsulation.DOCKER_SUBTRACTS


def right(network: Network, path: int) -> int:
    """Largest MTU that containers of this network can use where hosts can send `path` bytes to each other."""
    if network.driver != "overlay":
        return path
    inside = [encapsulation.ipsec(transport=True)] if network.encrypted else []
    return encapsulation.nest(path, [*inside, encapsulation.vxlan()])[-1].mtu


def judge(networks: Sequence[Network], path: int, host: str = "") -> list[Finding]:
    """The mismatches, overlays of users first.

    Args:
        networks: Of one host.
        path: What hosts can really send to each other, in bytes of an IP packet; alone, the NIC's MTU.
        host: Title of the host.
    """
    at = f" on {host}" if host else ""
    order = sorted(networks, key=lambda one: (one.driver != "overlay", one.ingress, one.name))
    return [_finding(one, right(one, path), path, at) for one in order if one.mtu != right(one, path)]


def _finding(network: Network, best: int, path: int, at: str) -> Finding:
    inside = "its containers" if network.driver == "overlay" else "containers"
    carried = f"{path - best} bytes of encapsulation on a path of {path}" if best != path else f"a path of {path}"
    if network.mtu < best:
        times = (best - 52) / (network.mtu - 52)
        severity = Severity.SLOW
        text = (
            f"{inside} have MTU {network.mtu}, {best} is possible ({carried}): "
            f"they need {times:.1f} times as many packets for the same data"
        )
    else:
        severity = Severity.BREAKS
        text = f"{inside} have MTU {network.mtu}, more than the {best} that pass ({carried})"
    option = best + (network.driver == "overlay") * encapsulation.DOCKER_SUBTRACTS
    kind = "overlay network" if network.driver == "overlay" else "bridge"
    return Finding(f"{kind} {network.name}{at}", severity, text, (_cure(network, option),), option)


def _cure(network: Network, option: int) -> str:
    if network.ingress:
        return cures.ingress(option)
    if network.driver == "overlay":
        return cures.overlay(network.name, option, network.encrypted)
    if network.name == "docker_gwbridge":
        return cures.gwbridge(option)
    if network.name == "bridge":
        return cures.daemon_json(option)
    return cures.bridge(network.name, option)


def networks(host: Shell, *docker: str) -> list[Network]:
    """Reads a host's networks, and the MTU that running containers really have in them.

    Args:
        host: Where the Docker Engine runs; root there, to look into containers.
        docker: The `docker` command with its options.

    Raises:
        MeasureError: Docker does not answer there.
    """
    command = docker or ("docker",)
    names = host.run([*command, "network", "ls", "--quiet", "--no-trunc"]).split()
    described = json.loads(host.run([*command, "network", "inspect", *names])) if names else []
    seen = _seen(host, command)
    found = []
    for one in described:
        if one["Driver"] not in ("bridge", "overlay"):
            continue
        options = one.get("Options") or {}
        found.append(
            Network(
                name=one["Name"],
                driver=one["Driver"],
                option=int(options.get(cures.OPTION, 0)),
                encrypted="encrypted" in options,
                ingress=bool(one.get("Ingress")),
                seen=seen.get(one["Name"], 0),
            )
        )
    return found


def container_link(host: Shell, process: int, mac: str) -> tuple[str, int]:
    """Name and MTU of a container's device, by its MAC; an empty name if it has none of it."""
    links = json.loads(host.run(["nsenter", "--target", str(process), "--net", "ip", "-json", "link"]))
    for link in links:
        if link.get("address") == mac:
            return str(link["ifname"]), int(link["mtu"])
    return "", 0


def _seen(host: Shell, command: Sequence[str]) -> dict[str, int]:
    running = host.run([*command, "ps", "--quiet", "--no-trunc"]).split()
    found: dict[str, int] = {}
    for one in json.loads(host.run([*command, "inspect", *running])) if running else []:
        for name, joined in one["NetworkSettings"]["Networks"].items():
            if joined.get("MacAddress"):
                _, mtu = container_link(host, one["State"]["Pid"], joined["MacAddress"])
                found[name] = min(mtu, found.get(name, mtu)) if mtu else found.get(name, 0)
    # A swarm's containers have a second device, for the way out of the host, that no network lists.
    bridge = "docker_gwbridge"
    if running and bridge not in found:
        code, text, _ = host.attempt(["ip", "-json", "link", "show", "dev", bridge])
        if code == 0:
            found[bridge] = int(json.loads(text)[0]["mtu"])
    return found

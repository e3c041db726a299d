"""Requests a second and memory of a lab without guests: `make lab-benchmark`. Nothing here has a limit of time.

40 routers in 20 networks' worth of objects: ten fleets of four routers, each between two networks of its own, made,
read, changed and deleted through the front door on a real socket by as many clients as the machine has cores. Then
memory with two to twenty times as many objects, and the straight line that fits best.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from multinic.lab.client import Lab, running

Request = tuple[str, str, Any]
IMAGE = "projects/debian-cloud/global/images/debian-12-bookworm-v20260101"
REGION, ZONES = "regions/us-central1", ("zones/us-central1-a", "zones/us-central1-b")


def objects(fleet: int) -> Iterator[Request]:
    """What makes one fleet: two networks, two groups of two routers, a next hop and a route in each network."""
    for side in "ab":
        name, subnet = f"f{fleet}{side}", f"10.{fleet}.{'ab'.index(side)}.0/24"
        network = f"global/networks/{name}"
        yield "POST", "global/networks", {"name": name, "autoCreateSubnetworks": False}
        yield "POST", f"{REGION}/subnetworks", {"name": name, "network": network, "ipCidrRange": subnet}
        for kind, ranges in (("probes", ["35.191.0.0/16"]), ("routed", ["10.0.0.0/8"])):
            firewall = {"name": f"{name}-{kind}", "network": network, "sourceRanges": ranges}
            yield "POST", "global/firewalls", {**firewall, "allowed": [{"IPProtocol": "tcp"}]}
    nics = [{"subnetwork": f"{REGION}/subnetworks/f{fleet}{side}"} for side in "ab"]
    disk = {"boot": True, "autoDelete": True, "initializeParams": {"sourceImage": IMAGE}}
    properties = {"machineType": "n2-highcpu-4", "canIpForward": True, "disks": [disk], "networkInterfaces": nics}
    yield "POST", "global/instanceTemplates", {"name": f"f{fleet}", "properties": properties}
    for kind, port in (("heal", 9000), ("traffic", 9001)):
        check = {"name": f"f{fleet}-{kind}", "type": "HTTP", "httpHealthCheck": {"port": port}}
        yield "POST", "global/healthChecks", check
    for zone in ZONES:
        group = {"name": f"f{fleet}", "targetSize": 2}
        group["versions"] = [{"instanceTemplate": f"global/instanceTemplates/f{fleet}"}]
        yield "POST", f"{zone}/instanceGroupManagers", group
    for side in "ab":
        name = f"f{fleet}{side}"
        service: dict[str, Any] = {
            "name": name,
            "loadBalancingScheme": "INTERNAL",
            "network": f"global/networks/{name}",
        }
        service["healthChecks"] = [f"global/healthChecks/f{fleet}-traffic"]
        service["backends"] = [{"group": f"{zone}/instanceGroups/f{fleet}"} for zone in ZONES]
        yield "POST", f"{REGION}/backendServices", service
        inside = {"subnetwork": f"{REGION}/subnetworks/{name}"}
        yield "POST", f"{REGION}/addresses", {"name": name, "addressType": "INTERNAL", **inside}
        rule = {"name": name, "loadBalancingScheme": "INTERNAL", "allPorts": True, **inside}
        rule["backendService"] = f"{REGION}/backendServices/{name}"
        yield "POST", f"{REGION}/forwardingRules", rule
        route = {"name": name, "network": f"global/networks/{name}", "destRange": "192.168.0.0/16", "priority": 900}
        yield "POST", "global/routes", {**route, "nextHopIlb": f"{REGION}/forwardingRules/{name}"}


def reads(fleet: int) -> Iterator[Request]:
    """Each object once, and the lists and states that a preview and a status command ask for."""
    for _, path, body in objects(fleet):
        yield "GET", f"{path}/{body['name']}", None
    for zone in ZONES:
        yield "POST", f"{zone}/instanceGroupManagers/f{fleet}/listManagedInstances", None
        yield "GET", f"{zone}/instances?filter=name:f{fleet}&maxResults=10", None
    for side in "ab":
        group = {"group": f"{ZONES[0]}/instanceGroups/f{fleet}"}
        yield "POST", f"{REGION}/backendServices/f{fleet}{side}/getHealth", group
        yield "GET", f"global/routes?filter=network:f{fleet}{side}&fields=items(name,destRange)", None


def changes(fleet: int) -> Iterator[Request]:
    """What an update sends."""
    for side in "ab":
        name = f"f{fleet}{side}"
        yield "PATCH", f"global/networks/{name}", {"mtu": 1500}
        yield "PATCH", f"global/firewalls/{name}-probes", {"priority": 900}
        yield "PATCH", f"{REGION}/backendServices/{name}", {"connectionDraining": {"drainingTimeoutSec": 30}}
        yield "POST", f"{REGION}/forwardingRules/{name}/setLabels", {"labels": {"generation": "two"}}
    yield "PATCH", f"global/healthChecks/f{fleet}-heal", {"checkIntervalSec": 20}
    for zone in ZONES:
        yield "PATCH", f"{zone}/instanceGroupManagers/f{fleet}", {"updatePolicy": {"minReadySec": 5}}


def deletions(fleet: int) -> Iterator[Request]:
    """The objects in the opposite order."""
    for _, path, body in reversed(list(objects(fleet))):
        yield "DELETE", f"{path}/{body['name']}", None


class Client:
    """One connection that is kept."""

    def __init__(self, lab: Lab) -> None:
        self._connection = http.client.HTTPConnection(lab.endpoint.removeprefix("http://"))
        self._headers = {"Authorization": f"Bearer {lab.token}", "Content-Type": "application/json"}

    def send(self, request: Request) -> None:
        verb, path, body = request
        text = None if body is None else json.dumps(body)
        self._connection.request(verb, f"/compute/v1/projects/lab/{path}", text, self._headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{verb} {path}: {answer.status} {content.decode()}")

    def close(self) -> None:
        self._connection.close()


def rate(lab: Lab, of: Callable[[int], Iterator[Request]], fleets: range) -> tuple[int, float]:
    """Sends the requests of all fleets; how many, and how many a second."""
    clients = os.cpu_count() or 1

    def work(first: int) -> int:
        client = Client(lab)
        sent = 0
        for fleet in fleets[first::clients]:
            for request in of(fleet):
                client.send(request)
                sent += 1
        client.close()
        return sent

    began = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        sent = sum(pool.map(work, range(clients)))
    return sent, sent / (time.perf_counter() - began)


def process(lab: Lab) -> int:
    """Id of the lab's process."""
    return int(json.loads((lab.folder / "lab.json").read_text())["pid"])


def memory(lab: Lab) -> int:
    """Resident memory of the lab in kB."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process(lab)}/status").read_text())
    assert found is not None
    return int(found[1])


def cpu(lab: Lab) -> float:
    """CPU seconds that the lab has used."""
    fields = Path(f"/proc/{process(lab)}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stored(lab: Lab) -> int:
    """How many objects the lab keeps."""
    return sum(1 for _ in (lab.folder / "objects").rglob("*.json"))


def speed(port: int, rounds: int) -> None:
    """Prints requests a second by what is done."""
    found: dict[str, list[tuple[float, float]]] = {}
    counts: dict[str, int] = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "lab", port=port, guests=False) as lab:
            lab.compute("GET", "zones")  # reads the discovery documents
            began, started, total = time.perf_counter(), cpu(lab), 0
            for name, of in (("create", objects), ("read", reads), ("change", changes), ("delete", deletions)):
                before = cpu(lab)
                counts[name], figure = rate(lab, of, range(10))
                total += counts[name]
                found.setdefault(name, []).append((figure, counts[name] / (cpu(lab) - before)))
            counts["all"] = total
            found.setdefault("all", []).append((total / (time.perf_counter() - began), total / (cpu(lab) - started)))
    for name, figures in found.items():
        real, busy = ([figure[index] for figure in figures] for index in (0, 1))
        print(
            f"{name:7} {counts[name]:4} requests  {statistics.median(real):5.0f} requests/s "
            f"({min(real):.0f} to {max(real):.0f})  {statistics.median(busy):5.0f} requests/CPU second of the lab"
        )


def growth(port: int) -> None:
    """Prints memory at ten counts of objects, and how well a straight line fits them."""
    points = []
    with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "lab", port=port, guests=False) as lab:
        lab.compute("GET", "zones")
        print(f"{stored(lab):5} objects  {memory(lab) / 1024:6.1f} MB")
        for first in range(0, 200, 20):
            rate(lab, objects, range(first, first + 20))
            points.append((stored(lab), memory(lab)))
            print(f"{points[-1][0]:5} objects  {points[-1][1] / 1024:6.1f} MB")
    # The first two steps use what reading the discovery documents left free.
    points = points[2:]
    slope, start = statistics.linear_regression(*zip(*points, strict=True))
    beside = max(abs(size - start - slope * count) / size for count, size in points)
    half = len(points) // 2 + 1
    early, late = (
        statistics.linear_regression(*zip(*part, strict=True)).slope for part in (points[:half], points[-half:])
    )
    print(
        f"memory  {start / 1024:.1f} MB and {slope:.1f} kB an object; no point is more than {beside:.1%} beside the "
        f"line, and its second half is {late / early:.2f} times as steep as its first"
    )


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8470)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, {os.getloadavg()[0]:.1f} others at work")
    speed(given.port, given.rounds)
    growth(given.port)
    sys.stdout.flush()


if __name__ == "__main__":
    main()

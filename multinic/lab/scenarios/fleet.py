"""The fleet as the load balancers see it, read through the front door only."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from multinic.lab.client import Lab
from multinic.lab.errors import LabError
from multinic.lab.scenarios.traffic import Guest

SAMPLE_SECONDS = 0.3


@dataclass(frozen=True)
class RouterState:
    """A router VM and whether each network's load balancer sends it traffic.

    Attributes:
        name: VM name.
        key: ``projects/P/zones/Z/instances/NAME``.
        health: Health state by backend service, as ``getHealth`` says it.
    """

    name: str
    key: str
    health: dict[str, str]

    @property
    def serving(self) -> bool:
        """Healthy for every backend service that has it."""
        return bool(self.health) and all(state == "HEALTHY" for state in self.health.values())


def _key(link: str) -> str:
    return "projects/" + link.partition("/projects/")[2]


def routers(lab: Lab, regions: Sequence[str]) -> list[RouterState]:
    """The members of all groups behind the regions' backend services, by name."""
    found: dict[str, dict[str, str]] = {}
    for region in regions:
        for service in lab.items(f"regions/{region}/backendServices"):
            for backend in service.get("backends", []):
                path = f"regions/{region}/backendServices/{service['name']}/getHealth"
                answer = lab.compute("POST", path, {"group": backend["group"]})
                for status in answer.get("healthStatus", []):
                    states = found.setdefault(_key(status["instance"]), {})
                    states[service["name"]] = status.get("healthState", "UNKNOWN")
    return [RouterState(key.rpartition("/")[2], key, health) for key, health in sorted(found.items())]


def wanted_size(lab: Lab, regions: Sequence[str]) -> int:
    """How many routers the groups of the regions want; 0 while an autoscaler has not said yet."""
    zones = [zone["name"] for zone in lab.items("zones") if zone["name"].rpartition("-")[0] in regions]
    groups = [group for zone in zones for group in lab.items(f"zones/{zone}/instanceGroupManagers")]
    if any(not group.get("targetSize") for group in groups):
        return 0
    return sum(group["targetSize"] for group in groups)


def wait_until_serving(
    lab: Lab, regions: Sequence[str], *, timeout: float, meanwhile: Callable[[], None] = lambda: None
) -> list[RouterState]:
    """Waits until every router that the groups want is healthy everywhere; `meanwhile` is called again and again.

    Raises:
        LabError: Not in time; names the state of each router.
    """
    deadline = time.monotonic() + timeout
    while True:
        fleet = routers(lab, regions)
        wanted = wanted_size(lab, regions)
        if wanted and len(fleet) == wanted and all(router.serving for router in fleet):
            return fleet
        if time.monotonic() >= deadline:
            states = "; ".join(f"{router.name}: {router.health}" for router in fleet) or "there is none"
            raise LabError(f"{wanted} routers should serve after {timeout:.0f} s, but: {states}")
        meanwhile()
        time.sleep(0.2)


def bytes_in(lab: Lab, router: RouterState) -> list[int]:
    """Bytes received so far on each NIC of a router, in order, as its own kernel counts them."""
    from multinic.lab.guests.exec import run_in_guest

    text = run_in_guest(lab.folder, router.name, ["cat", "/proc/net/dev"])
    rows = [line.split(":") for line in text.splitlines() if ":" in line]
    return [int(numbers.split()[0]) for name, numbers in sorted(rows) if name.strip() != "lo"]


def megabits_in(lab: Lab, fleet: Sequence[RouterState], nic: int) -> list[float]:
    """What each router receives on this NIC right now, in Mbit/s."""

    def count(router: RouterState) -> tuple[float, int]:
        return time.monotonic(), bytes_in(lab, router)[nic]

    with ThreadPoolExecutor(len(fleet)) as pool:
        before = list(pool.map(count, fleet))
        time.sleep(SAMPLE_SECONDS)
        after = list(pool.map(count, fleet))
    return [(new - old) * 8 / 1e6 / (to - at) for (at, old), (to, new) in zip(before, after, strict=True)]


def guests(outputs: Mapping[str, Any], role: str) -> list[Guest]:
    """Each ``client`` or ``server`` that a program exports."""
    columns = (outputs.get(f"{role}{of}", ()) for of in ("s", "_addresses", "_zones"))
    return [Guest(name, address, zone) for name, address, zone in zip(*columns, strict=True)]


def group_of(lab: Lab, router: RouterState) -> str:
    """Path of the managed group that has this router, below the project.

    Raises:
        LabError: No group has it.
    """
    zone = router.key.split("/")[3]
    for group in lab.items(f"zones/{zone}/instanceGroupManagers"):
        path = f"zones/{zone}/instanceGroupManagers/{group['name']}"
        members = lab.compute("POST", f"{path}/listManagedInstances").get("managedInstances", [])
        if any(_key(member["instance"]) == router.key for member in members):
            return path
    raise LabError(f"no group of {zone} has {router.name}")


def route_to(lab: Lab, address: str) -> dict[str, Any]:
    """The route by a load balancer whose destination has this address.

    Raises:
        LabError: There is none.
    """
    for route in lab.items("global/routes"):
        if route.get("nextHopIlb") and IPv4Address(address) in IPv4Network(route["destRange"]):
            return route
    raise LabError(f"no route by a load balancer leads to {address}")


def backend_service_of(lab: Lab, route: Mapping[str, Any]) -> str:
    """Path of the backend service that a route by a load balancer leads to, below the project."""
    rule = lab.compute("GET", _key(route["nextHopIlb"]).split("/", 2)[2])
    return _key(rule["backendService"]).split("/", 2)[2]

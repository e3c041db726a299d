"""The fleet that a benchmark runs over: two networks, routers between them, clients and servers, in its own lab."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from multinic.lab.client import Lab, require_free_port, running
from multinic.lab.guests import doctor, image
from multinic.lab.pulumi import in_process
from multinic.lab.scenarios.fleet import RouterState, guests, wait_until_serving, wanted_size
from multinic.lab.scenarios.fleet import routers as routers_of
from multinic.lab.scenarios.traffic import Guest
from multinic.measure.errors import MeasureError
from multinic.measure.shell import Shell, guest

REGION = "us-central1"
IMAGE = "projects/debian-cloud/global/images/debian-12-bookworm-v20260921"
SERVE_SECONDS = 300.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Shape:
    """What is declared.

    Attributes:
        machine: Machine type of the routers.
        zones: Number of zones.
        replicas: As `MultinicRouter` takes it: routers a zone.
        clients: Number of clients, in the first network.
        servers: Number of servers, in the second.
        endpoint: Machine type of clients and servers.
        mtu: Of both networks.
        router: Further inputs of `MultinicRouter`.
    """

    machine: str = "n2-highcpu-4"
    zones: int = 1
    replicas: Mapping[str, int] = field(default_factory=lambda: {"min": 1, "max": 1})
    clients: int = 1
    servers: int = 1
    endpoint: str = "n2-highcpu-32"
    mtu: int = 1460
    router: Mapping[str, Any] = field(default_factory=dict)

    def declare(self) -> None:
        """The Pulumi program."""
        import pulumi

        from multinic import Endpoints, MultinicRouter, RoutedNetworks

        zones = [f"{REGION}-{letter}" for letter in "abcf"[: self.zones]]
        cidrs = ("10.10.0.0/24", "10.20.0.0/24")
        sides = [
            {"name": name, "cidr": cidr, "mtu": self.mtu} for name, cidr in zip(("left", "right"), cidrs, strict=True)
        ]
        joined = RoutedNetworks("bench", {"region": REGION, "networks": sides})  # type: ignore[typeddict-item]
        inputs: Any = {
            "region": REGION,
            "zones": zones,
            "networks": joined.router_networks,
            "machine": {"type": self.machine, "image": IMAGE},
            "replicas": dict(self.replicas),
            **self.router,
        }
        MultinicRouter("router", inputs)
        left, right = ({"network": one["network"], "subnetwork": one["subnetwork"]} for one in joined.router_networks)
        ends: Any = {
            "zones": zones,
            "image": IMAGE,
            "machine_type": self.endpoint,
            "clients": {**left, "count": self.clients},
            "servers": {**right, "count": self.servers},
            "cidrs": list(cidrs),
        }
        made = Endpoints("ends", ends)
        for name in ("clients", "client_addresses", "client_zones", "servers", "server_addresses", "server_zones"):
            pulumi.export(name, getattr(made, name))


@dataclass(frozen=True)
class Fleet:
    """A fleet that serves.

    Attributes:
        lab: Where it runs.
        routers: Its routers.
        clients: In the first network.
        servers: In the second.
    """

    lab: Lab
    routers: list[RouterState]
    clients: list[Guest]
    servers: list[Guest]

    def shell(self, name: str) -> Shell:
        """Runs programs in one of its VMs."""
        return guest(self.lab.folder, name)


def sizes(opened: Lab) -> tuple[int, int]:
    """How many routers the groups want, and how many serve."""
    return wanted_size(opened, [REGION]), sum(router.serving for router in routers_of(opened, [REGION]))


def cpu_target(opened: Lab) -> float:
    """What the autoscaler of the first zone aims at."""
    (autoscaler,) = opened.items(f"zones/{REGION}-a/autoscalers")
    return float(autoscaler["autoscalingPolicy"]["cpuUtilization"]["utilizationTarget"])


def require_guests() -> None:
    """Raises `MeasureError` where guests cannot run."""
    if missing := doctor.why_no_guests():
        raise MeasureError(f"this benchmark needs the lab's guests. {missing}")


@contextlib.contextmanager
def lab(folder: Path, port: int, say: Say, **options: Any) -> Iterator[Lab]:
    """A lab of our own for as long as the block lasts.

    Args:
        folder: Its folder, removed at the end.
        port: Of its front door.
        say: Gets a line now and then.
        options: Further ones of `multinic.lab.client.running`.

    Raises:
        MeasureError: Guests cannot run here, or the port is taken.
    """
    require_guests()
    require_free_port(port)
    image.ensure(say)
    with running(folder, port=port, **options) as opened:
        yield opened


@contextlib.contextmanager
def fleet(opened: Lab, shape: Shape, say: Say) -> Iterator[Fleet]:
    """A serving fleet of this shape for as long as the block lasts.

    Raises:
        LabError: It does not come up.
    """
    began = time.monotonic()
    deployment = in_process.up(
        shape.declare,
        project="multinic",
        stack="bench",
        config={"gcp:project": "lab", "gcp:region": REGION},
        endpoint=opened.endpoint,
        token=opened.token,
    )
    try:
        routers = wait_until_serving(opened, [REGION], timeout=SERVE_SECONDS)
        outputs = deployment.outputs
        clients, servers = (guests(outputs, role) for role in ("client", "server"))
        say(f"{len(routers)} routers ({shape.machine}) serve, {time.monotonic() - began:.0f} s after the program began")
        yield Fleet(opened, routers, clients, servers)
    finally:
        deployment.destroy(lambda _: None)

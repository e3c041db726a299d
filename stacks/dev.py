"""The dev stack: two networks, a router between them, a client and a server. Everything in one program.

Its configuration (`multinic:…`) takes the same nested inputs as the components, and the same checks judge them:

- `networks`: list of `RoutedNetworkArgs`, in the order of the NICs;
- `zones`: list of zones; without it, all ordinary ones of the region;
- `router`: `MultinicRouterArgs` without region, zones and networks;
- `endpoints`: `machine_type`, `disk_gb` and `labels` of the client and the server, and their `image` if it is not the
  routers' or those follow an `image_family`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import pulumi

from multinic import (
    Endpoints,
    EndpointsArgs,
    MultinicRouter,
    MultinicRouterArgs,
    NetworkArgs,
    RoutedNetworks,
    RoutedNetworksArgs,
    endpoints,
    networks,
    parsing,
)
from multinic.problems import Problems
from stacks import links, routers
from stacks.config import StackConfig, rename

KEYS = ("endpoints", "networks", "router", "zones")

_NOT_ENDPOINTS = {"cidrs", "clients", "servers", "zones"}


@dataclass(frozen=True)
class DevSettings:
    """The configuration, checked as far as it can be before anything is declared."""

    region: str
    networks: Any
    zones: Any
    router: Mapping[str, Any]
    endpoints: Mapping[str, Any]

    def networks_args(self) -> RoutedNetworksArgs:
        """Inputs of the networks."""
        return cast(RoutedNetworksArgs, {"region": self.region, "networks": self.networks})

    def router_args(self, joined: Sequence[NetworkArgs]) -> MultinicRouterArgs:
        """Inputs of the router between these networks."""
        return routers.args(self.router, self.region, self.zones, joined)

    def endpoints_args(self, joined: Sequence[NetworkArgs], zones: Sequence[str]) -> EndpointsArgs:
        """Inputs of the client in the first network and the server in the second."""
        machine = self.router.get("machine")
        image = machine.get("image", "") if isinstance(machine, Mapping) else ""
        ends = [{"network": one["network"], "subnetwork": one["subnetwork"]} for one in joined[:2]]
        cidrs = sorted({cidr for one in joined for cidr in one["cidrs"]})
        stack = {"zones": list(zones), "clients": ends[0], "servers": ends[-1], "cidrs": cidrs}
        return cast(EndpointsArgs, {"image": image, **self.endpoints, **stack})


def read() -> DevSettings:
    """Reads the configuration and checks all of it.

    Raises:
        InputError: Something in it cannot be used; nothing has been declared yet.
    """
    problems = Problems()
    config = StackConfig(problems, KEYS)
    settings = DevSettings(
        region=config.region(),
        networks=config.value("networks", None),
        zones=config.value("zones", None),
        router=config.router(),
        endpoints=config.mapping("endpoints"),
    )
    for key in settings.endpoints.keys() & _NOT_ENDPOINTS:
        problems.add(f"multinic:endpoints.{key}", "is decided by the dev stack itself; leave it out")
    _check(settings, problems)
    problems.raise_if_any()
    return settings


def _check(settings: DevSettings, problems: Problems) -> None:
    """Runs the components' own checks with the links that the networks will have."""
    made = networks.parse(settings.networks_args(), found := Problems())
    rename(found, problems, {"networks": "multinic:networks", "region": "gcp:region"})
    joined = [one.router_network(*links.made_up(i, made.region)) for i, one in enumerate(made.networks)]
    parsing.router(settings.router_args(joined), found := Problems())
    own = [replace(problem, path=_as_given(problem.path, settings.networks)) for problem in found.found]
    names = {"networks": "multinic:networks", "region": "gcp:region", "zones": "multinic:zones"}
    rename(Problems(own), problems, names, "multinic:router.")
    if len(joined) > 1:
        found = Problems()
        endpoints.parse(settings.endpoints_args(joined, [f"{made.region}-b"]), found)
        # What the endpoints only take over from the rest of the configuration has been judged there; but a family says
        # no image, and the routers' image may not suit the endpoints' machine type.
        judged = {*settings.endpoints, *([] if problems.touch("multinic:router.machine.image") else ["image"])}
        own = [problem for problem in found.found if problem.path.split(".")[0] in judged]
        rename(Problems(own), problems, {}, "multinic:endpoints.")


def _as_given(path: str, networks: Any) -> str:
    """Returns what a range of the router is called here: a network announces its own `cidr` if it gives no `cidrs`."""
    own = re.fullmatch(r"(networks\[(\d+)\])\.(cidrs|subnet_cidrs)\[\d+\]", path)
    if own is None:
        return path
    given = networks[int(own[2])]
    has_cidrs = isinstance(given, Mapping) and given.get("cidrs") is not None
    return path if has_cidrs and own[3] == "cidrs" else f"{own[1]}.cidr"


def program() -> None:
    """Declares the stack.

    Raises:
        InputError: The configuration cannot be used; its text is for people, and nothing was declared.
    """
    settings = read()
    joined = RoutedNetworks("dev", settings.networks_args())
    router = MultinicRouter("router", settings.router_args(joined.router_networks))
    ends = Endpoints("ends", settings.endpoints_args(joined.router_networks, router.zones))

    routers.export(router, settings.region)
    pulumi.export("networks", joined.networks)
    pulumi.export("subnetworks", joined.subnetworks)
    for name in ("clients", "client_addresses", "client_zones", "servers", "server_addresses", "server_zones"):
        pulumi.export(name, getattr(ends, name))

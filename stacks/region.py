"""A region's stack: the router of one region between networks of the networks stack.

Its configuration:

- `networks_stack`: full name of the networks stack;
- `networks`: list of `name` and `cidrs`, in the order of the NICs: the ranges that this region announces;
- `zones`: list of zones; without it, all ordinary ones of the region;
- `router`: `MultinicRouterArgs` without region, zones and networks;
- `other_regions`: full names of the other region stacks, whose routes must not clash with these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from multinic import MultinicRouter, MultinicRouterArgs, NetworkArgs, parsing, routes
from multinic.problems import Problems
from multinic.reading import Section
from multinic.settings import RouterSettings
from stacks import links, routers
from stacks.config import StackConfig, rename

KEYS = ("networks", "networks_stack", "other_regions", "router", "zones")


@dataclass(frozen=True)
class RegionSettings:
    """The configuration, checked."""

    region: str
    networks_stack: str
    names: tuple[str, ...]
    cidrs: tuple[tuple[str, ...], ...]
    zones: Any
    router: Mapping[str, Any]
    other_regions: tuple[str, ...]

    def router_args(self, joined: Sequence[NetworkArgs]) -> MultinicRouterArgs:
        """Inputs of the router between these networks."""
        return routers.args(self.router, self.region, self.zones, joined)

    def joined(
        self, network: Sequence[pulumi.Input[str]], subnetwork: Sequence[pulumi.Input[str]]
    ) -> list[NetworkArgs]:
        """Returns the networks with their links."""
        return [
            NetworkArgs(network=one, subnetwork=other, cidrs=list(cidrs))
            for one, other, cidrs in zip(network, subnetwork, self.cidrs, strict=True)
        ]


def read() -> tuple[RegionSettings, RouterSettings]:
    """Reads the configuration and checks all of it.

    Raises:
        InputError: Something in it cannot be used; nothing has been declared yet.
    """
    problems = Problems()
    config = StackConfig(problems, KEYS)
    top = Section({key: config.value(key, None) for key in KEYS}, "", found := Problems())
    networks = top.sections("networks")
    router = config.router()
    settings = RegionSettings(
        region=config.region(),
        networks_stack=top.text("networks_stack", pattern="[^/]+/[^/]+/[^/]+", form="ORGANIZATION/PROJECT/STACK"),
        names=tuple(section.text("name") for section in networks),
        cidrs=tuple(section.texts("cidrs", None) for section in networks),
        zones=config.value("zones", None),
        router=router,
        other_regions=top.texts("other_regions"),
    )
    for section in networks:
        section.done()
    for index, name in enumerate(settings.names):
        if name in settings.names[:index]:
            found.add(f"networks[{index}].name", f"{name} is given twice")
    rename(found, problems, {key: f"multinic:{key}" for key in KEYS})
    places = [f"projects/p/global/networks/n{i}" for i, _ in enumerate(networks)]
    inside = [f"projects/p/regions/{settings.region}/subnetworks/s{i}" for i, _ in enumerate(networks)]
    checked = parsing.router(settings.router_args(settings.joined(places, inside)), found := Problems())
    names = {"networks": "multinic:networks", "region": "gcp:region", "zones": "multinic:zones"}
    rename(found, problems, names, "multinic:router.")
    problems.raise_if_any()
    return settings, checked


def program() -> None:
    """Declares the stack.

    Raises:
        InputError: The configuration cannot be used; nothing was declared.
    """
    settings, checked = read()
    own = [
        links.claim(settings.names[i], str(cidr), checked.routes.priority)
        for i, cidr in routes.claims(checked.fleet.networks)
    ]
    stack = links.NetworksStack(settings.networks_stack, settings.region)
    network = [stack.network(name) for name in settings.names]
    subnetwork = [stack.subnetwork(name) for name in settings.names]
    name = f"router-{settings.region}"
    router = MultinicRouter(name, settings.router_args(settings.joined(network, subnetwork)))

    pulumi.export("claims", links.refuse_clashes(own, settings.other_regions))
    routers.export(router, settings.region)
    pulumi.export("readme", readme(settings, router))


def readme(settings: RegionSettings, router: MultinicRouter) -> pulumi.Output[str]:
    """Returns the stack's page in Pulumi's console: which network is reached how."""
    head = f"# Router in {settings.region}\n\nZones: {', '.join(router.zones)}\n\n"
    table = "| Network | Ranges behind it | Next hop in it |\n|---|---|---|\n"

    def write(addresses: Sequence[str]) -> str:
        rows = zip(settings.names, settings.cidrs, addresses, strict=True)
        return head + table + "".join(f"| {name} | {', '.join(cidrs)} | {hop} |\n" for name, cidrs, hop in rows)

    return router.addresses.apply(write)

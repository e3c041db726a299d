"""A region's stack: the router of one region between networks of the networks stack.

Its configuration:

- `networks_stack`: full name of the networks stack;
- `networks`: list of `name` and `cidrs`, in the order of the NICs: the ranges that this region announces; beside them
  what `NetworkArgs` has but the links, such as `address` and `mtu`;
- `zones`: list of zones; without it, all ordinary ones of the region;
- `router`: `MultinicRouterArgs` without region, zones and networks;
- `other_regions`: full names of the other region stacks, whose routes must not clash with these.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pulumi

from multinic import MultinicRouter, MultinicRouterArgs, NetworkArgs, naming, parsing, routes
from multinic.problems import Problems
from multinic.reading import Section
from multinic.settings import RouterSettings
from stacks import links, routers
from stacks.config import StackConfig, rename

KEYS = ("networks", "networks_stack", "other_regions", "router", "zones")

_OF_NETWORK = sorted(NetworkArgs.__annotations__.keys() - {"network", "subnetwork"})


@dataclass(frozen=True)
class RegionSettings:
    """The configuration, checked."""

    region: str
    networks_stack: str
    names: tuple[str, ...]
    networks: tuple[Mapping[str, Any], ...]
    zones: Any
    router: Mapping[str, Any]
    other_regions: tuple[str, ...]

    def router_args(
        self, network: Sequence[pulumi.Input[str]], subnetwork: Sequence[pulumi.Input[str]]
    ) -> MultinicRouterArgs:
        """Inputs of the router between the networks with these links."""
        rows = zip(self.networks, network, subnetwork, strict=True)
        joined = [{**given, "network": one, "subnetwork": other} for given, one, other in rows]
        return routers.args(self.router, self.region, self.zones, cast(list[NetworkArgs], joined))


def read() -> tuple[RegionSettings, RouterSettings]:
    """Reads the configuration and checks all of it.

    Raises:
        InputError: Something in it cannot be used; nothing has been declared yet.
    """
    problems = Problems()
    config = StackConfig(problems, KEYS)
    top = Section({key: config.value(key, None) for key in KEYS}, "", found := Problems())
    networks = top.sections("networks")
    settings = RegionSettings(
        region=config.region(),
        networks_stack=top.text("networks_stack", pattern=links.STACK, form=links.STACK_FORM),
        names=tuple(section.text("name", pattern=naming.NAME, form=naming.NAME_FORM) for section in networks),
        networks=tuple(section.pick(*_OF_NETWORK) for section in networks),
        zones=config.value("zones", None),
        router=config.router(),
        other_regions=top.texts("other_regions"),
    )
    for section in networks:
        section.done()
    for index, name in enumerate(settings.names):
        if name and name in settings.names[:index]:
            found.add(f"networks[{index}].name", f"{name} is given twice")
    _judge_others(settings, found)
    rename(found, problems, {key: f"multinic:{key}" for key in KEYS})
    pairs = [links.made_up(i, settings.region) for i, _ in enumerate(networks)]
    args = settings.router_args([network for network, _ in pairs], [subnetwork for _, subnetwork in pairs])
    checked = parsing.router(args, found := Problems())
    names = {"networks": "multinic:networks", "region": "gcp:region", "zones": "multinic:zones"}
    rename(found, problems, names, "multinic:router.")
    problems.raise_if_any()
    return settings, checked


def _judge_others(settings: RegionSettings, problems: Problems) -> None:
    """Notes names of other stacks that cannot be read: the engine takes each stack once."""
    here = f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"
    for index, stack in enumerate(settings.other_regions):
        path = f"other_regions[{index}]"
        if not stack:
            continue  # it could not be read
        if not re.fullmatch(links.STACK, stack):
            problems.add(path, f"{stack!r} is not {links.STACK_FORM}")
        elif stack == here:
            problems.add(path, f"{stack} is this stack itself; leave it out")
        elif stack == settings.networks_stack:
            problems.add(path, f"{stack} is the networks stack; give region stacks")
        elif stack in settings.other_regions[:index]:
            problems.add(path, f"{stack} is given twice")


def program() -> None:
    """Declares the stack.

    Raises:
        InputError: The configuration cannot be used; nothing was declared.
    """
    settings, checked = read()
    stack = links.NetworksStack(settings.networks_stack, settings.region)
    network = [stack.network(name) for name in settings.names]
    subnetwork = [stack.subnetwork(name) for name in settings.names]
    router = MultinicRouter(f"router-{settings.region}", settings.router_args(network, subnetwork))

    own = pulumi.Output.all(*network).apply(lambda known: claims(known, checked))
    pulumi.export("claims", links.refuse_clashes(own, settings.other_regions))
    routers.export(router, settings.region)
    pulumi.export("readme", readme(settings, checked, router))


def claims(network: Sequence[str], checked: RouterSettings) -> list[str]:
    """Returns what the router's routes take, by the networks' links."""
    taken, tags = routes.claims(checked.fleet.networks), checked.routes.tags or ("",)
    return [links.claim(network[i], str(cidr), checked.routes.priority, tag) for i, cidr in taken for tag in tags]


def readme(settings: RegionSettings, checked: RouterSettings, router: MultinicRouter) -> pulumi.Output[str]:
    """Returns the stack's page in Pulumi's console: which network is reached how."""
    head = f"# Router in {settings.region}\n\nZones: {', '.join(router.zones)}\n\n"
    table = "| Network | Ranges behind it | Next hop in it |\n|---|---|---|\n"

    def write(addresses: Sequence[str]) -> str:
        ranges = [", ".join(map(str, network.cidrs)) for network in checked.fleet.networks]
        rows = zip(settings.names, ranges, addresses, strict=True)
        return head + table + "".join(f"| {name} | {cidrs} | {hop} |\n" for name, cidrs, hop in rows)

    return router.addresses.apply(write)

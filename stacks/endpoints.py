"""The endpoints stack: clients in one network of the networks stack and servers in another, to measure with.

Its configuration:

- `networks_stack`: full name of the networks stack;
- `client_network`, `server_network`: names of two of its networks;
- `endpoints`: `EndpointsArgs` without the networks; `clients` and `servers` have a `count` only.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

import pulumi

from multinic import Endpoints, EndpointsArgs, endpoints
from multinic.problems import Problems
from multinic.reading import Section
from multinic.zones import REGION, is_zone_of
from stacks import links
from stacks.config import StackConfig, rename

_ANY = ("projects/p/global/networks/any", "projects/p/regions/any-region1/subnetworks/any")
KEYS = ("client_network", "endpoints", "networks_stack", "server_network")


def program() -> None:
    """Declares the stack.

    Raises:
        InputError: The configuration cannot be used; nothing was declared.
    """
    problems = Problems()
    config = StackConfig(problems, KEYS)
    top = Section({key: config.value(key, None) for key in KEYS}, "", found := Problems())
    region = config.region()
    names = {"clients": top.text("client_network"), "servers": top.text("server_network")}
    stack = top.text("networks_stack", pattern=links.STACK, form=links.STACK_FORM)
    given = config.mapping("endpoints")
    rename(found, problems, {key: f"multinic:{key}" for key in KEYS})
    endpoints.parse(_args(given, dict.fromkeys(names, _ANY)), found := Problems())
    found.found = [one for one in found.found if one.rule != "subnet-region"]  # the links above are made up
    rename(found, problems, {}, "multinic:endpoints.")
    zones = given.get("zones")
    for index, zone in enumerate(zones if isinstance(zones, list) else ()):
        if region and re.fullmatch(f"{REGION}-[a-z]", str(zone)) and not is_zone_of(str(zone), region):
            problems.add(f"multinic:endpoints.zones[{index}]", f"{zone} is not in gcp:region, {region}")
    problems.raise_if_any()

    networks = links.NetworksStack(stack, region)
    placed = {role: (networks.network(name), networks.subnetwork(name)) for role, name in names.items()}
    made = Endpoints("endpoints", cast(EndpointsArgs, _args(given, placed)))
    for name in ("clients", "client_addresses", "client_zones", "servers", "server_addresses", "server_zones"):
        pulumi.export(name, getattr(made, name))


def _args(given: Mapping[str, Any], placed: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
    """Returns the inputs with the networks in place."""
    args = dict(given)
    for role, (network, subnetwork) in placed.items():
        group = given.get(role) or {}
        # Anything but a mapping is left as it is, for the component's own check to refuse.
        args[role] = {**group, "network": network, "subnetwork": subnetwork} if isinstance(group, Mapping) else group
    return args

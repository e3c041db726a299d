"""The networks stack: VPC networks with a subnetwork in every region that has routers.

Its configuration: `networks`, a list of `RoutedNetworkArgs`. Real networks have owners of their own; then this stack
is not used, and a stack that exports the same outputs (`stacks/links.py`) takes its place.
"""

from typing import cast

import pulumi

from multinic import RoutedNetworks, RoutedNetworksArgs, networks
from multinic.problems import Problems
from stacks import links
from stacks.config import StackConfig, rename

KEYS = ("networks",)


def program() -> None:
    """Declares the stack.

    Raises:
        InputError: The configuration cannot be used; nothing was declared.
    """
    problems, found = Problems(), Problems()
    config = StackConfig(problems, KEYS)
    args = cast(RoutedNetworksArgs, {"region": config.region(), "networks": config.value("networks", None)})
    networks.parse(args, found)
    rename(found, problems, {"networks": "multinic:networks", "region": "gcp:region"})
    problems.raise_if_any()

    made = RoutedNetworks("networks", args)
    for one, given in zip(made.router_networks, args["networks"], strict=True):
        name = given["name"]
        pulumi.export(links.network_key(name), one["network"])
        for region, subnetwork in made.subnetworks_by_region[name].items():
            pulumi.export(links.subnetwork_key(name, region), subnetwork)

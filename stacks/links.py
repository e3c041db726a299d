"""The networks of another stack: what `networks` exports and how the stacks that build on it read it.

Every value is an output of its own, flat and plain: one unknown or secret in a nested output would spread over all.
"""

import re
from collections.abc import Sequence
from typing import cast

import pulumi

from multinic import naming, zones

STACK = "[^/]+/[^/]+/[^/]+"
"""Form of a stack's full name."""

STACK_FORM = "ORGANIZATION/PROJECT/STACK"
"""The same in words."""


def network_key(network: str) -> str:
    """Returns the name of the output with a network's link."""
    return f"network_{network}"


def subnetwork_key(network: str, region: str) -> str:
    """Returns the name of the output with the link of a network's subnetwork in a region."""
    return f"subnetwork_{network}_{region}"


def made_up(index: int, region: str) -> tuple[str, str]:
    """Returns links of the form that a network and its subnetwork will have, to check all else with beforehand."""
    inside = region if re.fullmatch(zones.REGION, region) else "us-central1"
    return f"projects/p/global/networks/n{index}", f"projects/p/regions/{inside}/subnetworks/s{index}"


def claim(network: str, cidr: str, priority: int, tag: str = "") -> str:
    """Returns what a region's routes take in a network, as one word that can be compared.

    Args:
        network: Link of the network: another stack may call it by another name.
        cidr: The range.
        priority: The routes' priority.
        tag: The network tag of the VMs that use them; empty if all do.
    """
    return "|".join([naming.partial(network), cidr, str(priority), *([tag] if tag else [])])


class NetworksStack:
    """Reads the outputs of a `networks` stack.

    Args:
        name: Full name of that stack, ORGANIZATION/PROJECT/STACK.
        region: The region whose subnetworks are wanted.
    """

    def __init__(self, name: str, region: str) -> None:
        self._reference = pulumi.StackReference(name)
        self._region = region

    def network(self, network: str) -> pulumi.Output[str]:
        """Returns the link of a network; a missing one fails the preview with a sentence."""
        return self._required(network_key(network))

    def subnetwork(self, network: str) -> pulumi.Output[str]:
        """Returns the link of its subnetwork in the region."""
        return self._required(subnetwork_key(network, self._region))

    def _required(self, key: str) -> pulumi.Output[str]:
        stack = self._reference.name

        def judge(values: Sequence[object]) -> str:
            name, value = values
            if not isinstance(value, str):
                raise pulumi.RunError(
                    f"multinic:networks_stack: stack {name} has no output {key}; declare that network, and a "
                    f"subnetwork of it in {self._region}, in its multinic:networks, and deploy it first"
                )
            return value

        return pulumi.Output.all(stack, self._reference.get_output(key)).apply(judge)


def refuse_clashes(own: pulumi.Output[list[str]], stacks: Sequence[str]) -> pulumi.Output[list[str]]:
    """Compares a region's claims with those of other region stacks.

    Routes of two regions with the same range and priority in one network do not share traffic: Google Cloud picks one
    of them, for everybody. https://docs.cloud.google.com/load-balancing/docs/internal/ilb-next-hop-overview

    Args:
        own: Claims of this stack.
        stacks: Full names of the other region stacks.

    Returns:
        The own claims, once they are known not to clash. It fails in the preview already.
    """
    here = pulumi.get_stack()

    def judge(known: Sequence[object]) -> list[str]:
        mine = cast(list[str], known[0])
        clashes = []
        for stack, theirs in zip(stacks, known[1:], strict=True):
            if not isinstance(theirs, list):
                pulumi.log.warn(
                    f"multinic:other_regions: stack {stack} says nothing of its routes, so a clash with them is not "
                    "seen; it is no region stack, or not deployed yet"
                )
                continue
            for one in sorted(set(mine) & set(theirs)):
                network, cidr, priority, *tag = one.split("|")
                told = ", ".join([f"network {network}", cidr, f"priority {priority}", *(f"tag {one}" for one in tag)])
                clashes.append(f"{told}: claimed by {here} and by {stack}")
        if clashes:
            lines = "\n  ".join(clashes)
            raise pulumi.RunError(
                f"routes of two regions clash; give one of them another multinic:router.routes.priority:\n  {lines}"
            )
        return mine

    return pulumi.Output.all(own, *(pulumi.StackReference(stack).get_output("claims") for stack in stacks)).apply(judge)

"""What stacks with a router have in common: its inputs from the configuration, and what they export of it."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pulumi

from multinic import MultinicRouter, MultinicRouterArgs, NetworkArgs


def args(given: Mapping[str, Any], region: str, zones: Any, joined: Sequence[NetworkArgs]) -> MultinicRouterArgs:
    """Returns a router's inputs.

    Args:
        given: `multinic:router` of the configuration.
        region: Its region.
        zones: `multinic:zones`; None to have them looked up.
        joined: The networks, in the order of the NICs.
    """
    found = {**given, "region": region, "networks": list(joined)}
    if zones is not None:
        found["zones"] = zones
    return cast(MultinicRouterArgs, found)


def export(router: MultinicRouter, region: str) -> None:
    """Exports what people and the operator commands need to know of a router.

    Flat and plain: one secret or one unknown in a nested output would spread over the whole of it.
    """
    pulumi.export("region", region)
    pulumi.export("zones", list(router.zones))
    pulumi.export("next_hop_addresses", router.addresses)
    pulumi.export("next_hops", router.next_hops)
    pulumi.export("backend_services", router.backend_services)
    pulumi.export("instance_groups", router.groups)
    pulumi.export("template", router.template)
    pulumi.export("heal_check", router.heal_check)
    pulumi.export("traffic_check", router.traffic_check)
    pulumi.export("service_account", router.service_account)
    pulumi.export("routes", router.routes)

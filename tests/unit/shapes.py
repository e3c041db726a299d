"""Inputs of several shapes, for the tests that compare what they become."""

from __future__ import annotations

import copy
from typing import Any

from multinic.args import MultinicRouterArgs

IMAGE = "projects/debian-cloud/global/images/debian-12-bookworm-v20260921"
REGION = "us-central1"
ZONES = [f"{REGION}-{letter}" for letter in "abc"]


def network(index: int, **more: Any) -> dict[str, Any]:
    """Returns one network as its owner would give it."""
    return {
        "network": f"projects/lab/global/networks/net-{index}",
        "subnetwork": f"projects/lab/regions/{REGION}/subnetworks/sub-{index}",
        "cidrs": [f"10.{index}.0.0/16"],
        **more,
    }


def router_args(count: int = 2, **more: Any) -> MultinicRouterArgs:
    """Returns the inputs of a router between that many networks."""
    args: dict[str, Any] = {
        "region": REGION,
        "zones": list(ZONES),
        "networks": [network(index) for index in range(count)],
        "machine": {"image": IMAGE},
    }
    if count > 4:
        args["machine"]["type"] = "n2-highcpu-8"
    args.update(copy.deepcopy(more))
    return args  # type: ignore[return-value]


def put(args: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Sets one input deep inside, given by its path with dots and numbers."""
    args = copy.deepcopy(args)
    *heads, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place: Any = args
    for head in heads:
        place = place[head] if isinstance(head, int) else place.setdefault(head, {})
    place[last] = value
    return args


def changed(change: dict[str, Any]) -> Any:
    args: dict[str, Any] = dict(router_args())
    for path, value in change.items():
        args = put(args, path, value)
    return args

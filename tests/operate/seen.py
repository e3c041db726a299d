"""What `multinic status --json` shows, looked at by tests."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conftest import Command

ZONES = ("us-central1-a", "us-central1-b", "us-central1-c")


def in_zone(fleet: dict[str, Any], zone: str) -> str:
    name: str = next(router["name"] for router in fleet["routers"] if router["zone"] == zone)
    return name


def healthy(fleet: dict[str, Any], network: int = 0) -> set[str]:
    name = fleet["hops"][network]["network"]
    return {router["name"] for router in fleet["routers"] if router["health"].get(name) == "HEALTHY"}


def quiet(found: dict[str, Any]) -> bool:
    """Whether its groups have nothing to do and all that it has serves."""
    groups = found["fleet"]["groups"]
    return not any(group["actions"] for group in groups) and len(healthy(found["fleet"])) == len(groups)


def wait_for(multinic: Command, test: Callable[[dict[str, Any]], bool]) -> Any:
    deadline = time.monotonic() + 60
    while not test(found := multinic.json("status")):
        assert time.monotonic() < deadline, found
    return found

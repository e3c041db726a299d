"""What `multinic status --json` shows, looked at by tests."""

from __future__ import annotations

import time

ZONES = ("us-central1-a", "us-central1-b", "us-central1-c")


def in_zone(fleet, zone):
    return next(router["name"] for router in fleet["routers"] if router["zone"] == zone)


def healthy(fleet, network=0):
    name = fleet["hops"][network]["network"]
    return {router["name"] for router in fleet["routers"] if router["health"].get(name) == "HEALTHY"}


def quiet(found):
    """Whether its groups have nothing to do and all that it has serves."""
    groups = found["fleet"]["groups"]
    return not any(group["actions"] for group in groups) and len(healthy(found["fleet"])) == len(groups)


def wait_for(multinic, test):
    deadline = time.monotonic() + 60
    while not test(found := multinic.json("status")):
        assert time.monotonic() < deadline, found
    return found

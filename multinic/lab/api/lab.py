"""The lab's own calls beside Google's: what happened, what a hand could do to a machine, the way of a packet.

- ``GET /lab/v1/events?after=N``
- ``POST /lab/v1/machines/KEY:panic | cutPower | preempt | freeze | thaw``; KEY is
  ``projects/P/zones/Z/instances/NAME``
- ``POST /lab/v1/zones/ZONE:fail | restore``
- ``GET /lab/v1/packet?source=ADDRESS&destination=ADDRESS&protocol=tcp&port=80``
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from ..cloud import ApiError, Cloud
from ..cloud.packet import trace
from ..substrate import SubstrateError

_MACHINE = re.compile(r"v1/machines/(?P<key>projects/[^/]+/zones/[^/]+/instances/[^/:]+):(?P<action>\w+)")
_ZONE = re.compile(r"v1/zones/(?P<zone>[^/:]+):(?P<action>fail|restore)")


async def serve(cloud: Cloud, verb: str, path: str, query: dict[str, list[str]]) -> dict[str, Any]:
    """Answers one request; `path` begins with the version."""
    if (verb, path) == ("GET", "v1/events"):
        after = query.get("after", ["0"])[-1] or "0"
        if not after.isascii() or not after.isdigit() or len(after) > 18:
            raise ApiError(400, "invalidParameter", f"Invalid value '{after[:50]}' for the parameter 'after'.")
        return {"events": cloud.events.as_json(int(after))}
    if (verb, path) == ("GET", "v1/packet"):
        values = {name: texts[-1] for name, texts in query.items()}
        for name in ("source", "destination"):
            if not values.get(name):
                raise ApiError(400, "required", f"Required parameter: {name}")
        return trace(cloud, values["source"], values["destination"], values.get("protocol", "tcp"), values.get("port"))
    if verb == "POST" and (outage := _ZONE.fullmatch(unquote(path))):
        act = cloud.outages.fail if outage["action"] == "fail" else cloud.outages.restore
        await act(outage["zone"])
        return {"done": True}
    found = _MACHINE.fullmatch(unquote(path))
    if found is None or verb != "POST":
        raise ApiError(404, "notFound", f"The lab does not serve {verb} /lab/{path}.")
    await _act(cloud, found["key"], found["action"])
    return {"done": True}


async def _act(cloud: Cloud, key: str, action: str) -> None:
    value = cloud.store.require(key)
    if value["status"] != "RUNNING":
        raise ApiError(400, "invalid", f"The machine '{key}' is {value['status']}, not RUNNING.")
    substrate = cloud.substrate
    try:
        match action:
            case "panic":
                await substrate.panic(key)
            case "cutPower":
                await substrate.cut_power(key)
            case "preempt":
                cloud.machines.preempt(key)
            case "freeze" | "thaw":
                await substrate.freeze(key, action == "freeze")
                cloud.events.add("machine", key, "frozen" if action == "freeze" else "thawed", id=value["id"])
            case _:
                raise ApiError(404, "notFound", f"A machine cannot '{action}': panic, cutPower, preempt, freeze, thaw.")
    except SubstrateError as error:
        raise ApiError(503, "backendError", str(error)) from error

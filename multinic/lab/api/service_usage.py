"""Service Usage v1: which APIs are enabled. In the lab all that it knows always are.

https://cloud.google.com/service-usage/docs/reference/rest/v1/services
"""

from __future__ import annotations

from typing import Any

from ..cloud import ApiError, Cloud
from ..cloud.call import Call
from .lists import cut
from .requests import Service, require_project

ENABLED = (
    "cloudresourcemanager.googleapis.com",
    "compute.googleapis.com",
    "iam.googleapis.com",
    "iap.googleapis.com",  # only its role is served, as part of a project's policy
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "serviceusage.googleapis.com",
)
_BIGGEST_BATCH = 20
"""Discovery document serviceusage.v1, ``BatchEnableServicesRequest.serviceIds``."""


def _require_project(cloud: Cloud, call: Call) -> None:
    if call.params["v1Id"] != "projects":
        raise ApiError(403, "forbidden", "The lab has services of its project only.")
    require_project(cloud, call.params["v1Id1"])


def _named(cloud: Cloud, call: Call) -> str:
    _require_project(cloud, call)
    return _known(call.params["servicesId"])


def _known(name: str) -> str:
    if name not in ENABLED:
        raise ApiError(501, "notImplemented", f"The lab does not have {name[:100]}, only {', '.join(ENABLED)}.")
    return name


def _service(cloud: Cloud, name: str) -> dict[str, Any]:
    return {
        "name": f"projects/{cloud.projects.number}/services/{name}",
        "parent": f"projects/{cloud.projects.number}",
        "config": {"name": name},
        "state": "ENABLED",
    }


def _list(cloud: Cloud, call: Call) -> dict[str, Any]:
    _require_project(cloud, call)
    # "The allowed filter strings are state:ENABLED and state:DISABLED": discovery document, services.list, filter.
    wanted = call.params.get("filter") or "state:ENABLED"
    if wanted not in ("state:ENABLED", "state:DISABLED"):
        raise ApiError(400, "badRequest", f"The filter '{wanted[:100]}' is not state:ENABLED or state:DISABLED.")
    services = [_service(cloud, name) for name in ENABLED] if wanted == "state:ENABLED" else []
    found, following = cut(services, call.params.get("pageSize"), call.params.get("pageToken"), biggest=200)
    return {"services": found, "nextPageToken": following}


def _enable(cloud: Cloud, call: Call) -> dict[str, Any]:
    return _done({"service": _service(cloud, _named(cloud, call))})


def _enable_many(cloud: Cloud, call: Call) -> dict[str, Any]:
    _require_project(cloud, call)
    wanted = call.body.get("serviceIds") or []
    if len(wanted) > _BIGGEST_BATCH:
        raise ApiError(400, "badRequest", f"serviceIds takes at most {_BIGGEST_BATCH} services, not {len(wanted)}.")
    return _done({"services": [_service(cloud, _known(name)) for name in wanted]})


def _disable(cloud: Cloud, call: Call) -> dict[str, Any]:
    _named(cloud, call)
    raise ApiError(400, "failedPrecondition", "The lab's APIs cannot be disabled.")


def _done(response: dict[str, Any]) -> dict[str, Any]:
    return {"name": "operations/noop.DONE_OPERATION", "done": True, "response": response}


SERVICE = Service(
    "serviceusage",
    "serviceusage.v1",
    {
        "services.get": lambda cloud, call: _service(cloud, _named(cloud, call)),
        "services.list": _list,
        "services.enable": _enable,
        "services.batchEnable": _enable_many,
        "services.disable": _disable,
    },
)

"""Service Usage v1: which APIs are enabled. In the lab those that it serves always are.

https://cloud.google.com/service-usage/docs/reference/rest/v1/services
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from ..cloud import ApiError, Cloud

SERVED = (
    "cloudresourcemanager.googleapis.com",
    "compute.googleapis.com",
    "iam.googleapis.com",
    "logging.googleapis.com",
    "serviceusage.googleapis.com",
)
_PATH = re.compile(r"v1/projects/(?P<project>[^/]+)/services(?:/(?P<service>[^/:]+))?(?::(?P<action>\w+))?")


def serve(cloud: Cloud, verb: str, path: str, body: Any) -> dict[str, Any]:
    """Answers one request; `path` begins with the version."""
    found = _PATH.fullmatch(path)
    if found is None:
        raise ApiError(404, "notFound", f"The lab does not serve /serviceusage/{path}.")
    project, service, action = unquote(found["project"]), found["service"] or "", found["action"]
    if project not in (cloud.project, str(cloud.projects.number)):
        raise ApiError(403, "forbidden", "The caller does not have permission")
    if service and service not in SERVED:
        raise ApiError(501, "notImplemented", f"The lab does not have {service}, only {', '.join(SERVED)}.")
    match verb, bool(service), action:
        case "GET", False, None:
            return {"services": [_service(cloud, name) for name in SERVED]}
        case "GET", True, None:
            return _service(cloud, service)
        case "POST", True, "enable":
            return {
                "name": "operations/noop.DONE_OPERATION",
                "done": True,
                "response": {"service": _service(cloud, service)},
            }
        case "POST", True, "disable":
            raise ApiError(400, "failedPrecondition", "The lab's APIs cannot be disabled.")
        case "POST", False, "batchEnable":
            wanted = [str(name) for name in (body or {}).get("serviceIds") or []] if isinstance(body, dict) else []
            unknown = sorted(set(wanted) - set(SERVED))
            if unknown:
                raise ApiError(501, "notImplemented", f"The lab does not have {', '.join(unknown)[:300]}.")
            services = [_service(cloud, name) for name in wanted]
            return {"name": "operations/noop.DONE_OPERATION", "done": True, "response": {"services": services}}
    raise ApiError(501, "notImplemented", f"The lab does not serve {verb} /serviceusage/{path}.")


def _service(cloud: Cloud, name: str) -> dict[str, Any]:
    return {
        "name": f"projects/{cloud.projects.number}/services/{name}",
        "parent": f"projects/{cloud.projects.number}",
        "config": {"name": name},
        "state": "ENABLED",
    }

"""Resource Manager v1: the project and its IAM policy.

https://cloud.google.com/resource-manager/reference/rest/v1/projects
"""

from __future__ import annotations

import logging
import re
from typing import Any
from urllib.parse import unquote

from ..cloud import ApiError, Cloud
from .bodies import BodyChecker
from .documents import document

log = logging.getLogger("multinic.lab")
_PATH = re.compile(r"v1/projects/(?P<project>[^/:]+)(?::(?P<action>\w+))?")


def serve(cloud: Cloud, verb: str, path: str, body: Any) -> dict[str, Any]:
    """Answers one request; `path` begins with the version."""
    found = _PATH.fullmatch(path)
    if found is None:
        raise ApiError(404, "notFound", f"The lab does not serve /crm/{path}.")
    project, action = unquote(found["project"]), found["action"]
    if project not in (cloud.project, str(cloud.projects.number)):
        raise ApiError(403, "forbidden", "The caller does not have permission")
    match verb, action:
        case "GET", None:
            return {
                "projectNumber": str(cloud.projects.number),
                "projectId": cloud.project,
                "name": cloud.project,
                "lifecycleState": "ACTIVE",
                "createTime": cloud.began,
            }
        case "POST", "getIamPolicy":
            return cloud.project_policy.get()
        case "POST", "setIamPolicy":
            return cloud.project_policy.set(_checked(cloud, "SetIamPolicyRequest", body))
        case "POST", "testIamPermissions":
            return {"permissions": _checked(cloud, "TestIamPermissionsRequest", body).get("permissions", [])}
    raise ApiError(501, "notImplemented", f"The lab does not serve {verb} /crm/{path}.")


def _checked(cloud: Cloud, schema: str, body: Any) -> dict[str, Any]:
    checker = BodyChecker(
        (document("cloudresourcemanager.v1"),),
        f"projects.{schema}",
        strict=cloud.strict,
        patch=False,
        note=lambda text: log.info("%s", text),
    )
    return checker.check(schema, {} if body is None else body)

"""Resource Manager v1: the project and its IAM policy.

https://cloud.google.com/resource-manager/reference/rest/v1/projects
"""

from __future__ import annotations

from typing import Any

from ..cloud import Cloud
from ..cloud.call import Call
from .requests import Service, require_project


def _get(cloud: Cloud, call: Call) -> dict[str, Any]:
    require_project(cloud, call.params["projectId"])
    return {
        "projectNumber": str(cloud.projects.number),
        "projectId": cloud.project,
        "name": cloud.project,
        "lifecycleState": "ACTIVE",
        "createTime": cloud.began,
    }


def _get_policy(cloud: Cloud, call: Call) -> dict[str, Any]:
    require_project(cloud, call.params["resource"])
    return cloud.project_policy.get()


def _set_policy(cloud: Cloud, call: Call) -> dict[str, Any]:
    require_project(cloud, call.params["resource"])
    return cloud.project_policy.set(call.body)


def _test_permissions(cloud: Cloud, call: Call) -> dict[str, Any]:
    require_project(cloud, call.params["resource"])
    return {"permissions": call.body.get("permissions")}


SERVICE = Service(
    "crm",
    "cloudresourcemanager.v1",
    {
        "projects.get": _get,
        "projects.getIamPolicy": _get_policy,
        "projects.setIamPolicy": _set_policy,
        "projects.testIamPermissions": _test_permissions,
    },
)

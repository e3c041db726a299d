"""IAM v1: service accounts.

https://cloud.google.com/iam/docs/reference/rest/v1/projects.serviceAccounts
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
_PATH = re.compile(r"v1/projects/(?P<project>[^/]+)/serviceAccounts(?:/(?P<account>[^/:]+))?(?::(?P<action>\w+))?")
_SCHEMAS = {"create": "CreateServiceAccountRequest", "patch": "PatchServiceAccountRequest"}


def serve(cloud: Cloud, verb: str, path: str, body: Any) -> dict[str, Any]:
    """Answers one request; `path` begins with the version."""
    found = _PATH.fullmatch(path)
    if found is None:
        raise ApiError(404, "notFound", f"The lab does not serve /iam/{path}.")
    project, account, action = unquote(found["project"]), unquote(found["account"] or ""), found["action"]
    if project not in (cloud.project, str(cloud.projects.number), "-"):
        raise ApiError(404, "notFound", f"Project {project} does not exist.")
    accounts = cloud.service_accounts
    match verb, bool(account), action:
        case "POST", False, None:
            return accounts.create(_checked(cloud, "create", body))
        case "GET", False, None:
            return accounts.list()
        case "GET", True, None:
            return accounts.get(account)
        case "PATCH", True, None:
            return accounts.patch(account, _checked(cloud, "patch", body))
        case "DELETE", True, None:
            return accounts.delete(account)
        case "POST", True, "enable" | "disable":
            return accounts.disable(account, disabled=action == "disable")
    raise ApiError(501, "notImplemented", f"The lab does not serve {verb} /iam/{path}.")


def _checked(cloud: Cloud, method: str, body: Any) -> dict[str, Any]:
    checker = BodyChecker(
        (document("iam.v1"),),
        f"projects.serviceAccounts.{method}",
        strict=cloud.strict,
        patch=False,
        note=lambda text: log.info("%s", text),
    )
    return checker.check(_SCHEMAS[method], {} if body is None else body)

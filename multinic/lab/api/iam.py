"""IAM v1: service accounts.

https://cloud.google.com/iam/docs/reference/rest/v1/projects.serviceAccounts
"""

from __future__ import annotations

from typing import Any

from ..cloud import ApiError, Cloud
from ..cloud.call import Call
from ..cloud.service_accounts import ServiceAccounts
from .lists import cut
from .requests import Service


def _accounts(cloud: Cloud, call: Call) -> ServiceAccounts:
    project = call.params["projectsId"]
    # "-" stands for the account's own project.
    if project not in (cloud.project, str(cloud.projects.number), "-"):
        raise ApiError(404, "notFound", f"Project {project[:100]} does not exist.")
    return cloud.service_accounts


def _list(cloud: Cloud, call: Call) -> dict[str, Any]:
    accounts = _accounts(cloud, call).all()
    found, following = cut(accounts, call.params.get("pageSize"), call.params.get("pageToken"), biggest=100)
    return {"accounts": found, "nextPageToken": following}


SERVICE = Service(
    "iam",
    "iam.v1",
    {
        "projects.serviceAccounts.create": lambda cloud, call: _accounts(cloud, call).create(call.body),
        "projects.serviceAccounts.get": lambda cloud, call: _accounts(cloud, call).get(
            call.params["serviceAccountsId"]
        ),
        "projects.serviceAccounts.list": _list,
        "projects.serviceAccounts.patch": lambda cloud, call: _accounts(cloud, call).patch(
            call.params["serviceAccountsId"], call.body
        ),
        "projects.serviceAccounts.delete": lambda cloud, call: _accounts(cloud, call).delete(
            call.params["serviceAccountsId"]
        ),
        "projects.serviceAccounts.enable": lambda cloud, call: _accounts(cloud, call).disable(
            call.params["serviceAccountsId"], disabled=False
        ),
        "projects.serviceAccounts.disable": lambda cloud, call: _accounts(cloud, call).disable(
            call.params["serviceAccountsId"], disabled=True
        ),
    },
)

"""Service accounts of IAM.

https://cloud.google.com/iam/docs/service-account-overview
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .errors import ApiError
from .fingerprints import fingerprint
from .store import Object

if TYPE_CHECKING:
    from .cloud import Cloud

_ID = re.compile(r"[a-z](?:[-a-z0-9]{4,28}[a-z0-9])")
"""https://cloud.google.com/iam/docs/reference/rest/v1/projects.serviceAccounts/create"""


class ServiceAccounts:
    """``projects.serviceAccounts``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud, self._store = cloud, cloud.store

    def _parent(self) -> str:
        return f"projects/{self._cloud.project}/serviceAccounts"

    def _missing(self, email: str) -> ApiError:
        return ApiError(404, "notFound", f"Unknown service account: {email}")

    def _key(self, name: str) -> str:
        """Key of an account that is named by its e-mail or its unique number."""
        for key, value in self._store.children(self._parent()):
            if name in (value["email"], value["uniqueId"]):
                return key
        raise self._missing(name)

    def _view(self, value: Object) -> dict[str, Any]:
        return {name: content for name, content in value.items() if not name.startswith("_")}

    def make_default(self) -> None:
        """Makes the account that VMs get where they name none, as enabling Compute Engine does.

        https://cloud.google.com/compute/docs/access/service-accounts#default_service_account
        """
        email = self._cloud.projects.default_account
        if self._store.get(f"{self._parent()}/{email}") is None:
            self._make(email, {"displayName": "Compute Engine default service account"})

    def create(self, body: Object) -> dict[str, Any]:
        """Makes an account."""
        account_id = str(body.get("accountId") or "")
        if not _ID.fullmatch(account_id):
            raise ApiError(
                400,
                "badRequest",
                f'The account ID "{account_id}" does not have a length between 6 and 30, or is not of the form '
                f"[a-z]([-a-z0-9]*[a-z0-9]).",
            )
        email = f"{account_id}@{self._cloud.project}.iam.gserviceaccount.com"
        key = f"{self._parent()}/{email}"
        if self._store.get(key) is not None:
            raise ApiError(
                409,
                "alreadyExists",
                f"Service account {account_id} already exists within project projects/{self._cloud.project}.",
            )
        return self._view(self._make(email, body.get("serviceAccount") or {}))

    def _make(self, email: str, given: Object) -> Object:
        key = f"{self._parent()}/{email}"
        number = self._store.new_id()
        value = {
            "name": key,
            "projectId": self._cloud.project,
            "uniqueId": number,
            "email": email,
            "oauth2ClientId": number,
            **{name: given[name] for name in ("displayName", "description") if given.get(name)},
        }
        value["etag"] = fingerprint(value)
        self._store.put(key, value)
        return value

    def get(self, name: str) -> dict[str, Any]:
        """An account."""
        return self._view(self._store.require(self._key(name)))

    def all(self) -> list[dict[str, Any]]:
        """All accounts."""
        return [self._view(value) for _, value in self._store.children(self._parent())]

    def patch(self, name: str, body: Object) -> dict[str, Any]:
        """Changes display name and description; the mask says which."""
        key = self._key(name)
        value = dict(self._store.require(key))
        mask = str(body.get("updateMask") or "displayName,description").replace("display_name", "displayName")
        given = body.get("serviceAccount") or {}
        for part in mask.split(","):
            if part in ("displayName", "description"):
                value[part] = given.get(part, "")
        value["etag"] = fingerprint({n: c for n, c in value.items() if n != "etag"})
        self._store.put(key, value)
        return self._view(value)

    def delete(self, name: str) -> dict[str, Any]:
        """Deletes an account; VMs that use it keep its name, as on Google Cloud."""
        self._store.remove(self._key(name))
        return {}

    def disable(self, name: str, *, disabled: bool) -> dict[str, Any]:
        """Disables an account, or enables it again."""
        key = self._key(name)
        self._store.put(key, {**self._store.require(key), "disabled": disabled})
        return {}

    def require_usable(self, email: str) -> None:
        """Refuses an account of this project that does not exist, as an instance's insert does."""
        if email == self._cloud.projects.default_account:
            return
        ours = email.endswith(f"@{self._cloud.project}.iam.gserviceaccount.com")
        key = f"{self._parent()}/{email}"
        if ours and self._store.get(key) is None:
            raise ApiError(400, "invalid", f"The resource '{key}' of type 'serviceAccount' was not found.")

"""The project's IAM policy (Resource Manager v1).

https://cloud.google.com/iam/docs/policies

Nothing in the lab is allowed or forbidden by it; it is kept so that programs that write it find it again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .errors import ApiError
from .fingerprints import fingerprint
from .store import Object

if TYPE_CHECKING:
    from .cloud import Cloud

_MEMBER = re.compile(
    r"allUsers|allAuthenticatedUsers|(?:deleted:)?(?:user|serviceAccount|group|domain|principal|principalSet|"
    r"projectOwner|projectEditor|projectViewer):.+"
)


class ProjectPolicy:
    """``projects.getIamPolicy`` and ``projects.setIamPolicy``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud, self._store = cloud, cloud.store
        self._key = f"projects/{cloud.project}/global/iamPolicies/project"

    def get(self) -> dict[str, Any]:
        """The policy with its ETag."""
        return dict(self._store.get(self._key) or _stamped({"version": 1}))

    def set(self, body: Object) -> dict[str, Any]:
        """Replaces the policy; a stale ETag is refused with 409, as Resource Manager does."""
        policy = body.get("policy")
        if not isinstance(policy, dict):
            raise ApiError(400, "badRequest", "Request must contain a policy.")
        current = self.get()
        if policy.get("etag") and policy["etag"] != current["etag"]:
            raise ApiError(
                409,
                "aborted",
                "There were concurrent policy changes. Please retry the whole read-modify-write.",
                status="ABORTED",
            )
        bindings = [binding for binding in policy.get("bindings") or [] if binding.get("members")]
        for binding in bindings:
            self._check(binding)
        bindings.sort(key=lambda binding: str(binding["role"]))
        value = _stamped({"version": policy.get("version") or 1, "bindings": bindings})
        self._store.put(self._key, value)
        return dict(value)

    def _check(self, binding: Object) -> None:
        role = str(binding.get("role") or "")
        if not re.fullmatch(r"(?:roles|projects/[^/]+/roles|organizations/[^/]+/roles)/[\w.]+", role):
            raise ApiError(400, "badRequest", f"Role {role} is not supported for this resource.")
        for member in binding["members"]:
            if not _MEMBER.fullmatch(str(member)):
                raise ApiError(400, "badRequest", f"Invalid argument: '{member}' is no valid member.")
            ending = f"@{self._cloud.project}.iam.gserviceaccount.com"
            if str(member).startswith("serviceAccount:") and str(member).endswith(ending):
                email = str(member).partition(":")[2]
                key = f"projects/{self._cloud.project}/serviceAccounts/{email}"
                if self._store.get(key) is None and email != f"lab{ending}":
                    raise ApiError(400, "badRequest", f"Service account {email} does not exist.")


def _stamped(policy: Object) -> Object:
    return {**policy, "etag": fingerprint(policy)}

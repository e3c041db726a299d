"""Shared VPC: the lab's project as a host project, and the service projects that it is told of.

https://cloud.google.com/vpc/docs/shared-vpc and
https://cloud.google.com/vpc/docs/provisioning-shared-vpc#enable-shared-vpc-host. The lab has one project only: a
service project is a name here, and nothing can be made in it (docs/lab-fidelity.md).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .call import Answer, Call, Handler
from .errors import ApiError, in_use, invalid, required
from .links import link

if TYPE_CHECKING:
    from .cloud import Cloud

_PROJECT = re.compile(r"[a-z][-a-z0-9.:]{0,62}|\d{1,19}")
"""An id or a number. Whether there is such a project nobody in the lab can tell."""


class SharedVpc:
    """Whether the project is a host, and its service projects; kept with the other objects."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud, self._store = cloud, cloud.store
        self._key = f"projects/{cloud.project}/global/sharedVpc/host"

    def handlers(self) -> dict[str, Handler]:
        """Methods of ``projects``."""
        return {
            "enableXpnHost": self.enable_host,
            "disableXpnHost": self.disable_host,
            "enableXpnResource": self.enable_resource,
            "disableXpnResource": self.disable_resource,
            "getXpnHost": self.get_host,
            "getXpnResources": self.resources,
            "listXpnHosts": self.hosts,
        }

    def is_host(self) -> bool:
        """Whether the lab's project is a host."""
        return self._store.get(self._key) is not None

    def attached(self) -> list[str]:
        """Ids of the service projects."""
        return list((self._store.get(self._key) or {}).get("projects", []))

    def enable_host(self, call: Call) -> Answer:
        """Makes the project a host; one that is it already stays so."""
        if not self.is_host():
            self._store.put(self._key, {"projects": []})
        return self._done("enableXpnHost")

    def disable_host(self, call: Call) -> Answer:
        """Makes the project an ordinary one, when no service project is attached any more.

        https://cloud.google.com/vpc/docs/deprovisioning-shared-vpc
        """
        self._require_host()
        if self.attached():
            raise in_use("project", f"projects/{self._cloud.project}", f"projects/{self.attached()[0]}")
        self._store.remove(self._key)
        return self._done("disableXpnHost")

    def enable_resource(self, call: Call) -> Answer:
        """Attaches a service project; one that is attached already stays so."""
        self._require_host()
        wanted = self._named(call)
        if wanted in (self._cloud.project, str(self._cloud.projects.number)):
            raise invalid("xpnResource.id", wanted, "A host project cannot be its own service project.")
        self._store.put(self._key, {"projects": sorted({*self.attached(), wanted})})
        return self._done("enableXpnResource")

    def disable_resource(self, call: Call) -> Answer:
        """Detaches a service project."""
        self._require_host()
        wanted = self._named(call)
        if wanted not in self.attached():
            raise invalid("xpnResource.id", wanted, "The project is not attached to this host project.")
        self._store.put(self._key, {"projects": [name for name in self.attached() if name != wanted]})
        return self._done("disableXpnResource")

    def get_host(self, call: Call) -> Answer:
        """The host of a service project; "May be empty" (discovery document, method) for all others."""
        if call.params.get("project") in self.attached():
            return self._cloud.projects.whole()
        return {"kind": "compute#project"}

    def resources(self, call: Call) -> Answer:
        """The service projects."""
        found = [{"id": name, "type": "PROJECT"} for name in self.attached()]
        return {"kind": "compute#projectsGetXpnResources", "resources": found}

    def hosts(self, call: Call) -> Answer:
        """The hosts of the organization: the lab's project or none."""
        path = f"projects/{self._cloud.project}"
        items = [self._cloud.projects.whole()] if self.is_host() else []
        return {"kind": "compute#xpnHostList", "id": path, "items": items, "selfLink": link(f"{path}/listXpnHosts")}

    def _named(self, call: Call) -> str:
        given = call.body.get("xpnResource") or {}
        name = str(given.get("id") or "")
        if not name:
            raise required("xpnResource.id")
        if given.get("type", "PROJECT") != "PROJECT":
            raise invalid("xpnResource.type", given["type"], "Must be PROJECT.")
        if not _PROJECT.fullmatch(name):
            raise invalid("xpnResource.id", name, "Must be the id or the number of a project.")
        return name

    def _require_host(self) -> None:
        if not self.is_host():
            raise ApiError(
                400,
                "invalidResourceUsage",
                f"Invalid resource usage: 'The project {self._cloud.project} is not a shared VPC host project.'",
            )

    def _done(self, kind: str) -> Answer:
        return self._cloud.operations.done(
            kind, "global", f"projects/{self._cloud.project}", str(self._cloud.projects.number)
        )

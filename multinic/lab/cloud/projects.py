"""The project. The lab has one, and knows of no other (but the projects of public images)."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from .call import Answer, Call, Handler
from .errors import not_found
from .links import link
from .resource import Resource


class Projects(Resource):
    """``projects``: what a client asks before anything else."""

    collection = "projects"
    noun = "project"
    kind = "project"
    served: ClassVar = {"global": "projects"}
    verbs = ("get",)

    number: ClassVar[int] = 470_470_470_470
    """Project number; made up, always the same."""

    @property
    def default_account(self) -> str:
        """E-mail of the Compute Engine default service account."""
        return f"{self.number}-compute@developer.gserviceaccount.com"

    @override
    def handlers(self) -> dict[str, Handler]:
        return {"getXpnHost": self.get_xpn_host, "getXpnResources": self.get_xpn_resources}

    def get(self, call: Call) -> Answer:
        """The project."""
        if call.params.get("project", self.project) not in (self.project, str(self.number)):
            raise not_found(f"projects/{call.params['project']}")
        return {
            "kind": "compute#project",
            "id": str(self.number),
            "name": self.project,
            "creationTimestamp": self.cloud.began,
            "selfLink": link(f"projects/{self.project}"),
            "defaultServiceAccount": self.default_account,
            "defaultNetworkTier": "PREMIUM",
            "xpnProjectStatus": "UNSPECIFIED_XPN_PROJECT_STATUS",
            "commonInstanceMetadata": {"kind": "compute#metadata", "fingerprint": self.cloud.fingerprint([])},
        }

    def get_xpn_host(self, call: Call) -> Answer:
        """The lab's project is attached to no Shared VPC host."""
        return {"kind": "compute#project"}

    def get_xpn_resources(self, call: Call) -> Answer:
        """The lab's project is no Shared VPC host."""
        return {"kind": "compute#projectsGetXpnResources"}

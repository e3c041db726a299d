"""The project. The lab has one, and knows of no other (but the projects of public images)."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from .call import Answer, Call, Handler
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
        return self.cloud.shared_vpc.handlers()

    @override
    def get(self, call: Call) -> Answer:
        return self.whole()

    def whole(self) -> Answer:
        """The project."""
        host = self.cloud.shared_vpc.is_host()
        return {
            "kind": "compute#project",
            "id": str(self.number),
            "name": self.project,
            "creationTimestamp": self.cloud.began,
            "selfLink": link(f"projects/{self.project}"),
            "defaultServiceAccount": self.default_account,
            "defaultNetworkTier": "PREMIUM",
            "xpnProjectStatus": "HOST" if host else "UNSPECIFIED_XPN_PROJECT_STATUS",
            "commonInstanceMetadata": {"kind": "compute#metadata", "fingerprint": self.cloud.fingerprint([])},
        }

"""Resource policies: placement only, which the lab keeps and cannot act on (there is one host).

https://cloud.google.com/compute/docs/instances/placement-policies-overview
"""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from .call import Answer
from .errors import not_served, required
from .resource import Resource
from .rules import DISCOVERY, between
from .store import Object

RULES = (
    between("groupPlacementPolicy.availabilityDomainCount", 1, 8, DISCOVERY + "ResourcePolicyGroupPlacementPolicy"),
)


class ResourcePolicies(Resource):
    """``resourcePolicies``: regional."""

    collection = "resourcePolicies"
    noun = "resource_policy"
    kind = "resourcePolicy"
    served: ClassVar = {"regions": "resourcePolicies"}
    verbs = ("insert", "get", "list", "aggregatedList", "delete", "testIamPermissions")
    rules = RULES

    @override
    def complete(self, key: str, value: Object) -> None:
        for name in (
            "snapshotSchedulePolicy",
            "instanceSchedulePolicy",
            "diskConsistencyGroupPolicy",
            "workloadPolicy",
        ):
            if name in value:
                raise not_served(f"resource policies with {name} (only groupPlacementPolicy)")
        if "groupPlacementPolicy" not in value:
            raise required("groupPlacementPolicy")

    @override
    def view(self, key: str, value: Object) -> Answer:
        return {**super().view(key, value), "status": "READY"}

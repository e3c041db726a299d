"""Instance templates, global and regional.

https://cloud.google.com/compute/docs/instance-templates
"""

from __future__ import annotations

from typing import Any, ClassVar

from typing_extensions import override

from .call import Call, Handler
from .errors import required
from .instance_properties import Properties
from .links import split
from .resource import Resource
from .store import Object


class InstanceTemplates(Resource):
    """``instanceTemplates`` and ``regionInstanceTemplates``: never changed, read by name or by number."""

    collection = "instanceTemplates"
    noun = "instance_template"
    kind = "instanceTemplate"
    served: ClassVar = {"global": "instanceTemplates", "regions": "regionInstanceTemplates"}
    verbs = ("insert", "get", "list", "aggregatedList", "delete")

    @override
    def methods(self) -> dict[str, Handler]:
        # v1 has this one for global templates only.
        return super().methods() | {"instanceTemplates.testIamPermissions": self.test_permissions}

    @override
    def target(self, call: Call) -> str:
        return self.cloud.by_number(super().target(call))

    @override
    def complete(self, key: str, value: Object) -> None:
        if not value.get("properties"):
            raise required("properties")
        properties = value["properties"]
        value["_held"] = sorted(Properties(self.cloud, properties, "properties.", split(key).scope).complete())

    @override
    def more_references(self, key: str, value: Object) -> set[str]:
        return super().more_references(key, value) | set(value.pop("_held", ()))

    def networks(self, template: str) -> list[str]:
        """Links of the networks of a template's NICs, in order."""
        nics: list[Any] = self.store.require(template)["properties"]["networkInterfaces"]
        return [nic["network"] for nic in nics]

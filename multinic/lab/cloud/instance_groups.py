"""Instance groups: the list of instances that a managed group keeps and a load balancer uses.

https://cloud.google.com/compute/docs/instance-groups
"""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from . import fingerprints
from .call import Answer, Call, Handler
from .links import key_of, link
from .resource import Resource
from .store import Object


class InstanceGroups(Resource):
    """``instanceGroups``: made and deleted with their manager; unmanaged groups are not served."""

    collection = "instanceGroups"
    noun = "instance_group"
    kind = "instanceGroup"
    served: ClassVar = {"zones": "instanceGroups", "regions": "regionInstanceGroups"}
    verbs = ("get", "list", "aggregatedList", "testIamPermissions")

    @override
    def handlers(self) -> dict[str, Handler]:
        return {"listInstances": self.list_instances, "setNamedPorts": self.set_named_ports}

    def manager(self, group: str) -> str:
        """Key of the group's manager."""
        return group.replace("/instanceGroups/", "/instanceGroupManagers/")

    def networks(self, group: str) -> list[str]:
        """Keys of the networks that the group's instances have NICs in, nic0's first."""
        manager = self.store.get(self.manager(group))
        if manager is None:
            return []
        return [key_of(text) for text in self.cloud.instance_templates.networks(key_of(manager["instanceTemplate"]))]

    def instances(self, group: str) -> list[str]:
        """Keys of the group's instances that are there, by key."""
        controller = self.cloud.groups.get(self.manager(group))
        return controller.members.instances() if controller else []

    @override
    def view(self, key: str, value: Object) -> Answer:
        answer = super().view(key, value)
        manager = self.store.get(self.manager(key)) or {}
        networks = self.networks(key)
        answer["size"] = len(self.instances(key))
        answer["namedPorts"] = manager.get("namedPorts", [])
        # Discovery document, InstanceGroup.fingerprint: "The fingerprint of the named ports."
        answer["fingerprint"] = fingerprints.fingerprint(answer["namedPorts"])
        if networks:
            answer["network"] = link(networks[0])
        return answer

    def list_instances(self, call: Call) -> Answer:
        """The group's instances with their states."""
        key = self.target(call)
        self.store.require(key)
        ports = (self.store.get(self.manager(key)) or {}).get("namedPorts", [])
        items = []
        for instance in self.instances(key):
            value = self.store.get(instance)
            if value is None:
                continue
            if call.body.get("instanceState") == "RUNNING" and value["status"] != "RUNNING":
                continue
            items.append({"instance": link(instance), "status": value["status"], "namedPorts": ports})
        return {
            "kind": "compute#instanceGroupsListInstances",
            "id": key,
            "items": items,
            "selfLink": link(key) + "/listInstances",
        }

    def set_named_ports(self, call: Call) -> Answer:
        """Replaces the named ports, which group and manager show alike."""
        key = self.target(call)
        self.store.require(key)
        manager = self.manager(key)
        old = self.store.require(manager)
        current = fingerprints.fingerprint(old.get("namedPorts", []))
        fingerprints.check(call.body.get("fingerprint"), current, "Instance group")
        ports = call.body.get("namedPorts") or []
        self.cloud.instance_group_managers.replace(manager, {**old, "namedPorts": ports}, old)
        return self.cloud.operations.done("setNamedPorts", call.scope, key)

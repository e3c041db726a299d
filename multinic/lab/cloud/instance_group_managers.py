"""Managed instance groups, zonal and regional: what a client declares and sees. What they do: `group_controller`.

https://cloud.google.com/compute/docs/instance-groups
"""

from __future__ import annotations

import copy
import math
import re
from typing import ClassVar

from typing_extensions import override

from . import catalog
from .call import Answer, Call, Handler
from .errors import ApiError, in_use, invalid, not_served, required
from .group_rules import RULES
from .group_view import GroupView
from .links import key_of, link, name_of, split
from .references import Reference
from .resource import Resource
from .store import Object

_ZONE = re.compile(r"(?:.*/)?zones/([^/]+)$")


def _amount(policy: Object, name: str, size: int, default: int) -> int:
    """A fixed number or a percentage of the size: surge is rounded up, unavailable down."""
    value = policy.get(name) or {}
    if value.get("fixed") is not None:
        return int(value["fixed"])
    if value.get("percent") is not None:
        share = size * int(value["percent"]) / 100
        return math.ceil(share) if name == "maxSurge" else math.floor(share)
    return default


class InstanceGroupManagers(Resource):
    """``instanceGroupManagers`` and ``regionInstanceGroupManagers``."""

    collection = "instanceGroupManagers"
    noun = "instance_group_manager"
    kind = "instanceGroupManager"
    served: ClassVar = {"zones": "instanceGroupManagers", "regions": "regionInstanceGroupManagers"}
    verbs = ("insert", "get", "list", "aggregatedList", "patch", "delete")
    references = (
        Reference("instanceTemplate", "instanceTemplates", scope="global"),
        Reference("versions[].instanceTemplate", "instanceTemplates", scope="global"),
        Reference("autoHealingPolicies[].healthCheck", "healthChecks"),
    )
    defaults: ClassVar = {"listManagedInstancesResults": "PAGELESS"}
    immutable = ("baseInstanceName", "distributionPolicy")
    rules = RULES
    fingerprinted = True

    @override
    def handlers(self) -> dict[str, Handler]:
        return {
            "listManagedInstances": self.list_managed_instances,
            "listErrors": self.list_errors,
            "resize": self.resize,
            "setInstanceTemplate": self.set_instance_template,
            "recreateInstances": self.recreate_instances,
            "deleteInstances": self.delete_instances,
            "abandonInstances": self.abandon_instances,
            "applyUpdatesToInstances": self.apply_updates,
        }

    @override
    def insert(self, call: Call) -> Answer:
        if call.body.get("targetSize") is None:
            raise required("targetSize")
        return super().insert(call)

    @override
    def patch(self, call: Call) -> Answer:
        # Whichever of the two spellings of the template is given wins over the one that was there.
        body = call.body
        if body.get("instanceTemplate") and not body.get("versions"):
            body["versions"] = [{"instanceTemplate": body["instanceTemplate"]}]
        elif body.get("versions"):
            body["instanceTemplate"] = body["versions"][0].get("instanceTemplate")
        return super().patch(call)

    @override
    def complete(self, key: str, value: Object) -> None:
        versions = value.get("versions") or []
        if not versions and value.get("instanceTemplate"):
            versions = [{"instanceTemplate": value["instanceTemplate"]}]
        if not versions or not versions[0].get("instanceTemplate"):
            raise required("versions[0].instanceTemplate")
        value["versions"] = [{n: c for n, c in version.items() if n != "targetSize"} for version in versions]
        value["instanceTemplate"] = versions[0]["instanceTemplate"]
        value.setdefault("baseInstanceName", value["name"][:58].rstrip("-"))
        policy = value.setdefault("updatePolicy", {})
        count = len(self.zones(key, value))
        for name, content in {
            "type": "OPPORTUNISTIC",
            "minimalAction": "REPLACE",
            "replacementMethod": "SUBSTITUTE",
        }.items():
            policy.setdefault(name, content)
        recreate = policy["replacementMethod"] == "RECREATE"
        for name, default in (("maxSurge", 0 if recreate else count), ("maxUnavailable", count)):
            if not any(n in (policy.get(name) or {}) for n in ("fixed", "percent")):
                policy[name] = {"fixed": default}
        life = value.setdefault("instanceLifecyclePolicy", {})
        life.setdefault("defaultActionOnFailure", "REPAIR")
        life.setdefault("forceUpdateOnRepair", "NO")
        value["instanceGroup"] = link(key.replace("/instanceGroupManagers/", "/instanceGroups/"))
        if split(key).scope.startswith("regions/"):
            zones = [{"zone": link(f"projects/{self.project}/zones/{zone}")} for zone in self.zones(key, value)]
            given = value.get("distributionPolicy") or {}
            value["distributionPolicy"] = {"targetShape": "EVEN"} | given | {"zones": zones}

    @override
    def check(self, key: str, value: Object, old: Object | None) -> None:
        self._refuse_not_served(value)
        for policy in value.get("autoHealingPolicies", []):
            if policy.get("healthCheck"):
                self.cloud.health_checks.require_own_port("autoHealingPolicies[0].healthCheck", policy["healthCheck"])
        region = self.cloud.region_of_scope(split(key).scope)
        template = self.store.require(key_of(value["instanceTemplate"]))
        for index, nic in enumerate(template["properties"]["networkInterfaces"]):
            subnetwork = nic.get("subnetwork")
            if subnetwork and split(key_of(subnetwork)).scope != f"regions/{region}":
                raise invalid(
                    "versions[0].instanceTemplate",
                    value["instanceTemplate"],
                    f"The subnetwork of its interface {index} is not in region '{region}'.",
                )

    @staticmethod
    def _refuse_not_served(value: Object) -> None:
        if any((value.get("statefulPolicy") or {}).get("preservedState", {}).values()):
            raise not_served("stateful groups")
        if value.get("targetPools"):
            raise not_served("target pools")
        if (value.get("resourcePolicies") or {}).get("workloadPolicy"):
            raise not_served("workload policies")
        if len(value.get("versions", [])) > 1:
            raise not_served("more than one version a group")

    @override
    def changed(self, key: str, value: Object, old: Object | None) -> None:
        if old is None:
            group = self.cloud.instance_groups.key(split(key).scope, value["name"])
            self.cloud.instance_groups.create(group, {"name": value["name"], "_owner": key})
        self.cloud.groups.wake(key)
        self.cloud.autoscalers.apply_to(key)

    @override
    def stamp(self, value: Object) -> None:
        # What `resize` and the autoscaler set is no part of it: clients that patch a group later send the fingerprint
        # of their last read.
        skipped = ("fingerprint", "status", "targetSize")
        content = {n: c for n, c in value.items() if n not in skipped and not n.startswith("_")}
        value["fingerprint"] = self.cloud.fingerprint(content)

    def delete(self, call: Call) -> Answer:
        """Deletes the group and all of its VMs; the operation is DONE once they are gone."""
        key = self.target(call)
        value = self.store.require(key)
        if value.get("_deleting"):
            raise ApiError(400, "resourceNotReady", f"The resource '{key}' is not ready")
        self.refuse_if_used(key)
        self.store.put(key, {**value, "_deleting": True})
        return self.cloud.operations.run("delete", call.scope, key, self.cloud.groups.dismantle(key), value["id"])

    @override
    def refuse_if_used(self, key: str) -> None:
        super().refuse_if_used(key)
        for autoscaler, value in self.store.everywhere("autoscalers"):
            if key_of(value["target"]) == key:
                raise in_use(self.noun, key, autoscaler)

    def zones(self, key: str, value: Object) -> list[str]:
        """Names of the zones that a group spans."""
        kind, _, place = split(key).scope.partition("/")
        if kind == "zones":
            return [place]
        chosen = [
            found[1]
            for entry in (value.get("distributionPolicy") or {}).get("zones", [])
            if (found := _ZONE.match(entry.get("zone", "")))
        ]
        # Three zones of the region where none are given:
        # https://cloud.google.com/compute/docs/instance-groups/distributing-instances-with-regional-instance-groups
        ordinary = [zone for zone in catalog.ZONES if re.fullmatch(re.escape(place) + "-[a-z]", zone)]
        return chosen or ordinary[:3]

    def amounts(self, key: str, value: Object) -> tuple[int, int]:
        """Surge and unavailable, in VMs."""
        policy, size, zones = value["updatePolicy"], value["targetSize"], len(self.zones(key, value))
        return _amount(policy, "maxSurge", size, zones), _amount(policy, "maxUnavailable", size, zones)

    @override
    def view(self, key: str, value: Object) -> Answer:
        answer = copy.deepcopy(super().view(key, value))
        seen = GroupView(self.cloud, self.cloud.groups.open(key))
        surge, unavailable = self.amounts(key, value)
        answer["updatePolicy"]["maxSurge"]["calculated"] = surge
        answer["updatePolicy"]["maxUnavailable"]["calculated"] = unavailable
        for version in answer["versions"]:
            version["targetSize"] = {"calculated": value["targetSize"]}
        answer["currentActions"] = seen.current_actions()
        answer["status"] = {
            "isStable": seen.is_stable(),
            "versionTarget": {"isReached": seen.version_reached()},
            "stateful": {"hasStatefulConfig": False, "perInstanceConfigs": {"allEffective": True}},
            "allInstancesConfig": {"effective": True},
        }
        autoscaler = self.cloud.autoscalers.of(key)
        if autoscaler:
            answer["status"]["autoscaler"] = link(autoscaler)
        return answer

    def set_size(self, key: str, size: int) -> None:
        """Writes the target size and has the controller act on it."""
        value = {**self.store.require(key), "targetSize": size}
        self.stamp(value)
        self.store.put(key, value)
        self.cloud.groups.wake(key)

    def resize(self, call: Call) -> Answer:
        """Sets the target size."""
        key = self.target(call)
        self.store.require(key)
        size = int(call.params["size"])
        if not 0 <= size <= 1000:
            raise invalid("size", size, "Must be between 0 and 1000")
        self.set_size(key, size)
        self.cloud.autoscalers.apply_to(key)
        return self.cloud.operations.done("resize", call.scope, key)

    def set_instance_template(self, call: Call) -> Answer:
        """Sets the template of new VMs; the update policy says what happens to the others."""
        key = self.target(call)
        old = self.store.require(key)
        if not call.body.get("instanceTemplate"):
            raise required("instanceTemplate")
        template = call.body["instanceTemplate"]
        self.replace(key, {**old, "versions": [{"instanceTemplate": template}], "instanceTemplate": template}, old)
        return self.cloud.operations.done("setInstanceTemplate", call.scope, key)

    def list_managed_instances(self, call: Call) -> Answer:
        """The group's VMs: state, current action, health, version."""
        key = self.target(call)
        self.store.require(key)
        return {"managedInstances": GroupView(self.cloud, self.cloud.groups.open(key)).managed_instances()}

    def list_errors(self, call: Call) -> Answer:
        """What went wrong when the group acted, newest first."""
        key = self.target(call)
        self.store.require(key)
        return {"items": list(self.cloud.groups.open(key).errors)}

    def _named(self, call: Call) -> tuple[str, list[str]]:
        key = self.target(call)
        self.store.require(key)
        members = self.cloud.groups.open(key).members.names()
        names = []
        for index, text in enumerate(call.body.get("instances") or []):
            name = name_of(str(text))
            if name not in members:
                raise invalid(f"instances[{index}]", text, f"The instance is not a member of '{key}'.")
            names.append(name)
        if not names and not call.body.get("allInstances"):
            raise required("instances")
        return key, names or members

    def recreate_instances(self, call: Call) -> Answer:
        """Deletes and makes the named VMs anew, by the group's template, under the same names."""
        key, names = self._named(call)
        self.cloud.groups.open(key).recreate(names)
        return self.cloud.operations.done("recreateInstances", call.scope, key)

    def delete_instances(self, call: Call) -> Answer:
        """Deletes the named VMs and lowers the target size by their number."""
        key, names = self._named(call)
        self.cloud.groups.open(key).remove(names)
        return self.cloud.operations.done("deleteInstances", call.scope, key)

    def abandon_instances(self, call: Call) -> Answer:
        """Takes the named VMs out of the group; they go on running."""
        key, names = self._named(call)
        self.cloud.groups.open(key).abandon(names)
        return self.cloud.operations.done("abandonInstances", call.scope, key)

    def apply_updates(self, call: Call) -> Answer:
        """Updates the named VMs now, whatever the update policy's type."""
        key, names = self._named(call)
        least, most = call.body.get("minimalAction"), call.body.get("mostDisruptiveAllowedAction")
        self.cloud.groups.open(key).update(names, least, most)
        return self.cloud.operations.done("applyUpdatesToInstances", call.scope, key)

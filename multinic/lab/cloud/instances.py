"""VM instances.

https://cloud.google.com/compute/docs/instances
"""

from __future__ import annotations

import copy
from typing import Any, ClassVar

from typing_extensions import override

from . import addressing, fingerprints
from .call import Answer, Call, Handler
from .clock import timestamp
from .errors import ApiError, already_exists, in_use, invalid, not_served, required
from .instance_properties import Properties, check_metadata, check_tags
from .links import key_of, link, name_of, split
from .machines import is_spot
from .resource import Resource
from .store import Object


class Instances(Resource):
    """``instances``: zonal; each is a machine of the substrate (see `machines`)."""

    collection = "instances"
    noun = "instance"
    kind = "instance"
    served: ClassVar = {"zones": "instances"}
    verbs = ("insert", "get", "list", "aggregatedList", "delete", "setLabels", "testIamPermissions")
    defaults: ClassVar = {"canIpForward": False, "deletionProtection": False}

    @override
    def handlers(self) -> dict[str, Handler]:
        return {
            "setMetadata": self.set_metadata,
            "setTags": self.set_tags,
            "setDeletionProtection": self.set_deletion_protection,
            "setMachineType": lambda call: self.set_while_stopped(call, "setMachineType", **call.body),
            "setMinCpuPlatform": lambda call: self.set_while_stopped(call, "setMinCpuPlatform", **call.body),
            "setServiceAccount": lambda call: self.set_while_stopped(
                call, "setServiceAccount", serviceAccounts=[call.body] if call.body.get("email") else []
            ),
            "setScheduling": self.set_scheduling,
            "updateShieldedInstanceConfig": lambda call: self.set_while_stopped(
                call, "updateShieldedInstanceConfig", shieldedInstanceConfig=call.body
            ),
            "start": self.start,
            "stop": self.stop,
            "reset": self.reset,
            "simulateMaintenanceEvent": self.simulate_maintenance_event,
            "getSerialPortOutput": self.serial_output,
            "getGuestAttributes": lambda call: self.cloud.guest_attributes.get(call),
        }

    def insert(self, call: Call) -> Answer:
        """Makes an instance; the operation is DONE once it runs."""
        self.cloud.require_place(call.scope)
        for name in ("sourceInstanceTemplate", "sourceMachineImage"):
            if call.params.get(name):
                raise not_served(f"instances made from a {name}")
        if not call.body.get("name"):
            raise required("name")
        key = self.key(call.scope, call.body["name"])
        if self.store.get(key) is not None:
            raise already_exists(key)
        value = self.create(key, copy.deepcopy(call.body))
        return self.cloud.operations.run("insert", call.scope, key, self.cloud.machines.start(key), value["id"])

    @override
    def create(self, key: str, value: Object) -> Object:
        try:
            return super().create(key, value)
        except ApiError:
            for disk in value.get("disks", []):
                if disk.get("source") and not self.store.users(key_of(disk["source"])):
                    self.store.remove(key_of(disk["source"]))
            raise

    @override
    def complete(self, key: str, value: Object) -> None:
        scope = split(key).scope
        zone = scope.partition("/")[2]
        held = Properties(self.cloud, value, "", scope).complete()
        value["machineType"] = self._machine_type(scope, value)
        value.setdefault("metadata", {"kind": "compute#metadata"})
        value.setdefault("tags", {})
        value.update(
            status="PROVISIONING", cpuPlatform="Unknown CPU Platform", startRestricted=False, resourceStatus={}
        )
        held |= addressing.assign(self.store, key, value)
        for account in value.get("serviceAccounts", []):
            self.cloud.service_accounts.require_usable(account["email"])
        held |= self.cloud.disks.make_for(zone, value)
        value["_held"] = sorted(held)

    @override
    def more_references(self, key: str, value: Object) -> set[str]:
        return super().more_references(key, value) | set(value.pop("_held", self.store.references(key)))

    @override
    def stamp(self, value: Object) -> None:
        super().stamp(value)
        metadata, tags = value["metadata"], value["tags"]
        metadata["fingerprint"] = fingerprints.fingerprint(metadata.get("items", []))
        tags["fingerprint"] = fingerprints.fingerprint(tags.get("items", []))
        for nic in value["networkInterfaces"]:
            nic["fingerprint"] = fingerprints.fingerprint({n: c for n, c in nic.items() if n != "fingerprint"})
        skipped = ("fingerprint", "labelFingerprint", "status", "lastStartTimestamp", "lastStopTimestamp")
        value["fingerprint"] = fingerprints.fingerprint(
            {n: c for n, c in value.items() if n not in skipped and not n.startswith("_")}
        )

    def write(self, key: str, **changes: Any) -> Object | None:
        """Changes fields of an instance that is still there."""
        old = self.store.get(key)
        if old is None:
            return None
        value = {**old, **changes}
        self.stamp(value)
        self.store.put(key, value)
        return value

    def reconfigure(self, key: str, body: Object) -> None:
        """Takes over what an instance can change without being made anew; the machine type while it is off."""
        tags = {"items": (body.get("tags") or {}).get("items") or []}
        self.write(
            key,
            metadata=body["metadata"],
            labels=body.get("labels") or {},
            tags=tags,
            machineType=self._machine_type(split(key).scope, body),
        )
        self.cloud.substrate.metadata_changed(key)

    def set_status(self, key: str, status: str) -> None:
        """Writes the life-cycle state.

        https://cloud.google.com/compute/docs/instances/instance-life-cycle
        """
        stamps = {"RUNNING": "lastStartTimestamp", "TERMINATED": "lastStopTimestamp"}
        self.write(key, status=status, **({stamps[status]: timestamp()} if status in stamps else {}))

    def delete(self, call: Call) -> Answer:
        """Shuts an instance down and deletes it; the operation is DONE once it is gone."""
        key = self.target(call)
        value = self.store.require(key)
        if value.get("deletionProtection"):
            raise ApiError(
                400,
                "invalid",
                f"Invalid resource usage: 'Resource cannot be deleted if it's protected against "
                f"deletion. Deletion protection is on for {name_of(key)}.'.",
            )
        users = self.store.users(key)
        if users:
            raise in_use(self.noun, key, users[0])
        return self.cloud.operations.run("delete", call.scope, key, self.cloud.machines.delete(key), value["id"])

    def forget(self, key: str) -> None:
        """Removes the record of an instance and of the disks that go with it."""
        value = self.store.get(key)
        if value is None:
            return
        self.store.remove(key)
        for disk in value.get("disks", []):
            if disk.get("autoDelete"):
                self.store.remove(key_of(disk["source"]))

    def set_metadata(self, call: Call) -> Answer:
        """Replaces the metadata; the guest sees it at once."""
        key = self.target(call)
        old = self.store.require(key)
        fingerprints.check(
            call.body.pop("fingerprint", None),
            old["metadata"]["fingerprint"],
            "Supplied",
            needed=bool(old["metadata"].get("items")),
        )
        metadata = {"items": call.body.get("items") or []}
        check_metadata(metadata, "")
        self.write(key, metadata=metadata)
        self.cloud.substrate.metadata_changed(key)
        return self.cloud.operations.done("setMetadata", call.scope, key)

    def set_tags(self, call: Call) -> Answer:
        """Replaces the network tags: routes and firewall rules follow."""
        key = self.target(call)
        old = self.store.require(key)
        fingerprints.check(
            call.body.pop("fingerprint", None),
            old["tags"]["fingerprint"],
            "Supplied",
            needed=bool(old["tags"].get("items")),
        )
        tags = {"items": call.body.get("items") or []}
        check_tags(tags, "")
        self.write(key, tags=tags)
        self.cloud.substrate.metadata_changed(key)
        return self.cloud.operations.done("setTags", call.scope, key)

    def set_deletion_protection(self, call: Call) -> Answer:
        """Protects an instance against deletion, or no longer."""
        key = self.target(call)
        self.store.require(key)
        self.write(key, deletionProtection=bool(call.params.get("deletionProtection", True)))
        return self.cloud.operations.done("setDeletionProtection", call.scope, key)

    def set_scheduling(self, call: Call) -> Answer:
        """Replaces the scheduling; what makes a Spot VM of an ordinary one, or the opposite, only of a stopped one.

        Changed while it runs: https://cloud.google.com/compute/docs/instances/host-maintenance-overview
        """
        key = self.target(call)
        old = self.store.require(key)
        value = {**copy.deepcopy(old), "scheduling": call.body}
        Properties(self.cloud, value, "", split(key).scope).complete()
        if is_spot(value) != is_spot(old):
            self._require_stopped(key, old, "a change of the provisioning model")
        self.write(key, scheduling=value["scheduling"])
        return self.cloud.operations.done("setScheduling", call.scope, key)

    def _require_stopped(self, key: str, instance: Object, purpose: str) -> None:
        if instance["status"] != "TERMINATED":
            raise ApiError(
                400,
                "resourceNotReady",
                f"The instance '{name_of(key)}' is {instance['status']}: it must be stopped for {purpose}.",
            )

    def set_while_stopped(self, call: Call, method: str, **changes: Any) -> Answer:
        """Changes what a running instance cannot change; takes effect with the next start.

        https://cloud.google.com/compute/docs/instances/changing-machine-type-of-stopped-instance
        """
        key = self.target(call)
        old = self.store.require(key)
        self._require_stopped(key, old, method)
        value = {**copy.deepcopy(old), **changes}
        Properties(self.cloud, value, "", split(key).scope).complete()
        for account in value.get("serviceAccounts", []):
            self.cloud.service_accounts.require_usable(account["email"])
        value["machineType"] = self._machine_type(split(key).scope, value)
        self.write(key, **value)
        return self.cloud.operations.done(method, call.scope, key)

    def _machine_type(self, scope: str, value: Object) -> str:
        return link(f"projects/{self.project}/{scope}/machineTypes/{name_of(value['machineType'])}")

    def start(self, call: Call) -> Answer:
        """Starts a stopped instance."""
        key = self.target(call)
        value = self.store.require(key)
        if value["status"] == "RUNNING":
            return self.cloud.operations.done("start", call.scope, key)
        if value["status"] != "TERMINATED":
            raise invalid("status", value["status"], "The instance is not stopped.")
        return self.cloud.operations.run("start", call.scope, key, self.cloud.machines.start(key))

    def stop(self, call: Call) -> Answer:
        """Shuts an instance down; its disk stays."""
        key = self.target(call)
        self.store.require(key)
        return self.cloud.operations.run("stop", call.scope, key, self.cloud.machines.stop(key))

    def reset(self, call: Call) -> Answer:
        """Hard reset."""
        key = self.target(call)
        value = self.store.require(key)
        if value["status"] != "RUNNING":
            raise invalid("status", value["status"], "The instance is not running.")
        return self.cloud.operations.run("reset", call.scope, key, self.cloud.machines.reset(key))

    def simulate_maintenance_event(self, call: Call) -> Answer:
        """Lets the host under a VM be maintained: see `maintenance`; a Spot VM is preempted.

        https://cloud.google.com/compute/docs/instances/simulating-host-maintenance and, for Spot VMs,
        https://cloud.google.com/compute/docs/instances/create-use-spot#test-settings
        """
        key = self.target(call)
        if is_spot(self.store.require(key)):
            self.cloud.machines.preempt(key)
            return self.cloud.operations.done("simulateMaintenanceEvent", call.scope, key)
        work = self.cloud.maintenance.begin(key)
        return self.cloud.operations.run("simulateMaintenanceEvent", call.scope, key, work)

    def serial_output(self, call: Call) -> Answer:
        """What the console printed; `start` counts bytes from the beginning."""
        key = self.target(call)
        self.store.require(key)
        output = self.cloud.substrate.serial_output(key).encode()
        start = int(call.params.get("start", 0) or 0)
        if start < 0:
            start = max(0, len(output) + start)
        return {
            "kind": "compute#serialPortOutput",
            "contents": output[start : start + 1_048_576].decode(errors="replace"),
            "start": str(start),
            "next": str(min(len(output), start + 1_048_576)),
            "selfLink": link(key) + "/serialPort",
        }

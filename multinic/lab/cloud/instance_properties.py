"""What instances and instance templates have in common: disks, NICs, metadata, scheduling, and what is refused."""

from __future__ import annotations

import re
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Any

from . import catalog, references
from .errors import ApiError, invalid, required
from .labels import check_labels
from .links import key_of, link, name_of, region_of, split
from .store import Object

if TYPE_CHECKING:
    from .cloud import Cloud

_METADATA_KEY = re.compile(r"[a-zA-Z0-9-_]{1,128}")
_TAG = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")


class Properties:
    """Checks and completes the properties of an instance or a template.

    Args:
        cloud: For references.
        value: The object that has the properties; changed in place.
        prefix: Path of the properties in the request body, for messages (``properties.`` in a template).
        scope: Scope of bare names: the zone of an instance, the region of a regional template, else ``global``.
    """

    def __init__(self, cloud: Cloud, value: Object, prefix: str, scope: str) -> None:
        self.cloud, self.value, self.prefix, self.scope = cloud, value, prefix, scope
        self.held: set[str] = set()

    def complete(self) -> set[str]:
        """Does everything below; gives the keys that the object holds."""
        self._disks()
        self._interfaces()
        self._machine()
        self._scheduling()
        self._accounts()
        self._policies()
        check_metadata(self.value.get("metadata") or {}, self.prefix)
        check_tags(self.value.get("tags") or {}, self.prefix)
        check_labels(self.value.get("labels") or {})
        return self.held

    def _field(self, name: str) -> str:
        return self.prefix + name

    def _region(self) -> str | None:
        kind, _, place = self.scope.partition("/")
        return None if kind == "global" else place if kind == "regions" else region_of(place)

    def _disks(self) -> None:
        # https://cloud.google.com/compute/docs/reference/rest/v1/instances/insert: the first disk is the boot disk
        disks = self.value.get("disks") or []
        if not disks:
            raise required(self._field("disks"))
        if not disks[0].get("boot"):
            raise invalid(self._field("disks[0].boot"), False, "The first disk must be a boot disk.")
        for index, disk in enumerate(disks):
            field = self._field(f"disks[{index}]")
            if index and disk.get("boot"):
                raise invalid(field + ".boot", True, "Only one boot disk may be given.")
            disk.update(kind="compute#attachedDisk", index=index)
            disk.setdefault("type", "PERSISTENT")
            disk.setdefault("mode", "READ_WRITE")
            disk.setdefault("boot", False)
            disk.setdefault("autoDelete", False)
            params = disk.get("initializeParams") or {}
            self._size(field, params.get("diskSizeGb") or disk.get("diskSizeGb"))
            if "sourceImage" in params:
                params["sourceImage"] = link(
                    self._image(field + ".initializeParams.sourceImage", params["sourceImage"])
                )
            elif disk.get("boot") and not disk.get("source"):
                raise required(field + ".initializeParams.sourceImage")

    def _size(self, field: str, size: Any) -> None:
        # 64 TB at most: https://cloud.google.com/compute/docs/disks/persistent-disks#pdspecs; never smaller than the
        # image: discovery document compute.v1, AttachedDiskInitializeParams.diskSizeGb. The lab's images have 10 GB.
        if size is not None and not catalog.IMAGE_GB <= int(size) <= 65_536:
            why = f"The size must be between the image's {catalog.IMAGE_GB} GB and 65536 GB."
            raise invalid(field + ".initializeParams.diskSizeGb", size, why)

    def _image(self, field: str, text: str) -> str:
        path = key_of(text)
        found = re.fullmatch(r"projects/([^/]+)/global/images/(?:(family)/)?([^/]+)", path)
        if not found:
            raise invalid(field, text, "The URL is malformed.")
        project, is_family, name = found.groups()
        image = catalog.family(project, name) if is_family else catalog.image(project, name)
        if image is None:
            raise ApiError(404, "notFound", f"The resource '{path}' was not found")
        # A family link stays one: it is resolved when a VM is made.
        return path

    def _interfaces(self) -> None:
        nics = self.value.get("networkInterfaces") or []
        if not nics:
            raise required(self._field("networkInterfaces"))
        region = self._region()
        for index, nic in enumerate(nics):
            self._interface(self._field(f"networkInterfaces[{index}]"), nic, region)
            nic.update(kind="compute#networkInterface", name=f"nic{index}")
            nic.setdefault("stackType", "IPV4_ONLY")
        networks = [nic.get("network") for nic in nics]
        if len(set(networks)) < len(networks):
            raise invalid(
                self._field("networkInterfaces"), networks, "Multiple network interfaces cannot be in the same network."
            )
        ranges = [IPv4Network(self._subnet(nic)["ipCidrRange"]) for nic in nics if nic.get("subnetwork")]
        for index, one in enumerate(ranges):
            if any(one.overlaps(other) for other in ranges[:index]):
                # https://cloud.google.com/vpc/docs/multiple-interfaces-concepts#specs
                raise invalid(
                    self._field(f"networkInterfaces[{index}].subnetwork"),
                    str(one),
                    "The IP ranges of the interfaces of a VM must not overlap.",
                )

    def _subnet(self, nic: Object) -> Object:
        return self.cloud.store.require(key_of(nic["subnetwork"]))

    def _interface(self, field: str, nic: Object, region: str | None) -> None:
        if nic.get("stackType", "IPV4_ONLY") != "IPV4_ONLY" or nic.get("ipv6AccessConfigs"):
            raise invalid(field + ".stackType", nic.get("stackType"), "The lab serves IPv4 only.")
        if nic.get("subnetwork"):
            scope = f"regions/{region}" if region else "global"
            key = references.require(self.cloud, field + ".subnetwork", nic["subnetwork"], "subnetworks", "own", scope)
            if region and split(key).scope != f"regions/{region}":
                raise invalid(field + ".subnetwork", nic["subnetwork"], f"The subnetwork must be in region '{region}'.")
            nic["subnetwork"] = link(key)
            self.held.add(key)
            network = self.cloud.subnetworks.network_key(key)
            if nic.get("network") and self._network(field, nic["network"]) != network:
                raise invalid(field + ".network", nic["network"], "The subnetwork is not in this network.")
        else:
            network = self._network(field, nic.get("network") or "global/networks/default")
            self._choose_subnetwork(field, nic, network, region)
        nic["network"] = link(network)
        self.held.add(network)

    def _network(self, field: str, text: str) -> str:
        return references.require(self.cloud, field + ".network", text, "networks", "global", self.scope)

    def _choose_subnetwork(self, field: str, nic: Object, network: str, region: str | None) -> None:
        if not self.cloud.store.require(network).get("autoCreateSubnetworks"):
            raise invalid(field + ".subnetwork", "", "A subnetwork must be given for a network in custom subnet mode.")
        if region is not None:
            key = f"projects/{self.cloud.project}/regions/{region}/subnetworks/{name_of(network)}"
            self.cloud.store.require(key)
            nic["subnetwork"] = link(key)
            self.held.add(key)

    def _machine(self) -> None:
        text = self.value.get("machineType")
        if not text:
            raise required(self._field("machineType"))
        name = name_of(text)
        machine = catalog.machine_type(name)
        if machine is None:
            raise invalid(self._field("machineType"), text, "The referenced machineType resource cannot be found.")
        zone = re.search(r"(?:^|/)zones/([^/]+)/", text)
        if zone and self.scope.startswith("zones/") and self.scope != f"zones/{zone[1]}":
            # Machine types are resources of a zone: https://cloud.google.com/compute/docs/machine-resource
            raise invalid(self._field("machineType"), text, f"The machine type must be in '{self.scope}'.")
        nics = self.value["networkInterfaces"]
        if len(nics) > machine.nics:
            # https://cloud.google.com/vpc/docs/multiple-interfaces-concepts#max-interfaces
            raise invalid(
                self._field("networkInterfaces"),
                len(nics),
                f"Too many network interfaces. The maximum for machine type {name} is {machine.nics}.",
            )
        tier = (self.value.get("networkPerformanceConfig") or {}).get("totalEgressBandwidthTier")
        if tier == "TIER_1":
            # https://cloud.google.com/compute/docs/networking/configure-vm-with-high-bandwidth-configuration
            if machine.egress(tier_1=True) <= machine.egress():
                raise invalid(
                    self._field("networkPerformanceConfig.totalEgressBandwidthTier"),
                    tier,
                    f"TIER_1 is not available for machine type {name}.",
                )
            if any(nic.get("nicType") not in ("GVNIC", "IDPF") for nic in nics):
                raise invalid(
                    self._field("networkInterfaces"), len(nics), "TIER_1 needs nicType GVNIC on all interfaces."
                )
        if machine.cpus * 2 < sum(int(nic.get("queueCount") or 0) for nic in nics):
            raise invalid(self._field("networkInterfaces"), len(nics), "The sum of queue counts is too large.")

    def _scheduling(self) -> None:
        # https://cloud.google.com/compute/docs/instances/create-use-spot and discovery Scheduling.*
        scheduling = self.value.setdefault("scheduling", {})
        field = self._field("scheduling")
        spot = scheduling.get("provisioningModel") == "SPOT" or bool(scheduling.get("preemptible"))
        if spot and scheduling.get("automaticRestart"):
            raise invalid(field + ".automaticRestart", True, "Spot VMs cannot have automaticRestart.")
        if spot and scheduling.get("onHostMaintenance", "TERMINATE") != "TERMINATE":
            raise invalid(field + ".onHostMaintenance", "MIGRATE", "Spot VMs must have onHostMaintenance TERMINATE.")
        if not spot and scheduling.get("instanceTerminationAction") and not scheduling.get("maxRunDuration"):
            raise invalid(
                field + ".instanceTerminationAction",
                scheduling["instanceTerminationAction"],
                "May be given for Spot VMs and VMs with a maximum run duration only.",
            )
        scheduling.setdefault("provisioningModel", "SPOT" if spot else "STANDARD")
        scheduling.setdefault("preemptible", spot)
        scheduling.setdefault("automaticRestart", not spot)
        scheduling.setdefault("onHostMaintenance", "TERMINATE" if spot else "MIGRATE")

    def _policies(self) -> None:
        # A template names policies, the region of its VMs says which ones they are; only VMs hold them:
        # https://cloud.google.com/compute/docs/instances/placement-policies-overview
        policies = self.value.get("resourcePolicies") or []
        if not self.scope.startswith("zones/"):
            return
        for index, text in enumerate(policies):
            field = self._field(f"resourcePolicies[{index}]")
            key = references.require(
                self.cloud, field, str(text), "resourcePolicies", "own", f"regions/{self._region()}"
            )
            policies[index] = link(key)
            self.held.add(key)

    def _accounts(self) -> None:
        accounts = self.value.get("serviceAccounts") or []
        if len(accounts) > 1:
            raise invalid(self._field("serviceAccounts"), len(accounts), "At most one service account may be given.")
        for account in accounts:
            if account.get("email", "default") == "default":
                account["email"] = self.cloud.projects.default_account
            account.setdefault("scopes", [])


def check_metadata(metadata: Object, prefix: str) -> None:
    """Refuses metadata that Google refuses: 256 KiB a value, 512 KiB in all, keys of ``[a-zA-Z0-9-_]``, no key twice.

    https://cloud.google.com/compute/docs/metadata/setting-custom-metadata#limitations
    """
    metadata["kind"] = "compute#metadata"
    seen: set[str] = set()
    total = 0
    for index, item in enumerate(metadata.get("items") or []):
        field = f"{prefix}metadata.items[{index}]"
        key, value = item.get("key"), str(item.get("value", ""))
        if not key:
            raise required(field + ".key")
        if not _METADATA_KEY.fullmatch(key):
            raise invalid(field + ".key", key, "Must be a match of regex '[a-zA-Z0-9-_]{1,128}'")
        if key in seen:
            raise invalid(field + ".key", key, f"Metadata has duplicate key: {key}")
        seen.add(key)
        size = len(value.encode())
        if size > 262_144:
            raise invalid(field + ".value", f"{size} bytes", "The size of a value must not exceed 262144 bytes.")
        total += size + len(key)
    if total > 524_288:
        raise invalid(
            f"{prefix}metadata", f"{total} bytes", "The total size of keys and values must not exceed 512 KiB."
        )


def check_tags(tags: Object, prefix: str) -> None:
    """Refuses network tags that Google refuses: 64 at most, RFC 1035 labels.

    https://cloud.google.com/vpc/docs/add-remove-network-tags#restrictions
    """
    items: list[Any] = tags.get("items") or []
    if len(items) > 64:
        raise invalid(f"{prefix}tags", len(items), "A VM has at most 64 network tags.")
    for index, tag in enumerate(items):
        if not _TAG.fullmatch(str(tag)):
            raise invalid(f"{prefix}tags.items[{index}]", tag, f"Must be a match of regex '{_TAG.pattern}'")

"""One call of every method that the lab serves, in an order in which all succeed.

A new method without a call here fails `test_contract.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

REGION, ZONE = "us-central1", "us-central1-a"
IMAGE = "projects/debian-cloud/global/images/debian-12-bookworm-v20260101"
SUBNET = f"regions/{REGION}/subnetworks/sub"
ACCOUNT = "projects/lab/serviceAccounts/tester@lab.iam.gserviceaccount.com"

Answers = dict[str, dict[str, Any]]
Body = dict[str, Any] | Callable[[Answers], dict[str, Any]] | None


@dataclass(frozen=True)
class OneCall:
    """A call.

    Attributes:
        method: Name in the discovery document.
        params: Path and query parameters.
        body: JSON, or a function of the newest answer of each method so far.
        refused: HTTP status where even a right call is refused.
    """

    method: str
    params: dict[str, Any]
    body: Body = None
    refused: int | None = None


def _machine(**more: Any) -> dict[str, Any]:
    disk = {"boot": True, "autoDelete": True, "initializeParams": {"sourceImage": IMAGE}}
    return {"machineType": "e2-small", "disks": [disk], "networkInterfaces": [{"subnetwork": SUBNET}], **more}


def _fingerprint(method: str, *path: str) -> Callable[[Answers], Any]:
    def read(answers: Answers) -> Any:
        value: Any = answers[method]
        for name in path or ("fingerprint",):
            value = value[name]
        return value

    return read


def _fingerprinted(method: str, body: dict[str, Any]) -> Callable[[Answers], dict[str, Any]]:
    read = _fingerprint(method)
    return lambda answers: {"fingerprint": read(answers), **body}


def _kind(
    resource: str, parameter: str, body: dict[str, Any], *, place: dict[str, Any] | None = None, name: str | None = None
) -> Iterator[OneCall]:
    """insert, get and list of a kind."""
    where = {"project": "lab", **(place or {})}
    yield OneCall(f"{resource}.insert", where, body)
    yield OneCall(f"{resource}.get", {**where, parameter: name or body["name"]})
    yield OneCall(f"{resource}.list", {**where, "maxResults": 1, "filter": f"name = {body['name']}"})


def compute() -> list[OneCall]:
    """The calls of Compute Engine."""
    calls = list(_compute())
    aggregated = [call.method.partition(".")[0] for call in calls if call.method.endswith(".insert")]
    # Right before the first deletion, when there is something of each kind.
    more = list(_permissions())
    first = next(index for index, call in enumerate(calls) if call.method.endswith(".delete"))
    more += [
        OneCall(f"{resource}.aggregatedList", {"project": "lab"})
        for resource in (*aggregated, "backendServices", "disks", "instanceGroups", "machineTypes", "globalOperations")
        if not resource.startswith("region") and resource not in NO_AGGREGATED_LIST
    ]
    return calls[:first] + more + calls[first:]


def _permissions() -> Iterator[OneCall]:
    asked = {"permissions": ["compute.instances.get"]}
    for where, resources in (
        ({}, {"firewalls": "fw", "healthChecks": "hc", "instanceTemplates": "t1", "routes": "to-b"}),
        (
            {"region": REGION},
            {
                "addresses": "ilb",
                "regionAutoscalers": "as",
                "regionBackendServices": "bs",
                "regionHealthChecks": "hc",
                "regionInstanceGroups": "fleet",
                "resourcePolicies": "spread",
                "subnetworks": "sub",
            },
        ),
        ({"zone": ZONE}, {"autoscalers": "as", "disks": "vm", "instanceGroups": "fleet", "instances": "vm"}),
    ):
        for resource, name in resources.items():
            yield OneCall(f"{resource}.testIamPermissions", {"project": "lab", **where, "resource": name}, asked)


NO_AGGREGATED_LIST = ("networks", "firewalls", "routes")


def _compute() -> Iterator[OneCall]:
    project = {"project": "lab"}
    region, zone = {**project, "region": REGION}, {**project, "zone": ZONE}
    yield OneCall("projects.get", project)
    for resource, where, parameter, name in (
        ("zones", project, "zone", ZONE),
        ("regions", project, "region", REGION),
        ("machineTypes", zone, "machineType", "n2-highcpu-4"),
        ("images", {"project": "debian-cloud"}, "image", "debian-12-bookworm-v20260101"),
    ):
        yield OneCall(f"{resource}.get", {**where, parameter: name})
        yield OneCall(f"{resource}.list", where)
    yield OneCall("images.getFromFamily", {"project": "debian-cloud", "family": "debian-12"})
    yield from _shared_vpc(project)
    yield from _packets(project, region)
    yield from _machines(project, region, zone)
    yield from _balancing(project, region)
    yield from _groups(zone, region)
    yield from _operations(project, region, zone)
    yield from _deletions(project, region, zone)


def _shared_vpc(project: dict[str, Any]) -> Iterator[OneCall]:
    yield OneCall("projects.enableXpnHost", project)
    service = {"xpnResource": {"id": "service-one", "type": "PROJECT"}}
    yield OneCall("projects.enableXpnResource", project, service)
    yield OneCall("projects.getXpnResources", project)
    yield OneCall("projects.getXpnHost", {"project": "service-one"})
    yield OneCall("projects.listXpnHosts", project, {"organization": "1"})
    yield OneCall("projects.disableXpnResource", project, service)
    yield OneCall("projects.disableXpnHost", project)


def _packets(project: dict[str, Any], region: dict[str, Any]) -> Iterator[OneCall]:
    place = {"region": REGION}
    yield from _kind("networks", "network", {"name": "net", "autoCreateSubnetworks": False})
    yield OneCall("networks.patch", {**project, "network": "net"}, {"mtu": 1500})
    subnet = {"name": "sub", "network": "global/networks/net", "ipCidrRange": "10.0.0.0/24"}
    yield from _kind("subnetworks", "subnetwork", subnet, place=place)
    wider = {"ipCidrRange": "10.0.0.0/23"}
    yield OneCall("subnetworks.expandIpCidrRange", {**region, "subnetwork": "sub"}, wider)
    access = {"privateIpGoogleAccess": True}
    yield OneCall("subnetworks.setPrivateIpGoogleAccess", {**region, "subnetwork": "sub"}, access)
    yield OneCall("subnetworks.listUsable", project)
    yield OneCall("subnetworks.get", {**region, "subnetwork": "sub"})
    flows = {"enable": True}
    yield OneCall(
        "subnetworks.patch",
        {**region, "subnetwork": "sub"},
        lambda last: {"fingerprint": last["subnetworks.get"]["fingerprint"], "logConfig": flows},
    )
    firewall = {"name": "fw", "network": "global/networks/net", "allowed": [{"IPProtocol": "tcp", "ports": ["9001"]}]}
    firewall["sourceRanges"] = ["35.191.0.0/16"]
    yield from _kind("firewalls", "firewall", firewall)
    yield OneCall("networks.getEffectiveFirewalls", {**project, "network": "net"})
    yield OneCall("firewalls.patch", {**project, "firewall": "fw"}, {"priority": 900})
    yield OneCall("firewalls.update", {**project, "firewall": "fw"}, firewall)
    router = {"name": "nat", "network": "global/networks/net"}
    yield from _kind("routers", "router", router, place=place)
    nat = {"name": "all", "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES"}
    nat["natIpAllocateOption"] = "AUTO_ONLY"
    yield OneCall("routers.patch", {**region, "router": "nat"}, {"nats": [nat]})
    yield OneCall("routers.update", {**region, "router": "nat"}, {**router, "nats": [nat]})
    address = {"name": "ilb", "addressType": "INTERNAL", "subnetwork": SUBNET, "address": "10.0.0.9"}
    yield from _kind("addresses", "address", address, place=place)
    yield OneCall("addresses.setLabels", {**region, "resource": "ilb"}, {"labels": {"a": "b"}})


def _machines(project: dict[str, Any], region: dict[str, Any], zone: dict[str, Any]) -> Iterator[OneCall]:
    policy = {"name": "spread", "groupPlacementPolicy": {"availabilityDomainCount": 2}}
    yield from _kind("resourcePolicies", "resourcePolicy", policy, place={"region": REGION})
    template = {"name": "t1", "properties": _machine()}
    yield from _kind("instanceTemplates", "instanceTemplate", template)
    yield from _kind("regionInstanceTemplates", "instanceTemplate", template, place={"region": REGION})
    vm = _machine(name="vm", machineType=f"zones/{ZONE}/machineTypes/e2-small", labels={"a": "b"})
    vm["disks"][0]["autoDelete"] = False
    vm["scheduling"] = {"provisioningModel": "SPOT", "automaticRestart": False, "onHostMaintenance": "TERMINATE"}
    yield from _kind("instances", "instance", vm, place={"zone": ZONE})
    this = {**zone, "instance": "vm"}
    read = _fingerprint("instances.get", "metadata", "fingerprint")
    items = [{"key": "k", "value": "v"}]
    yield OneCall("instances.setMetadata", this, lambda last: {"fingerprint": read(last), "items": items})
    tags = _fingerprint("instances.get", "tags", "fingerprint")
    yield OneCall("instances.setTags", this, lambda last: {"fingerprint": tags(last), "items": ["client"]})
    labels = _fingerprint("instances.get", "labelFingerprint")
    yield OneCall("instances.setLabels", this, lambda last: {"labelFingerprint": labels(last), "labels": {"a": "c"}})
    for protected in (True, False):
        resource = {**zone, "resource": "vm", "deletionProtection": protected}
        yield OneCall("instances.setDeletionProtection", resource)
    yield OneCall("instances.getSerialPortOutput", {**this, "port": 1})
    # A VM that has written none has none.
    yield OneCall("instances.getGuestAttributes", {**this, "queryPath": "a/"}, refused=404)
    yield OneCall("instances.reset", this)
    yield OneCall("instances.stop", this)
    machine_type = {"machineType": f"zones/{ZONE}/machineTypes/n2-highcpu-4"}
    yield OneCall("instances.setMachineType", this, machine_type)
    yield OneCall("instances.setMinCpuPlatform", this, {"minCpuPlatform": "Intel Ice Lake"})
    default: dict[str, Any] = {"email": "470470470470-compute@developer.gserviceaccount.com"}
    default["scopes"] = ["https://www.googleapis.com/auth/cloud-platform"]
    yield OneCall("instances.setServiceAccount", this, default)
    yield OneCall("instances.setScheduling", this, {**vm["scheduling"], "instanceTerminationAction": "STOP"})
    yield OneCall("instances.updateShieldedInstanceConfig", this, {"enableSecureBoot": True})
    yield OneCall("instances.start", this)
    yield OneCall("instances.simulateMaintenanceEvent", this)
    yield OneCall("disks.get", {**zone, "disk": "vm"})
    yield OneCall("disks.list", zone)
    yield OneCall("disks.setLabels", {**zone, "resource": "vm"}, {"labels": {"a": "b"}})


def _balancing(project: dict[str, Any], region: dict[str, Any]) -> Iterator[OneCall]:
    check = {"name": "hc", "type": "HTTP", "httpHealthCheck": {"port": 9001}}
    for resource, where in (("healthChecks", {}), ("regionHealthChecks", {"region": REGION})):
        yield from _kind(resource, "healthCheck", check, place=where)
        this = {**project, **where, "healthCheck": "hc"}
        yield OneCall(f"{resource}.patch", this, {"checkIntervalSec": 7})
        yield OneCall(f"{resource}.update", this, {**check, "checkIntervalSec": 8})
    service: dict[str, Any] = {"name": "bs", "loadBalancingScheme": "INTERNAL", "network": "global/networks/net"}
    service["healthChecks"] = ["global/healthChecks/hc"]
    yield from _kind("regionBackendServices", "backendService", service, place={"region": REGION})
    this = {**region, "backendService": "bs"}
    read = _fingerprint("regionBackendServices.get")
    draining = {"connectionDraining": {"drainingTimeoutSec": 30}}
    yield OneCall("regionBackendServices.patch", this, lambda last: {"fingerprint": read(last), **draining})
    yield OneCall("regionBackendServices.get", this)
    yield OneCall("regionBackendServices.update", this, lambda last: {**service, "fingerprint": read(last)})
    rule = {
        "name": "fr",
        "loadBalancingScheme": "INTERNAL",
        "allPorts": True,
        "subnetwork": SUBNET,
        "IPAddress": "10.0.0.9",
    }
    rule |= {"backendService": f"regions/{REGION}/backendServices/bs", "IPProtocol": "TCP"}
    yield from _kind("forwardingRules", "forwardingRule", rule, place={"region": REGION})
    yield OneCall("forwardingRules.patch", {**region, "forwardingRule": "fr"}, {"allowGlobalAccess": True})
    yield OneCall("forwardingRules.setLabels", {**region, "resource": "fr"}, {"labels": {"a": "b"}})
    route = {"name": "to-b", "network": "global/networks/net", "destRange": "10.9.0.0/16", "priority": 900}
    route["nextHopIlb"] = f"regions/{REGION}/forwardingRules/fr"
    yield from _kind("routes", "route", route)


def _groups(zone: dict[str, Any], region: dict[str, Any]) -> Iterator[OneCall]:
    for prefix, where, place in (
        ("i", zone, f"zones/{ZONE}"),
        ("regionI", region, f"regions/{REGION}"),
    ):
        managers, groups = f"{prefix}nstanceGroupManagers", f"{prefix}nstanceGroups"
        autoscalers = "autoscalers" if prefix == "i" else "regionAutoscalers"
        body = {"name": "fleet", "targetSize": 3, "versions": [{"instanceTemplate": "global/instanceTemplates/t1"}]}
        kept = {key: value for key, value in where.items() if key != "project"}
        yield from _kind(managers, "instanceGroupManager", body, place=kept)
        this = {**where, "instanceGroupManager": "fleet"}
        yield OneCall(
            f"{managers}.patch", this, _fingerprinted(f"{managers}.get", {"updatePolicy": {"type": "PROACTIVE"}})
        )
        yield OneCall(f"{managers}.resize", {**this, "size": 4})
        yield OneCall(f"{managers}.setInstanceTemplate", this, {"instanceTemplate": "global/instanceTemplates/t1"})
        listed = f"{managers}.listManagedInstances"
        for action, index in (
            ("recreateInstances", 0),
            ("applyUpdatesToInstances", 1),
            ("deleteInstances", 2),
        ):
            yield OneCall(listed, this)
            yield OneCall(f"{managers}.{action}", this, _member(listed, index))
        yield OneCall(f"{managers}.listErrors", this)
        this_group = {**where, "instanceGroup": "fleet"}
        yield OneCall(f"{groups}.get", this_group)
        yield OneCall(f"{groups}.list", where)
        yield OneCall(f"{groups}.listInstances", this_group, {"instanceState": "ALL"})
        yield OneCall(f"{groups}.setNamedPorts", this_group, {"namedPorts": [{"name": "heal", "port": 9000}]})
        scaling = {"minNumReplicas": 2, "maxNumReplicas": 3, "cpuUtilization": {"utilizationTarget": 0.2}}
        scaler = {"name": "as", "target": f"{place}/instanceGroupManagers/fleet", "autoscalingPolicy": scaling}
        yield from _kind(autoscalers, "autoscaler", scaler, place=kept)
        named = {**where, "autoscaler": "as"}
        yield OneCall(f"{autoscalers}.patch", named, {"autoscalingPolicy": {**scaling, "maxNumReplicas": 4}})
        yield OneCall(f"{autoscalers}.update", named, scaler)
    group = {"group": f"zones/{ZONE}/instanceGroups/fleet"}
    service = {**region, "backendService": "bs"}
    yield OneCall("regionBackendServices.patch", service, {"backends": [group]})
    yield OneCall("regionBackendServices.getHealth", service, group)


def _member(listed: str, index: int) -> Callable[[Answers], dict[str, Any]]:
    return lambda last: {"instances": [last[listed]["managedInstances"][index]["instance"]]}


def _operations(project: dict[str, Any], region: dict[str, Any], zone: dict[str, Any]) -> Iterator[OneCall]:
    for word, where in (("global", project), ("region", region), ("zone", zone)):
        listed = f"{word}Operations.list"
        yield OneCall(listed, {**where, "filter": "status = DONE"})
        for action in ("get", "wait", "delete"):
            yield OneCall(f"{word}Operations.{action}", {**where, "operation": _FirstOf(listed)})


@dataclass(frozen=True)
class _FirstOf:
    """Stands for the name of the first item of a list's newest answer."""

    method: str


def filled(call: OneCall, answers: Answers) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Parameters and body of a call, given the answers so far."""
    params = {
        name: answers[value.method]["items"][0]["name"] if isinstance(value, _FirstOf) else value
        for name, value in call.params.items()
    }
    return params, call.body(answers) if callable(call.body) else call.body


def _deletions(project: dict[str, Any], region: dict[str, Any], zone: dict[str, Any]) -> Iterator[OneCall]:
    for resource, where, parameter, name in (
        ("routes", project, "route", "to-b"),
        ("forwardingRules", region, "forwardingRule", "fr"),
        ("addresses", region, "address", "ilb"),
        ("regionBackendServices", region, "backendService", "bs"),
    ):
        yield OneCall(f"{resource}.delete", {**where, parameter: name})
    for prefix, where in (("i", zone), ("regionI", region)):
        managers = f"{prefix}nstanceGroupManagers"
        autoscalers = "autoscalers" if prefix == "i" else "regionAutoscalers"
        yield OneCall(f"{autoscalers}.delete", {**where, "autoscaler": "as"})
        this = {**where, "instanceGroupManager": "fleet"}
        yield OneCall(f"{managers}.listManagedInstances", this)
        yield OneCall(f"{managers}.abandonInstances", this, _member(f"{managers}.listManagedInstances", 0))
        yield OneCall(f"{managers}.delete", this)
    for resource, where, parameter, name in (
        ("healthChecks", project, "healthCheck", "hc"),
        ("regionHealthChecks", region, "healthCheck", "hc"),
        ("instanceTemplates", project, "instanceTemplate", "t1"),
        ("regionInstanceTemplates", region, "instanceTemplate", "t1"),
        ("resourcePolicies", region, "resourcePolicy", "spread"),
        ("routers", region, "router", "nat"),
        ("firewalls", project, "firewall", "fw"),
        ("instances", zone, "instance", "vm"),
        ("disks", zone, "disk", "vm"),
    ):
        yield OneCall(f"{resource}.delete", {**where, parameter: name})
    # The other network has VMs of groups that were abandoned.
    yield OneCall("networks.insert", project, {"name": "spare", "autoCreateSubnetworks": False})
    subnet = {"name": "spare", "network": "global/networks/spare", "ipCidrRange": "10.0.0.0/24"}
    yield OneCall("subnetworks.insert", region, subnet)
    yield OneCall("subnetworks.delete", {**region, "subnetwork": "spare"})
    yield OneCall("networks.delete", {**project, "network": "spare"})


def newer() -> dict[str, list[OneCall]]:
    """The calls of the other APIs, by their first path segment in the lab."""
    account = {"name": ACCOUNT}
    policy = {"bindings": [{"role": "roles/logging.logWriter", "members": ["user:somebody@example.com"]}]}
    entry = {"logName": "projects/lab/logs/multinic", "jsonPayload": {"message": "drained"}, "severity": "INFO"}
    service: dict[str, Any] = {"name": "projects/lab/services/compute.googleapis.com"}
    interval = {"interval.startTime": "2026-11-01T00:00:00Z", "interval.endTime": "2026-11-01T01:00:00Z"}
    cpu = 'metric.type = "compute.googleapis.com/instance/cpu/utilization"'
    return {
        "iam": [
            OneCall("projects.serviceAccounts.create", {"name": "projects/lab"}, {"accountId": "tester"}),
            OneCall("projects.serviceAccounts.get", account),
            OneCall("projects.serviceAccounts.list", {"name": "projects/lab", "pageSize": 1}),
            OneCall(
                "projects.serviceAccounts.patch",
                account,
                {"serviceAccount": {"displayName": "Tester"}, "updateMask": "displayName"},
            ),
            OneCall("projects.serviceAccounts.disable", account, {}),
            OneCall("projects.serviceAccounts.enable", account, {}),
            OneCall("projects.serviceAccounts.delete", account),
        ],
        "crm": [
            OneCall("projects.get", {"projectId": "lab"}),
            OneCall("projects.getIamPolicy", {"resource": "lab"}, {"options": {"requestedPolicyVersion": 3}}),
            OneCall(
                "projects.setIamPolicy",
                {"resource": "lab"},
                lambda last: {"policy": {**policy, "etag": last["projects.getIamPolicy"]["etag"]}},
            ),
            OneCall("projects.testIamPermissions", {"resource": "lab"}, {"permissions": ["compute.instances.get"]}),
        ],
        "logging": [
            OneCall("entries.write", {}, {"entries": [entry]}),
            OneCall("entries.list", {}, {"resourceNames": ["projects/lab"], "filter": "severity>=INFO"}),
        ],
        "monitoring": [OneCall("projects.timeSeries.list", {"name": "projects/lab", "filter": cpu, **interval})],
        "serviceusage": [
            OneCall("services.get", service),
            OneCall("services.list", {"parent": "projects/lab", "filter": "state:ENABLED", "pageSize": 200}),
            OneCall("services.enable", service, {}),
            OneCall("services.batchEnable", {"parent": "projects/lab"}, {"serviceIds": ["iam.googleapis.com"]}),
            # The lab's APIs cannot be disabled.
            OneCall("services.disable", service, {}, refused=400),
        ],
    }

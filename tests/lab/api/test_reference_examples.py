"""What reference 1's examples make around its module, as Google's provider does: networks, NAT, accounts, endpoints.

Which calls the provider makes for these types is known from requests recorded of it (see `test_life_of_a_stack.py`).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.api.conftest import Door
from tests.lab.api.test_reference_module import IMAGE, LABELS, Provider, differs

REGION, REMOTE = "us-west1", "us-west2"
PROBES = ["130.211.0.0/22", "35.191.0.0/16"]
CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"


def network(provider: Provider, name: str, second_octet: int) -> None:
    """A VPC with three subnetworks in two regions, NAT and four firewall rules."""
    link = f"projects/lab/global/networks/{name}"
    routing = {"routingMode": "GLOBAL", "deleteBgpAlwaysCompareMed": False}
    body = {"name": name, "autoCreateSubnetworks": False, "routingConfig": routing}
    provider.create("projects/lab/global/networks", body | {"networkFirewallPolicyEnforcementOrder": None})
    for index, (part, region) in enumerate((("general", REGION), ("bridge", REGION), ("remote", REMOTE))):
        subnet = {"name": f"{name}-{part}", "network": link, "privateIpGoogleAccess": True, "description": ""}
        subnet |= {"ipCidrRange": f"10.{second_octet + index}.0.0/20", "logConfig": None, "secondaryIpRanges": []}
        place = {"region": f"projects/lab/global/regions/{region}"}
        provider.create(f"projects/lab/regions/{region}/subnetworks", subnet | place)
    router = {"name": f"nat-{name}", "network": link, "bgp": None, "region": f"projects/lab/global/regions/{REGION}"}
    routers = f"projects/lab/regions/{REGION}/routers"
    provider.create(routers, router)
    nat: dict[str, Any] = {
        "name": f"nat-{name}",
        "natIpAllocateOption": "AUTO_ONLY",
        "natIps": [],
        "drainNatIps": [],
        "rules": [],
    }
    nat |= {"sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES", "subnetworks": [], "type": "PUBLIC"}
    nat |= {
        "minPortsPerVm": 64,
        "udpIdleTimeoutSec": 30,
        "icmpIdleTimeoutSec": 30,
        "tcpEstablishedIdleTimeoutSec": 1200,
    }
    nat |= {"tcpTransitoryIdleTimeoutSec": 30, "tcpTimeWaitTimeoutSec": 120, "logConfig": None, "initialNatIps": []}
    assert "nats" not in provider.read(f"{routers}/{router['name']}")
    provider.run("PATCH", f"{routers}/{router['name']}", {"nats": [nat]})
    assert not differs(nat, provider.read(f"{routers}/{router['name']}")["nats"][0])
    for rule, ranges, priority, allowed in (
        ("allow-health-check", PROBES, 1000, [{"IPProtocol": kind} for kind in ("icmp", "tcp", "udp")]),
        ("default-allow-ssh", ["0.0.0.0/0"], 65534, [{"IPProtocol": "tcp", "ports": ["22"]}]),
        ("default-allow-icmp", ["0.0.0.0/0"], 65534, [{"IPProtocol": "icmp"}]),
        ("allow-all", ["0.0.0.0/0"], 1000, [{"IPProtocol": kind} for kind in ("icmp", "tcp", "udp")]),
    ):
        firewall = {"name": f"{name}-{rule}", "network": link, "sourceRanges": ranges, "priority": priority}
        firewall |= {"allowed": allowed, "direction": "INGRESS", "logConfig": {"enable": False}, "description": rule}
        firewall |= {"targetTags": ["allow-health-check"]} if rule == "allow-health-check" else {}
        provider.create("projects/lab/global/firewalls", firewall)


def policy(door: Door) -> dict[str, Any]:
    return door.ok("POST", "/crm/v1/projects/lab:getIamPolicy?alt=json", {"options": {"requestedPolicyVersion": 3}})


def member(door: Door, role: str, who: str, *, there: bool) -> None:
    """google_project_iam_member: read, change, write with the ETag, read again."""
    now = policy(door)
    bindings = [dict(one) for one in now.get("bindings", []) if one["role"] != role]
    others = [m for one in now.get("bindings", []) if one["role"] == role for m in one["members"] if m != who]
    members = [*others, who] if there else others
    bindings += [{"role": role, "members": members}] if members else []
    body = {"policy": {"bindings": bindings, "etag": now["etag"], "version": 3}}
    door.ok("POST", "/crm/v1/projects/lab:setIamPolicy", body | {"updateMask": "bindings,etag,auditConfigs"})
    found = {m for one in policy(door).get("bindings", []) if one["role"] == role for m in one["members"]}
    assert (who in found) is there


def endpoints(provider: Provider) -> str:
    """A regional group of three in all zones of the region, with a health check of its own."""
    zones = [
        one["name"] for one in provider.read("projects/lab/zones?filter=")["items"] if one["region"].endswith(REGION)
    ]
    http = {"port": 80, "requestPath": "/", "proxyHeader": "NONE"}
    check = {"name": "endpoint-http-healthcheck", "type": "HTTP", "httpHealthCheck": http, "checkIntervalSec": 3}
    check |= {"timeoutSec": 2, "healthyThreshold": 1, "unhealthyThreshold": 5, "logConfig": {"enable": False}}
    check = provider.create("projects/lab/global/healthChecks", check)
    disk = {"autoDelete": True, "boot": True, "diskSizeGb": "100", "type": "PERSISTENT"}
    disk["initializeParams"] = {"sourceImage": IMAGE, "diskSizeGb": "100", "diskType": "pd-standard"}
    properties = {"machineType": "n1-standard-1", "disks": [disk], "tags": {"items": ["multinic-endpoint"]}}
    properties["networkInterfaces"] = [{"subnetwork": f"projects/lab/regions/{REGION}/subnetworks/main-general"}]
    properties["scheduling"] = {"automaticRestart": True, "onHostMaintenance": "MIGRATE", "nodeAffinities": [None]}
    properties["serviceAccounts"] = [{"email": "endpoint@lab.iam.gserviceaccount.com", "scopes": [CLOUD_PLATFORM]}]
    properties |= {"labels": LABELS, "metadata": {"items": [{"key": "startup-script", "value": "true"}]}}
    body = {"name": "endpoint20261130", "properties": properties}
    template = provider.create("projects/lab/global/instanceTemplates", body, read_by="number")
    update = {"type": "PROACTIVE", "minimalAction": "REPLACE", "minReadySec": 120, "replacementMethod": ""}
    update |= {"instanceRedistributionType": "PROACTIVE", "mostDisruptiveAllowedAction": None}
    update |= {"maxSurge": {"fixed": 0, "percent": None}, "maxUnavailable": {"fixed": len(zones), "percent": None}}
    group = {"name": "endpoint-mig", "baseInstanceName": "endpoint", "targetSize": 3, "updatePolicy": update}
    group["versions"] = [{"name": "endpoint-mig-version-0", "instanceTemplate": template["selfLink"], "targetSize": {}}]
    group["autoHealingPolicies"] = [{"healthCheck": check["selfLink"], "initialDelaySec": 60}]
    group |= {"listManagedInstancesResults": "PAGELESS", "statefulPolicy": {"preservedState": {}}, "params": {}}
    made = provider.create(f"projects/lab/regions/{REGION}/instanceGroupManagers", group)
    spread = [one["zone"].rpartition("/")[2] for one in made["distributionPolicy"]["zones"]]
    assert spread == zones
    link: str = made["selfLink"]
    return link.partition("/v1/")[2]


@pytest.mark.parametrize("version", ["beta", "v1"])
def test_the_examples_come_up_stay_the_same_and_go(door: Door, version: str) -> None:
    provider = Provider(door, version)
    provider.run("POST", "projects/lab/enableXpnHost")
    assert provider.read("projects/lab")["xpnProjectStatus"] == "HOST"
    for name, octet in (("main", 32), ("transit", 36)):
        network(provider, name, octet)
    accounts = []
    for name in ("multinic", "endpoint"):
        body = {"accountId": name, "serviceAccount": {"displayName": name, "description": "of the example"}}
        accounts.append(door.ok("POST", "/iam/v1/projects/lab/serviceAccounts", body))
        member(door, "roles/logging.logWriter", f"serviceAccount:{accounts[-1]['email']}", there=True)
    member(door, "roles/iap.tunnelResourceAccessor", "group:admins@example.com", there=True)
    group = endpoints(provider)

    # A second plan: what was sent is what is read.
    for path, sent in provider.made:
        kept = {key: value for key, value in sent.items() if key not in ("region", "params")}
        got = provider.read(path)
        assert not differs(kept, got), {key: (value, got.get(key)) for key, value in kept.items()}

    # VMs that never get healthy: what older providers wait for before they delete a group comes with size 0.
    provider.run("POST", f"{group}/resize?size=0")
    for _ in range(2000):
        status = provider.read(group)["status"]
        if status["isStable"]:
            break
        door.wait(10)
    assert status["isStable"] and status["versionTarget"]["isReached"]

    for path, _ in reversed(provider.made):
        if "/routers/" in path:
            provider.run("PATCH", path, {"nats": []})
        provider.run("DELETE", path)
        assert door.refused("GET", provider.base + path)[:2] == (404, "notFound")
    member(door, "roles/iap.tunnelResourceAccessor", "group:admins@example.com", there=False)
    for account in accounts:
        member(door, "roles/logging.logWriter", f"serviceAccount:{account['email']}", there=False)
        door.ok("DELETE", f"/iam/v1/{account['name']}")
        assert door.refused("GET", f"/iam/v1/{account['name']}")[:2] == (404, "NOT_FOUND")
    provider.run("POST", "projects/lab/disableXpnHost")
    left = ("networks", "subnetworks", "instances", "instanceTemplates", "instanceGroupManagers", "routes", "routers")
    assert [key for collection in left for key, _ in door.cloud.store.everywhere(collection)] == []

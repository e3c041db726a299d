"""Reference 1's Terraform module as Google's provider brings it up: the calls of its resources, and what they read.

Which calls those are is known from requests recorded of the provider (7.45). The balancing mode is CONNECTION; the
provider's default since its version 6, UTILIZATION, is refused as by Google.
"""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import pytest

from tests.lab.api.conftest import Door

REGION = "us-west1"
ZONES = ("us-west1-a", "us-west1-b", "us-west1-c")
IMAGE = "projects/centos-cloud/global/images/centos-8-v20200910"
LABELS = {"goog-terraform-provisioned": "true"}
SITES = {"main": ("10.32.0.0/20", "10.36.0.0/20"), "transit": ("10.36.0.0/20", "10.32.0.0/20")}
"""Network → its own range, and the range that lies behind the other one."""


class Provider:
    """Makes, reads and deletes as the provider does: insert, the operation in its own scope, a read."""

    def __init__(self, door: Door, version: str) -> None:
        self.door, self.base = door, f"/compute/{version}/"
        self.url = f"http://127.0.0.1:47000{self.base}"
        self.made: list[tuple[str, dict[str, Any]]] = []  # (path, what was sent), in order

    def create(self, place: str, body: dict[str, Any], read_by: str = "") -> dict[str, Any]:
        operation = self.run("POST", place, body)
        path = f"{place}/{body['name']}"
        self.made.append((path, body))
        if body.get("labels"):
            # Once more after the insert, with the fingerprint that it does not have yet.
            self.run("POST", f"{path}/setLabels", {"labels": body["labels"], "labelFingerprint": ""})
        return self.read(f"{place}/{operation['targetId']}?view=FULL" if read_by == "number" else path)

    def run(self, verb: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = self.door.send(verb, self.base + path, body).json()
        assert "error" not in answer, (verb, path, answer)
        scope = next(
            (f"{name}s/{answer[name].rpartition('/')[2]}" for name in ("zone", "region") if name in answer), None
        )
        done = self.door.ok("GET", f"{self.base}projects/lab/{scope or 'global'}/operations/{answer['name']}?alt=json")
        while done["status"] != "DONE":
            self.door.wait(1)
            done = self.door.ok("GET", f"{self.base}projects/lab/{scope or 'global'}/operations/{answer['name']}")
        assert "error" not in done, done
        assert answer["targetId"].isdigit()
        return done

    def read(self, path: str) -> dict[str, Any]:
        return self.door.ok("GET", self.base + path)


def short(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()[:6]


def template(number: int) -> dict[str, Any]:
    nics = [{"subnetwork": f"projects/lab/regions/{REGION}/subnetworks/{name}-bridge"} for name in SITES]
    disk = {"autoDelete": True, "boot": True, "diskSizeGb": "100", "type": "PERSISTENT"}
    disk["initializeParams"] = {"sourceImage": IMAGE, "diskSizeGb": "100", "diskType": "pd-standard"}
    scripts = {
        "startup-script": "lib",
        "startup-script-config": "c",
        "startup-script-custom": "m",
        "shutdown-script": "s",
    }
    return {
        "name": f"multinic-v3-2026113000000000000000000{number}",
        "properties": {
            "canIpForward": True,
            "disks": [disk],
            "labels": {"role": "multinic-router"} | LABELS,
            "machineType": "n1-highcpu-2",
            "metadata": {"items": [{"key": key, "value": value} for key, value in sorted(scripts.items())]},
            "networkInterfaces": nics,
            "scheduling": {
                "automaticRestart": False,
                "preemptible": True,
                "onHostMaintenance": "TERMINATE",
                "hostErrorTimeoutSeconds": None,
                "nodeAffinities": [None],
                "skipGuestOsShutdown": False,
            },
            "serviceAccounts": [
                {
                    "email": "multinic@lab.iam.gserviceaccount.com",
                    "scopes": ["https://www.googleapis.com/auth/cloud-platform"],
                }
            ],
            "tags": {"items": ["multinic-router", "allow-health-check"]},
        },
    }


def check(name: str, interval: int, timeout: int, unhealthy: int, port: int) -> dict[str, Any]:
    return {
        "name": f"multinic-{name}-{REGION}",
        "type": "HTTP",
        "checkIntervalSec": interval,
        "timeoutSec": timeout,
        "healthyThreshold": 2,
        "unhealthyThreshold": unhealthy,
        "httpHealthCheck": {"port": port, "requestPath": "/status.json", "proxyHeader": "NONE"},
    }


def group(zone: str, template_link: str, health_check: str) -> dict[str, Any]:
    return {
        "name": f"multinic-v3-{short(zone)}",
        "baseInstanceName": "multinic-v3",
        "description": "",
        "autoHealingPolicies": [{"healthCheck": health_check, "initialDelaySec": 60}],
        "namedPorts": [{"name": "hc-health", "port": 9000}, {"name": "hc-traffic", "port": 9001}],
        "targetSize": 0,
        "versions": [{"name": "multinic-v3", "instanceTemplate": template_link, "targetSize": {}}],
        "updatePolicy": {
            "type": "PROACTIVE",
            "minimalAction": "REPLACE",
            "minReadySec": 120,
            "replacementMethod": "",
            "mostDisruptiveAllowedAction": None,
            "maxSurge": {"fixed": 1, "percent": None},
            "maxUnavailable": {"fixed": 0, "percent": None},
        },
        "listManagedInstancesResults": "PAGELESS",
        "instanceLifecyclePolicy": {},
        "params": {},
        "standbyPolicy": {},
        "statefulPolicy": {"preservedState": {}},
        "resourcePolicies": {"workloadPolicy": None},
    }


def service(name: str, groups: list[str], checked_by: str, mode: str = "CONNECTION") -> dict[str, Any]:
    return {
        "name": f"multinic-v3-{name}-{REGION}",
        "region": f"projects/lab/global/regions/{REGION}",
        "network": f"projects/lab/global/networks/{name}",
        "loadBalancingScheme": "INTERNAL",
        "backends": [{"group": one, "balancingMode": mode} for one in groups],
        "connectionDraining": {"drainingTimeoutSec": 300},
        "healthChecks": [checked_by],
        "iap": None,
    }


def networks(provider: Provider) -> None:
    """What the module is given: networks, subnetworks, the routers' account."""
    for name, (own, _) in SITES.items():
        network = {"name": name, "autoCreateSubnetworks": False, "routingConfig": {"routingMode": "GLOBAL"}}
        provider.create("projects/lab/global/networks", network)
        subnet = {"name": f"{name}-bridge", "ipCidrRange": own.replace("/20", "/24"), "privateIpGoogleAccess": True}
        subnet |= {"network": f"projects/lab/global/networks/{name}", "region": f"projects/lab/global/regions/{REGION}"}
        provider.create(f"projects/lab/regions/{REGION}/subnetworks", subnet)
    body = {"accountId": "multinic", "serviceAccount": {"displayName": "multinic"}}
    account = provider.door.ok("POST", "/iam/v1/projects/lab/serviceAccounts", body)
    assert provider.door.ok("GET", f"/iam/v1/{account['name']}?alt=json")["email"] == account["email"]


def module(provider: Provider) -> list[dict[str, Any]]:
    """The regional module, in the order of its dependencies; returns the groups that it made."""
    heal = provider.create("projects/lab/global/healthChecks", check("health", 10, 5, 3, 9000))
    traffic = provider.create("projects/lab/global/healthChecks", check("traffic", 3, 2, 2, 9001))
    image = provider.read(IMAGE)
    assert (image["family"], provider.read("projects/centos-cloud/global/images/family/centos-8")["family"]) == (
        "centos-8",
    ) * 2
    made = provider.create("projects/lab/global/instanceTemplates", template(1), read_by="number")
    groups = []
    for zone in ZONES:
        place = f"projects/lab/zones/{zone}"
        found = provider.create(f"{place}/instanceGroupManagers", group(zone, made["selfLink"], heal["selfLink"]))
        assert found["status"]["versionTarget"]["isReached"] in (True, False)
        assert found["status"]["stateful"]["hasStatefulConfig"] is False
        assert found["status"]["allInstancesConfig"]["effective"] is True
        groups.append(found)
        policy = {"minNumReplicas": 1, "maxNumReplicas": 4, "coolDownPeriodSec": 45, "mode": "ON"}
        policy["cpuUtilization"] = {"utilizationTarget": 0.2, "predictiveMethod": "NONE"}
        target = f"{provider.url}{place}/instanceGroupManagers/{found['name']}"
        autoscaler = {"name": found["name"], "target": target, "autoscalingPolicy": policy}
        provider.create(f"{place}/autoscalers", autoscaler | {"zone": f"projects/lab/global/zones/{zone}"})
    for name, (_, beyond) in SITES.items():
        place = f"projects/lab/regions/{REGION}"
        regional = {"region": f"projects/lab/global/regions/{REGION}"}
        backend = service(name, [one["instanceGroup"] for one in groups], traffic["selfLink"])
        backend = provider.create(f"{place}/backendServices", backend)
        subnetwork = f"{place}/subnetworks/{name}-bridge"
        address = {"name": f"multinic-v3-fwd-{name}-{REGION}", "addressType": "INTERNAL", "subnetwork": subnetwork}
        address = provider.create(f"{place}/addresses", address | regional | {"labels": LABELS})
        rule = {
            "name": f"multinic-v3-{name}-{REGION}",
            "IPAddress": address["address"],
            "allPorts": True,
            "allowGlobalAccess": True,
            "backendService": f"{provider.url}{place}/backendServices/{backend['name']}",
            "loadBalancingScheme": "INTERNAL",
            "network": f"projects/lab/global/networks/{name}",
            "subnetwork": subnetwork,
            "labels": LABELS,
        }
        rule = provider.create(f"{place}/forwardingRules", rule | regional)
        route = {
            "name": f"multinic-v3-{name}-{REGION}-{short(beyond)}",
            "destRange": beyond,
            "priority": 901,
            "network": f"projects/lab/global/networks/{name}",
            "nextHopIlb": rule["selfLink"],
        }
        provider.create("projects/lab/global/routes", route)
    return groups


def differs(sent: Any, got: Any) -> bool:
    """Whether a second plan would see a difference: what was declared is read back, links in any form."""
    if sent in (None, "", [], {}, [None]):
        return False
    if isinstance(sent, dict):
        return any(differs(value, (got or {}).get(key)) for key, value in sent.items())
    if isinstance(sent, list):
        return len(sent) != len(got or []) or any(itertools.starmap(differs, zip(sent, got, strict=True)))
    if isinstance(sent, str) and "projects/" in sent:
        return not str(got).endswith(sent[sent.index("projects/") :].replace("/global/regions/", "/regions/"))
    return bool(sent != (got if got is not None or sent is not False else False))


@pytest.mark.parametrize("version", ["beta", "v1"])
def test_the_module_comes_up_stays_the_same_rolls_and_goes(door: Door, version: str) -> None:
    provider = Provider(door, version)
    networks(provider)
    given = len(provider.made)
    groups = module(provider)

    for path, sent in provider.made[given:]:
        got = provider.read(path)
        # The autoscaler sets the size; places are links of the lab's own.
        read_back = {key: value for key, value in sent.items() if key not in ("targetSize", "region", "zone")}
        assert not differs(read_back, got), (
            path,
            {k: (v, got.get(k)) for k, v in read_back.items() if differs(v, got.get(k))},
        )
    for found in groups:
        assert provider.read(found["selfLink"].partition("/v1/")[2])["targetSize"] == 1

    # Another template: a new one first, then the groups, then the old one goes (create_before_destroy).
    (old,) = (path for path, _ in provider.made if "/instanceTemplates/" in path)
    second = provider.create("projects/lab/global/instanceTemplates", template(2), read_by="number")
    for found in groups:
        path = found["selfLink"].partition("/v1/")[2]
        versions = [{"name": "multinic-v3", "instanceTemplate": second["selfLink"], "targetSize": {}}]
        current = provider.read(path)
        provider.run("PATCH", path, {"fingerprint": current["fingerprint"], "versions": versions})
        assert provider.read(path)["versions"][0]["instanceTemplate"] == second["selfLink"]
    provider.run("DELETE", old)
    newest = provider.made.pop()
    provider.made = [newest if one[0] == old else one for one in provider.made]

    for path, _ in reversed(provider.made):
        provider.run("DELETE", path)
    left = ("networks", "subnetworks", "instances", "instanceTemplates", "instanceGroupManagers", "routes", "disks")
    assert [key for collection in left for key, _ in door.cloud.store.everywhere(collection)] == []


def test_the_providers_default_balancing_mode_is_refused_as_by_google(door: Door) -> None:
    provider = Provider(door, "beta")
    networks(provider)
    traffic = provider.create("projects/lab/global/healthChecks", check("traffic", 3, 2, 2, 9001))
    made = provider.create("projects/lab/global/instanceTemplates", template(1), read_by="number")
    body = group(ZONES[0], made["selfLink"], traffic["selfLink"])
    found = provider.create(f"projects/lab/zones/{ZONES[0]}/instanceGroupManagers", body)
    place = f"{provider.base}projects/lab/regions/{REGION}/backendServices"
    code, reason, message = door.refused(
        "POST", place, service("main", [found["instanceGroup"]], traffic["selfLink"], "UTILIZATION")
    )
    assert (code, reason) == (400, "invalid")
    assert "CONNECTION" in message

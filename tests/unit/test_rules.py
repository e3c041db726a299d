"""Every rule between inputs, and every kind of wrong single value: its path, and what would be right."""

from __future__ import annotations

import copy
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pytest

from multinic import InputError, InputTypeError, MultinicRouter, parsing, rules, testing
from multinic.problems import Problems
from tests.unit.shapes import IMAGE, REGION, ZONES, network, router_args


def put(args: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Sets one input deep inside, given by its path with dots and numbers."""
    args = copy.deepcopy(args)
    *heads, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place: Any = args
    for head in heads:
        place = place[head] if isinstance(head, int) else place.setdefault(head, {})
    place[last] = value
    return args


def problems_of(args: Any) -> list[str]:
    found = Problems()
    parsing.router(args, found)
    return [str(problem) for problem in found.found]


METRIC = "compute.googleapis.com/instance/network/sent_bytes_count"


def schedule(**more: Any) -> dict[str, Any]:
    """One time span of an autoscaler, right but for what is given."""
    return {"name": "day", "schedule": "0 8 * * MON-FRI", "duration_sec": 300, "min_replicas": 2, **more}


# What is set, the rule that it breaks, and the beginning of what is said.
BREACHES: list[tuple[dict[str, Any], str, str]] = [
    ({"networks": [network(0)]}, "network-count", "networks: a router joins two to eight networks, not 1"),
    ({"networks": [network(i) for i in range(9)]}, "network-count", "networks: a router joins two to eight"),
    (
        {"networks": [network(0), network(1, network=network(0)["network"])]},
        "network-distinct",
        "networks[1].network: is the same as networks[0].network",
    ),
    ({"networks.1.network": "net-1"}, "link-form", "networks[1].network: 'net-1' is not a full link; give projects/P/"),
    (
        {"networks.1.subnetwork": "projects/lab/regions/us-west1/subnetworks/s"},
        "subnet-region",
        "networks[1].subnetwork: projects/lab/regions/us-west1/subnetworks/s is not in region us-central1",
    ),
    ({"networks.1.cidrs": []}, "cidr-some", "networks[1].cidrs: is empty"),
    ({"networks.1.cidrs": ["169.254.1.0/24"]}, "cidr-routable", "networks[1].cidrs[0]: 169.254.1.0/24 lies in"),
    ({"networks.1.cidrs": ["35.191.8.0/24"]}, "cidr-routable", "networks[1].cidrs[0]: 35.191.8.0/24 overlaps"),
    ({"networks.1.cidrs": ["10.0.0.0/16"]}, "cidr-once", "networks[1].cidrs[0]: 10.0.0.0/16 is given as networks[0]"),
    (
        {"networks.1.cidrs": ["10.9.0.0/16", "10.9.0.0/16"]},
        "cidr-once",
        "networks[1].cidrs[1]: 10.9.0.0/16 is given twi",
    ),
    (
        {"networks.0.subnet_cidrs": ["10.1.0.0/16"]},
        "cidr-own-subnet",
        "networks[1].cidrs[0]: 10.1.0.0/16 overlaps networks[0].subnet_cidrs[0] (10.1.0.0/16)",
    ),
    (
        {"networks.1.cidrs": ["0.0.0.0/0"]},
        "cidr-nested",
        "networks[1].cidrs[0]: 0.0.0.0/0 overlaps 10.0.0.0/16 of netw",
    ),
    (
        {"networks.0.subnet_cidrs": ["10.7.0.0/24"], "networks.1.subnet_cidrs": ["10.7.0.0/16"]},
        "subnet-apart",
        "networks[1].subnet_cidrs[0]: 10.7.0.0/16 overlaps 10.7.0.0/24 of networks[0]",
    ),
    ({"networks.0.address": "10.0.0.999"}, "address-fits", "networks[0].address: '10.0.0.999' is not an IPv4 address"),
    (
        {"networks.0.address": "fd00::1"},
        "address-fits",
        "networks[0].address: fd00::1 is IPv6; multinic routes IPv4 on",
    ),
    (
        {"networks.0.subnet_cidrs": ["10.0.1.0/24"], "networks.0.address": "10.0.2.5"},
        "address-fits",
        "networks[0].address: 10.0.2.5 is in none of the network's subnets (10.0.1.0/24)",
    ),
    ({"zones": []}, "zone-some", "zones: is empty; give at least one zone such as us-central1-b"),
    (
        {"zones": ["us-central1-ai1a"]},
        "zone-fits",
        "zones[0]: 'us-central1-ai1a' is not an ordinary zone of region us-",
    ),
    ({"zones": [ZONES[0], ZONES[0]]}, "zone-fits", "zones[1]: us-central1-a is given twice"),
    (
        {"machine.type": "e2-small", "networks": [network(i) for i in range(3)]},
        "machine-nics",
        "machine.type: e2-small t",
    ),
    (
        {"machine.type": "c3-standard-8", "networks.1.nic_type": "VIRTIO_NET"},
        "nic-type",
        "networks[1].nic_type: c3 machines have GVNIC only",
    ),
    ({"networks.1.queue_count": 17}, "nic-type", "networks[1].queue_count: 17 queues: GVNIC has at most 16"),
    (
        {"machine.tier_1": True},
        "machine-tier-1",
        "machine.tier_1: n2-highcpu-4 cannot have Tier_1 networking; n2 has it",
    ),
    (
        {"machine.type": "e2-highcpu-4", "machine.tier_1": True},
        "machine-tier-1",
        "machine.tier_1: e2-highcpu-4 cannot ",
    ),
    (
        {"machine.type": "c4-highcpu-4", "machine.disk_type": "pd-ssd"},
        "machine-disk",
        "machine.disk_type: c4 machines have no Persistent Disk; give hyperdisk-balanced",
    ),
    (
        {"machine.disk_type": "pd-balancd"},
        "machine-disk",
        "machine.disk_type: 'pd-balancd' is no type of boot disk; did",
    ),
    ({"machine.confidential": True}, "machine-confidential", "machine.confidential: n2 machines have no AMD SEV"),
    ({"machine.shielded.vtpm": False}, "machine-shielded", "machine.shielded.integrity_monitoring: needs the vTPM"),
    (
        {"machine.spot": True, "health.traffic": {"interval_sec": 10, "timeout_sec": 1, "unhealthy_threshold": 3}},
        "spot-drain",
        "health.traffic.interval_sec: the load balancers need 33 s to notice a leaving router, a Spot VM has 25",
    ),
    (
        {"machine.metadata": {"startup-script": "x"}},
        "metadata",
        "machine.metadata.startup-script: is multinic's own key;",
    ),
    ({"machine.metadata": {"multinic-config": "x"}}, "metadata", "machine.metadata.multinic-config: is multinic's own"),
    ({"machine.metadata": {"a b": "x"}}, "metadata", "machine.metadata.a b: a metadata key is 1 to 127 letters"),
    (
        {"machine.startup_script": "#" * 70_000},
        "metadata-size",
        "machine.startup_script: multinic-user-startup-script is",
    ),
    (
        {"replicas": {"min": 84}},
        "backends",
        "replicas.min: 84 VMs in each of 3 zones; a load balancer takes at most 250",
    ),
    ({"labels": {"Team": "x"}}, "labels", "labels.Team: a label's key is a lower-case letter"),
    ({"labels": {"team": "Blue"}}, "labels", "labels.team: 'Blue': a label's value is"),
    ({"labels": {f"l{i}": "x" for i in range(61)}}, "labels", "labels: 61 labels"),
    ({"replicas": {"min": 0, "max": 4}}, "replicas", "replicas.min: 0 switches the fleet off and has no max"),
    ({"replicas": {"min": 5, "max": 4}}, "replicas", "replicas.max: 4 is less than replicas.min, 5"),
    (
        {"replicas": {"min": 2}, "autoscaler": {"cpu_target": 0.5}},
        "autoscaler-used",
        "autoscaler: has no effect with a fixed number of replicas",
    ),
    (
        {"autoscaler.schedules": [{"name": "d", "schedule": "0 8 * * *", "duration_sec": 300, "min_replicas": 5}]},
        "schedules",
        "autoscaler.schedules[0].min_replicas: 5 is more than replicas.max, 4",
    ),
    (
        {"updates.max_surge": 0},
        "updates",
        "updates.max_surge: 0 together with max_unavailable 0 lets no VM be replaced",
    ),
    ({"access.service_account": "robot"}, "identity", "access.service_account: 'robot' is not the e-mail of a service"),
    ({"access.scopes": ["compute"]}, "identity", "access.scopes[0]: 'compute' is not an OAuth scope"),
    (
        {"health.traffic.timeout_sec": 2},
        "check-timeout",
        "health.traffic.timeout_sec: 2 s is longer than interval_sec, 1",
    ),
    (
        {"health.heal": {"interval_sec": 1, "timeout_sec": 1}},
        "heal-slower",
        "health.heal: re-creates a router after 1 s x 3, the traffic check takes up to 3 s",
    ),
    (
        {"health.heal.initial_delay_sec": 10},
        "initial-delay",
        "health.heal.initial_delay_sec: 10 s is shorter than boot",
    ),
    ({"health.heal.port": 9001}, "check-ports", "health.heal.port: 9001 is the traffic check's port"),
    ({"health.traffic.port": 22}, "check-ports", "health.traffic.port: 22 is SSH"),
    (
        {
            "next_hop.persistence": "ALWAYS_PERSIST",
            "next_hop.tracking_mode": "PER_SESSION",
            "next_hop.session_affinity": "CLIENT_IP",
        },
        "persistence",
        "next_hop.persistence: ALWAYS_PERSIST goes with tracking_mode PER_CONNECTION only",
    ),
    ({"next_hop.tracking_mode": "PER_SESSION"}, "tracking", "next_hop.tracking_mode: PER_SESSION is the same as"),
    (
        {"next_hop.idle_timeout_sec": 600},
        "tracking",
        "next_hop.idle_timeout_sec: can be set with tracking_mode PER_SES",
    ),
    (
        {"next_hop.failover_zones": ["us-central1-f"]},
        "failover",
        "next_hop.failover_zones[0]: 'us-central1-f' is not one",
    ),
    ({"next_hop.failover_zones": ZONES}, "failover", "next_hop.failover_zones: leaves no zone that serves first"),
    ({"next_hop.failover_ratio": 0.5}, "failover", "next_hop.failover_ratio: has no effect without failover_zones"),
    ({"next_hop.stateful": True}, "stateful", "next_hop.persistence: NEVER_PERSIST moves live connections"),
    (
        {
            "next_hop.stateful": True,
            "next_hop.persistence": "DEFAULT_FOR_PROTOCOL",
            "next_hop.session_affinity": "NONE",
        },
        "stateful",
        "next_hop.session_affinity: NONE may hash the two directions to different routers",
    ),
    (
        {"networks.1.network": "global/networks/n"},
        "link-form",
        "networks[1].network: 'global/networks/n' does not say th",
    ),
    (
        {"networks.1.network": "projects/lab/global/networks/Bad_Name"},
        "link-form",
        "networks[1].network: 'projects/lab",
    ),
    ({"networks.1.network": "projects/lab/global/networks/n "}, "link-form", "networks[1].network: 'projects/lab/glo"),
    ({"networks.1.subnetwork": "projects/lab/global/subnetworks/n"}, "link-form", "networks[1].subnetwork: 'projects/"),
    ({"networks.1.subnetwork": network(1)["network"]}, "link-form", "networks[1].subnetwork: 'projects/lab/global/net"),
    (
        {"networks.1.subnetwork": f"projects/other/regions/{REGION}/subnetworks/s"},
        "link-form",
        "networks[1].subnetwork: is in project other, its network in lab",
    ),
    ({"networks.1.project": "other"}, "link-form", "networks[1].project: other is not the network's own project, lab"),
    (
        {"networks.1.network": "https://www.googleapis.com/compute/v1/" + network(0)["network"]},
        "network-distinct",
        "networks[1].network: is the same as networks[0].network",
    ),
    ({"networks.1.cidrs": ["0.0.0.0/8"]}, "cidr-routable", "networks[1].cidrs[0]: 0.0.0.0/8 lies in 0.0.0.0/8"),
    ({"networks.1.cidrs": ["224.0.0.0/3"]}, "cidr-routable", "networks[1].cidrs[0]: 224.0.0.0/3 lies in 224.0.0.0/3"),
    ({"networks.1.cidrs": ["255.255.255.255/32"]}, "cidr-routable", "networks[1].cidrs[0]: 255.255.255.255/32 lies in"),
    ({"networks.1.cidrs": ["199.36.153.4/30"]}, "cidr-routable", "networks[1].cidrs[0]: 199.36.153.4/30 is Google's"),
    (
        {"networks.1.subnet_cidrs": ["10.7.0.0/24", "10.7.0.0/25"]},
        "subnet-apart",
        "networks[1].subnet_cidrs[1]: 10.7.0.0/25 overlaps 10.7.0.0/24 of networks[1]",
    ),
    (
        {"networks.1.subnet_cidrs": ["10.7.0.0/30"]},
        "subnet-apart",
        "networks[1].subnet_cidrs[0]: 10.7.0.0/30: a subnet",
    ),
    ({"networks.1.subnet_cidrs": ["224.0.0.0/24"]}, "subnet-apart", "networks[1].subnet_cidrs[0]: 224.0.0.0/24 overla"),
    ({"networks.0.address": "127.0.0.1"}, "address-fits", "networks[0].address: 127.0.0.1 lies in 127.0.0.0/8"),
    (
        {"networks.0.address": "10.0.0.1/32"},
        "address-fits",
        "networks[0].address: '10.0.0.1/32' is not an IPv4 address",
    ),
    (
        {"networks.0.address": "10.9.0.5", "networks.1.address": "10.9.0.5"},
        "address-fits",
        "networks[1].address: 10.9.0.5 is the address of networks[0] as well",
    ),
    *(
        (
            {"networks.0.subnet_cidrs": ["10.0.1.0/24"], "networks.0.address": f"10.0.1.{last}"},
            "address-fits",
            f"networks[0].address: 10.0.1.{last} is one of the first and last two addresses of 10.0.1.0/24",
        )
        for last in (0, 1, 254, 255)
    ),
    ({"zones": ["us-west1-a"]}, "zone-fits", "zones[0]: 'us-west1-a' is not an ordinary zone of region us-central1"),
    ({"zones": ["us-central1-A"]}, "zone-fits", "zones[0]: 'us-central1-A' is not an ordinary zone of region us-ce"),
    ({"zones": ["us-central1-a\n"]}, "zone-fits", "zones[0]: 'us-central1-a\\n' is not an ordinary zone"),
    ({"machine.type": "n2-highcpu-3"}, "machine-size", "machine.type: n2-highcpu-3 is not one of Google Cloud's; n2 c"),
    ({"machine.type": "n2-highcpu-0"}, "machine-size", "machine.type: n2-highcpu-0 is not one of Google Cloud's"),
    ({"machine.type": "n2-custom-5-4096"}, "machine-size", "machine.type: n2-custom-5-4096: a custom type has one vCP"),
    ({"machine.type": "n2-custom-4-1000"}, "machine-size", "machine.type: n2-custom-4-1000: the memory of a custom"),
    (
        {"machine.image": IMAGE.replace("bookworm", "bookworm-arm64")},
        "machine-image",
        "machine.image: is not for the CPUs of n2 machines; give an image for x86",
    ),
    ({"machine.type": "t2a-standard-4"}, "machine-image", "machine.image: is not for the CPUs of t2a machines; give"),
    (
        {"machine.image": "projects/rocky-linux-cloud/global/images/rocky-linux-9-v20260921", "machine.disk_gb": 10},
        "machine-image",
        "machine.disk_gb: 10 GB is less than the image has; give 20",
    ),
    ({"machine.min_cpu_platform": "Ice Lake"}, "cpu-platform", "machine.min_cpu_platform: 'Ice Lake' is not a CPU pl"),
    ({"machine.min_cpu_platform": "AMD Milan"}, "cpu-platform", "machine.min_cpu_platform: n2 machines have no CPUs "),
    (
        {"machine.type": "e2-highcpu-4", "machine.min_cpu_platform": "Intel Skylake"},
        "cpu-platform",
        "machine.min_cpu_platform: e2 machines take no CPU platform",
    ),
    ({"machine.disk_kms_key": "key"}, "disk-key", "machine.disk_kms_key: 'key' is not a key's name; give projects/P/"),
    ({"machine.tags": ["a", "a"]}, "tags", "machine.tags[1]: a is given twice"),
    ({"machine.tags": [f"t{i}" for i in range(65)]}, "tags", "machine.tags: 65 tags; there can be 64"),
    ({"routes.tags": [f"t{i}" for i in range(257)]}, "tags", "routes.tags: 257 tags; there can be 256"),
    ({"networks.1.queue_count": 9}, "nic-type", "networks: 9 queues in all; n2-highcpu-4 can have two a vCPU, 8"),
    (
        {"machine.type": "e2-highcpu-4", "machine.disk_type": "hyperdisk-balanced"},
        "machine-disk",
        "machine.disk_type: e2 machines have no Hyperdisk; give pd-balanced",
    ),
    (
        {"machine.type": "c3-highcpu-4", "machine.disk_type": "pd-standard"},
        "machine-disk",
        "machine.disk_type: c3 machines boot from pd-balanced, pd-ssd and Hyperdisk only",
    ),
    (
        {"machine.metadata": {"Startup-Script": "x"}},
        "metadata",
        "machine.metadata.Startup-Script: is multinic's own ke",
    ),
    ({"machine.metadata": {"MULTINIC-CONFIG": "x"}}, "metadata", "machine.metadata.MULTINIC-CONFIG: is multinic's own"),
    ({"machine.metadata": {"a\n": "x"}}, "metadata", "machine.metadata.a\\n: a metadata key is 1 to 127 letters"),
    ({"machine.metadata": {"a" * 128: "x"}}, "metadata", f"machine.metadata.{'a' * 128}: a metadata key is 1 to 127"),
    (
        {"machine.metadata": {"tls": "-----BEGIN RSA PRIVATE KEY-----\nMIIE"}},
        "metadata-secret",
        "machine.metadata.tls: holds a private key; everybody who may see the VM",
    ),
    (
        {"machine.startup_script": 'echo \'{"type": "service_account", "private_key": "x"}\''},
        "metadata-secret",
        "machine.startup_script: holds a private key",
    ),
    ({"machine.startup_script": "ü" * 40_000}, "metadata-size", "machine.startup_script: multinic-user-startup-script"),
    (
        {"machine.metadata": {f"k{i}": "x" * 60_000 for i in range(4)}},
        "metadata-size",
        "machine.metadata: all metadata",
    ),
    ({"zones": None, "replicas": {"min": 251}}, "backends", "replicas.min: 251 VMs in a zone; a load balancer takes"),
    ({"labels": {"goog-net": "x"}}, "labels", "labels.goog-net: labels that begin with goog- are Google's"),
    ({"labels": {"é": "x"}}, "labels", "labels.é: a label's key is a lower-case letter"),
    ({"labels": {"a" * 64: "x"}}, "labels", f"labels.{'a' * 64}: a label's key is"),
    ({"labels": {"a": "x" * 64}}, "labels", "labels.a: 'xxx"),
    ({"autoscaler.metrics": [{"name": METRIC}]}, "metrics", "autoscaler.metrics[0]: give either target or single_inst"),
    (
        {"autoscaler.metrics": [{"name": METRIC, "target": 1}, {"name": METRIC, "target": 2}]},
        "metrics",
        f"autoscaler.metrics[1].name: {METRIC} is given twice",
    ),
    ({"standby": {"stopped": 1}, "replicas": {"min": 1}}, "standby", "standby: has no effect with a fixed number of r"),
    ({"standby": {"initial_delay_sec": 90}}, "standby", "standby.initial_delay_sec: has no effect without stopped"),
    (
        {"standby": {"suspended": 1}, "machine.type": "n2d-standard-4", "machine.confidential": True},
        "standby",
        "standby.suspended: a confidential VM cannot be suspended",
    ),
    ({"next_hop.failover_zones": [ZONES[0]] * 2}, "failover", "next_hop.failover_zones[1]: us-central1-a is given tw"),
    ({"next_hop.drop_if_unhealthy": True}, "failover", "next_hop.drop_if_unhealthy: needs failover_zones"),
    ({"next_hop.spillover_ratio": 0.5}, "zonal-affinity", "next_hop.spillover_ratio: has no effect without ZONAL_AF"),
    (
        {
            "next_hop.stateful": True,
            "next_hop.persistence": "DEFAULT_FOR_PROTOCOL",
            "next_hop.zonal_affinity": "ZONAL_AFFINITY_STAY_WITHIN_ZONE",
        },
        "zonal-affinity",
        "next_hop.zonal_affinity: sends the two directions of a connection between two zones to different routers",
    ),
]

# Wrong single values: what is set, and what is said.
WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"networks.1.cidrs": ["10.1.0.5/16"]},
        "networks[1].cidrs[0]: 10.1.0.5/16 has host bits set; did you mean 10.1.0.0/16",
    ),
    ({"networks.1.cidrs": ["10.0.0.0/33"]}, "networks[1].cidrs[0]: '10.0.0.0/33' is not an IPv4 range such as"),
    ({"networks.1.cidrs": ["fd00::/8"]}, "networks[1].cidrs[0]: 'fd00::/8' is IPv6; multinic routes IPv4 only"),
    ({"networks.1.cidrs": "10.1.0.0/16"}, "networks[1].cidrs: must be a list, not '10.1.0.0/16'"),
    ({"networks.1.cidrs": [7]}, "networks[1].cidrs[0]: must be a string, not 7"),
    ({"networks.1.network": None}, "networks[1].network: is required"),
    ({"networks.1.network": 7}, "networks[1].network: must be a string or an Output of one, not 7"),
    ({"networks.1.mtu": 100}, "networks[1].mtu: 100 is outside 1300 to 8896 bytes"),
    ({"networks.1.nic_type": "virtio"}, "networks[1].nic_type: 'virtio' is not one of GVNIC, VIRTIO_NET"),
    ({"networks": {}}, "networks: must be a list, not {}"),
    ({"networks": None}, "networks: is required: give a list"),
    ({"region": "us"}, "region: 'us' is not a region such as us-central1"),
    ({"generation": "V2"}, "generation: 'V2' is not a letter and up to nine more"),
    ({"machine.image": None}, "machine.image: is required: give an exact image such as projects/debian-cloud"),
    ({"machine.image": "debian-cloud/debian-12"}, "machine.image: 'debian-cloud/debian-12' is not an exact image"),
    (
        {"machine.image": "projects/debian-cloud/global/images/family/debian-12"},
        "machine.image: projects/debian-cloud/global/images/family/debian-12 is a family",
    ),
    ({"machine.image_family": "debian-12"}, "machine.image_family: is given together with image"),
    (
        {"machine.image": "projects/centos-cloud/global/images/centos-8-v20200910"},
        "machine.image: centos-8-v20200910: this system has reached its end of life",
    ),
    (
        {"machine.image": "projects/cos-cloud/global/images/cos-125-1-2-3"},
        "machine.image: cos-125-1-2-3: Container-Optimized OS keeps /usr read-only",
    ),
    ({"machine.type": "huge"}, "machine.type: 'huge' is not a machine type such as n2-highcpu-4"),
    ({"machine.spot": "yes"}, "machine.spot: must be true or false, not 'yes'"),
    ({"machine.tags": ["X_Y"]}, "machine.tags[0]: 'X_Y' is not a network tag"),
    ({"machine.metadata": {"a": 1}}, "machine.metadata.a: must be a string (quote it), not 1"),
    ({"machine.tpye": "x"}, "machine.tpye: no such input; did you mean type?"),
    ({"machine.zzzzzz": "x"}, "machine.zzzzzz: no such input; known: clamp_mss, "),
    ({"replicas.min": True}, "replicas.min: must be a whole number, not True"),
    ({"replicas.min": 1.5}, "replicas.min: must be a whole number, not 1.5"),
    ({"autoscaler.cpu_target": 7}, "autoscaler.cpu_target: 7 is outside 0.05 to 1"),
    ({"autoscaler.mode": "SOMETIMES"}, "autoscaler.mode: 'SOMETIMES' is not one of ON, ONLY_SCALE_OUT, OFF"),
    ({"health.traffic.interval_sec": 0}, "health.traffic.interval_sec: 0 is outside 1 to 300 s"),
    ({"health.traffic.port": 99999}, "health.traffic.port: 99999 is outside 1 to 65535"),
    ({"health.heal.initial_delay_sec": 3601}, "health.heal.initial_delay_sec: 3601 is outside 0 to 3600 s"),
    ({"routes.priority": 65536}, "routes.priority: 65536 is outside 0 to 65535"),
    *(
        (
            {"networks.1.cidrs": [text]},
            f"networks[1].cidrs[0]: {text!r} is not an address and a prefix length; did you m",
        )
        for text in ("10.1.0.0", "10.1.0.0/255.255.0.0", "10.1.0.0/0.0.255.255", "10.1.0.0/016", "10.1.0.7")
    ),
    *(
        ({"networks.1.cidrs": [text]}, f"networks[1].cidrs[0]: {text!r} is not an IPv4 range such as 10.1.0.0/16")
        for text in (
            "",
            " 10.1.0.0/16",
            "10.1.0.0/16\n",
            "010.1.0.0/16",
            "10.1/16",
            "10.1.0.0/-1",
            "\u0661\u0660.1.0.0/16",
        )
    ),
    ({"networks.1.cidrs": ["::ffff:10.1.0.0/112"]}, "networks[1].cidrs[0]: '::ffff:10.1.0.0/112' is IPv6"),
    ({"networks.1.cidrs": [None]}, "networks[1].cidrs[0]: must be a string, not None"),
    ({"networks.1.cidrs": {"10.1.0.0/16"}}, "networks[1].cidrs: must be a list, not {'10.1.0.0/16'}"),
    ({"networks.1": None}, "networks[1]: must be a mapping of names to values, not None"),
    ({"networks.1": []}, "networks[1]: must be a mapping of names to values, not []"),
    ({"networks.1.address": ""}, "networks[1].address: is empty; give a string, or leave it out"),
    ({"networks.1.Cidrs": []}, "networks[1].Cidrs: no such input; did you mean cidrs?"),
    ({"networks.1.mtu": float("nan")}, "networks[1].mtu: must be a whole number, not nan"),
    ({"networks.1.mtu": float("inf")}, "networks[1].mtu: must be a whole number, not inf"),
    ({"region": ""}, "region: is empty; give a region such as us-central1"),
    ({"region": "us-central1-a"}, "region: 'us-central1-a' is not a region such as us-central1"),
    ({"region": "us-central1\n"}, "region: 'us-central1\\n' is not a region such as us-central1"),
    ({"project": "Lab"}, "project: 'Lab' is not a project id"),
    ({"generation": "a" * 11}, "generation: 'aaaaaaaaaaa' is not a letter and up to nine more"),
    ({"machine.disk_gb": 10**5000}, "machine.disk_gb: a number of thousands of digits is outside 10 to 65536 GB"),
    ({"machine.disk_gb": "10"}, "machine.disk_gb: must be a whole number, not '10'"),
    ({"machine.spot": 1}, "machine.spot: must be true or false, not 1"),
    ({"machine.tags": ["a" * 64]}, f"machine.tags[0]: {'a' * 64!r} is not a network tag: a name of lower-case letters"),
    ({"machine.tags": ["a\n"]}, "machine.tags[0]: 'a\\n' is not a network tag"),
    ({"machine.metadata": {1: "x"}}, "machine.metadata.1: a key must be a string (quote it), not 1"),
    ({"machine.metadata": {"a": None}}, "machine.metadata.a: must be a string (quote it), not None"),
    ({"machine.metadata": {"a": "\ud800"}}, "machine.metadata.a: holds U+D800, which cannot be sent as text"),
    ({"machine.startup_script": "echo \0"}, "machine.startup_script: holds U+0000, which cannot be sent as text"),
    ({"machine.disk_kms_key": 7}, "machine.disk_kms_key: must be a string or an Output of one, not 7"),
    ({"autoscaler.cpu_target": float("nan")}, "autoscaler.cpu_target: nan is outside 0.05 to 1"),
    ({"autoscaler.cpu_target": True}, "autoscaler.cpu_target: must be a number, not True"),
    ({"autoscaler.schedules": [schedule(name="X_Y")]}, "autoscaler.schedules[0].name: 'X_Y' is not a name of lower-c"),
    ({"autoscaler.schedules": [schedule(schedule="daily")]}, "autoscaler.schedules[0].schedule: is not cron's five fi"),
    (
        {"autoscaler.schedules": [schedule(schedule="60 8 * * *")]},
        "autoscaler.schedules[0].schedule: '60' is no minute",
    ),
    ({"autoscaler.schedules": [schedule(schedule="0 8 * * FOO")]}, "autoscaler.schedules[0].schedule: 'FOO' is no day"),
    ({"autoscaler.schedules": [schedule(schedule="0 9-8 * * *")]}, "autoscaler.schedules[0].schedule: '9-8' is no hou"),
    ({"autoscaler.schedules": [schedule(time_zone="Mars/X")]}, "autoscaler.schedules[0].time_zone: 'Mars/X' is not an"),
    ({"autoscaler.schedules": [schedule(duration_sec=299)]}, "autoscaler.schedules[0].duration_sec: 299 is outside"),
    ({"autoscaler.metrics": [{"name": "bytes", "target": 1}]}, "autoscaler.metrics[0].name: 'bytes' is not a metric's"),
    ({"autoscaler.metrics": [{"name": METRIC, "target": 0}]}, "autoscaler.metrics[0].target: 0 is never reached"),
    ({"standby": {"stopped": 1, "initial_delay_sec": 5}}, "standby.initial_delay_sec: 5 is outside 20 to 3600 s"),
    ({"next_hop.zonal_affinity": "STAY"}, "next_hop.zonal_affinity: 'STAY' is not one of ZONAL_AFFINITY_DISABLED"),
    (
        {"updates.type": "OPPORTUNISTIC", "updates.wait": True},
        "updates.wait: there is nothing to wait for with OPPORTUNISTIC; leave it out",
    ),
    ({"health.traffic.path": "/x"}, "health.traffic.path: no such input; known: healthy_threshold, interval_sec"),
    ({"routes": 5}, "routes: must be a mapping of names to values, not 5"),
]


def changed(change: dict[str, Any]) -> Any:
    args: dict[str, Any] = dict(router_args())
    for path, value in change.items():
        args = put(args, path, value)
    return args


@pytest.mark.parametrize(("change", "rule", "message"), BREACHES, ids=[f"{b[1]}-{i}" for i, b in enumerate(BREACHES)])
def test_rule_is_judged(change: dict[str, Any], rule: str, message: str) -> None:
    found = Problems()
    parsing.router(changed(change), found)
    assert next((p.rule, str(p)[: len(message)]) for p in found.found if p.rule == rule) == (rule, message)


def test_every_rule_is_broken_by_some_test() -> None:
    assert {rule.id for rule in rules.RULES} == {rule for _, rule, _ in BREACHES}


def test_every_rule_says_where_it_comes_from() -> None:
    assert len({rule.id for rule in rules.RULES}) == len(rules.RULES)
    for rule in rules.RULES:
        assert rule.source
        assert rule.demands.endswith(".")


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[" ".join(w[0]) + f"-{i}" for i, w in enumerate(WRONG)])
def test_wrong_value_is_refused_by_path(change: dict[str, Any], message: str) -> None:
    assert [one for one in problems_of(changed(change)) if one.startswith(message)]


def test_one_wrong_value_is_one_problem() -> None:
    # A rule that needs a value which could not be read says nothing about a stand-in.
    for change, _ in WRONG:
        assert len(problems_of(changed(change))) == 1, change


def test_right_inputs_have_no_problem() -> None:
    for count in range(2, 9):
        assert problems_of(router_args(count)) == []


RIGHT: list[dict[str, Any]] = [
    {"networks.1.cidrs": ["10.9.0.7/32", "10.9.1.0/24", "10.9.0.0/16"]},
    {"networks.1.network": "https://www.googleapis.com/compute/v1/projects/lab/global/networks/n"},
    {"networks.1.network": "global/networks/n", "networks.1.project": "lab"},
    {"networks.1.network": f"projects/lab/global/networks/{'n' * 63}"},
    {"project": "example.com:net"},
    {"generation": "a" * 10},
    {"labels": {"a" * 63: "x" * 63}},
    {"machine.tags": ["a" * 63]},
    {"machine.disk_gb": 10.0},
    {"machine.type": "t2a-standard-4", "machine.image": IMAGE.replace("bookworm", "bookworm-arm64")},
    {"machine.type": "c3-standard-8-lssd"},
    {"machine.type": "n2-custom-6-6144"},
    {"machine.type": "z9-highcpu-7"},
    {"machine.image": "projects/rocky-linux-cloud/global/images/rocky-linux-9-v20260921"},
    {"machine.min_cpu_platform": "Intel Ice Lake"},
    {"machine.disk_kms_key": "projects/p/locations/global/keyRings/r/cryptoKeys/k"},
    {"networks.0.subnet_cidrs": ["10.0.1.0/24"], "networks.0.address": "10.0.1.2"},
    {
        "autoscaler.schedules": [
            schedule(schedule="*/15 0,12 1-7 JAN-MAR SUN"),
            schedule(name="night", schedule="0 1 * * 7"),
        ]
    },
    {"autoscaler.metrics": [{"name": METRIC, "target": 1e6, "type": "DELTA_PER_SECOND"}]},
    {"standby": {"stopped": 2, "suspended": 1, "initial_delay_sec": 120}},
    {"next_hop.failover_zones": [ZONES[0]], "next_hop.drop_if_unhealthy": True, "next_hop.failover_ratio": 1},
    {"next_hop.zonal_affinity": "ZONAL_AFFINITY_SPILL_CROSS_ZONE", "next_hop.spillover_ratio": 0.5},
    {"updates.type": "OPPORTUNISTIC"},
    {"zones": None, "replicas.max": 250},
]


@pytest.mark.parametrize("change", RIGHT, ids=[" ".join(change) + f"-{i}" for i, change in enumerate(RIGHT)])
def test_inputs_at_the_edge_are_accepted(change: dict[str, Any]) -> None:
    assert problems_of(changed(change)) == []


def test_boot_disk_is_as_large_as_the_image() -> None:
    image = "projects/rocky-linux-cloud/global/images/rocky-linux-9-v20260921"
    assert parsing.router(router_args(), Problems()).fleet.machine.disk_gb == 10
    assert parsing.router(changed({"machine.image": image}), Problems()).fleet.machine.disk_gb == 20


def test_resource_in_place_of_its_link_is_told_what_to_give() -> None:
    def program() -> None:
        net = gcp.compute.Network("net")
        assert problems_of(changed({"networks.0.network": net})) == [
            "networks[0].network: is a Network; give an output of it, such as its self_link"
        ]

    testing.run(program)


def test_nested_ranges_can_be_allowed() -> None:
    args = changed({"networks.1.cidrs": ["0.0.0.0/0"], "routes.allow_nested_cidrs": True})
    assert problems_of(args) == []


def test_all_problems_come_in_one_error() -> None:
    found = Problems()
    parsing.router(changed({"zones": [], "networks.1.cidrs": ["10.1.0.5/16"], "machine.imgae": IMAGE}), found)
    with pytest.raises(InputError) as caught:
        found.raise_if_any()
    assert isinstance(caught.value, pulumi.InputPropertiesError)
    assert not isinstance(caught.value, TypeError)
    assert str(caught.value).splitlines() == [
        "3 inputs cannot be used:",
        "  networks[1].cidrs[0]: 10.1.0.5/16 has host bits set; did you mean 10.1.0.0/16?",
        "  machine.imgae: no such input; did you mean image?",
        "  zones: is empty; give at least one zone such as us-central1-b, or leave it out to use all of us-central1",
    ]
    assert caught.value.errors
    assert [error["property_path"] for error in caught.value.errors] == [
        "networks[1].cidrs[0]",
        "machine.imgae",
        "zones",
    ]


@pytest.mark.parametrize("path", ["region", "zones", "networks", "networks.0.cidrs", "replicas.min", "machine.image"])
def test_output_in_place_of_a_plain_value_is_a_type_error(path: str) -> None:
    with pytest.raises(InputTypeError, match="is an Output, whose value is known only after deployment") as caught:
        testing.run(lambda: MultinicRouter("router", changed({path: pulumi.Output.from_input("x")})))
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, InputError)


def test_outputs_are_welcome_where_they_are_links() -> None:
    def program() -> None:
        link = pulumi.Output.from_input("projects/host/global/networks/n")
        args = router_args()
        args["networks"][0].update({"network": link, "subnetwork": link, "address": link})
        args["access"] = {"service_account": link}
        found = Problems()
        parsing.router(args, found)
        assert found.found == []

    testing.run(program)

"""What breaks each rule between inputs: what is changed, the rule, and what is said."""

from __future__ import annotations

from typing import Any

from tests.unit.shapes import IMAGE, REGION, ZONES, network
from tests.unit.values import METRIC

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
    ({"networks.1.cidrs": ["224.0.0.0/8"]}, "cidr-routable", "networks[1].cidrs[0]: 224.0.0.0/8 lies in 224.0.0.0/4"),
    ({"networks.1.cidrs": ["255.255.255.255/32"]}, "cidr-routable", "networks[1].cidrs[0]: 255.255.255.255/32 lies in"),
    *(
        ({"networks.1.cidrs": [cidr]}, "cidr-routable", f"networks[1].cidrs[0]: {cidr} overlaps {what}")
        for cidr, what in (
            ("199.36.153.4/30", "Google's own APIs"),
            ("199.36.0.0/16", "Google's own APIs"),
            ("35.235.240.0/24", "35.235.240.0/20, where Identity-Aware Proxy comes from"),
            ("35.199.192.0/20", "35.199.192.0/19, where Cloud DNS forwards from"),
        )
    ),
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
    (
        {"networks.0.address": "10.1.0.5"},
        "address-fits",
        "networks[0].address: 10.1.0.5 is behind networks[1], in its cidrs[0], 10.1.0.0/16; give one of this network's",
    ),
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
    ({"machine.type": "n2-highcpu-3"}, "machine-size", "machine.type: n2-highcpu-3 is not one of Google Cloud's; n2-h"),
    (
        {"machine.type": "f1-micro", "machine.tier_1": True},
        "machine-tier-1",
        "machine.tier_1: f1-micro cannot have Tier_1 networking; n1 has it in no size",
    ),
    (
        {"machine.type": "e2-highmem-32"},
        "machine-size",
        "machine.type: e2-highmem-32 is not one of Google Cloud's; e2-highmem comes with 2, 4, 8, 16 vCPUs",
    ),
    ({"machine.type": "n2-highcpu-0"}, "machine-size", "machine.type: n2-highcpu-0 is not one of Google Cloud's"),
    (
        {"machine.type": "n2-banana-4"},
        "machine-size",
        "machine.type: n2-banana-4 is not one of Google Cloud's; give one",
    ),
    (
        {"machine.type": "t2d-highcpu-4"},
        "machine-size",
        "machine.type: t2d-highcpu-4 is not one of Google Cloud's; giv",
    ),
    (
        {"machine.type": "n2-big"},
        "machine-size",
        "machine.type: n2-big is not one of Google Cloud's; give one such as ",
    ),
    ({"machine.type": "c3-custom-4-8192"}, "machine-size", "machine.type: c3-custom-4-8192: c3 has no custom types; "),
    ({"machine.type": "n2-custom-4-256"}, "machine-size", "machine.type: n2-custom-4-256: a custom type of n2 has 0.5"),
    ({"machine.type": "custom-2-16384"}, "machine-size", "machine.type: custom-2-16384: a custom type of n1 has 0.9 t"),
    ({"machine.type": "n2-custom-0-4096"}, "machine-size", "machine.type: n2-custom-0-4096: a custom type has one v"),
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
    (
        {"machine.clamp_mss": 1421, "networks.1.mtu": 1460},
        "clamp-fits",
        "machine.clamp_mss: 1421 does not fit networks[1].mtu, 1460; give 1420 at most",
    ),
    (
        {"access": {"source_cidrs": ["10.9.0.0/16", "127.0.0.0/8"]}},
        "source-cidrs",
        "access.source_cidrs[1]: 127.0.0.0/8 lies in 127.0.0.0/8, from which",
    ),
    ({"standby": {"stopped": 1}, "replicas": {"min": 1}}, "standby", "standby: has no effect with a fixed number of r"),
    (
        {"standby": {"stopped": 600, "suspended": 397}},
        "standby",
        "standby: 997 VMs and replicas.max, 4, are more than",
    ),
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

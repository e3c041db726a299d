"""Single values, wrong ones with what is said of them, and right ones at the edge."""

from __future__ import annotations

from typing import Any

from tests.unit.shapes import IMAGE, ZONES

METRIC = "compute.googleapis.com/instance/network/sent_bytes_count"


def schedule(**more: Any) -> dict[str, Any]:
    """One time span of an autoscaler, right but for what is given."""
    return {"name": "day", "schedule": "0 8 * * MON-FRI", "duration_sec": 300, "min_replicas": 2, **more}


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
            " 10.1.0.0/16",
            "10.1.0.0/16\n",
            "010.1.0.0/16",
            "10.1/16",
            "10.1.0.0/-1",
            "\u0661\u0660.1.0.0/16",
        )
    ),
    ({"networks.1.cidrs": [""]}, "networks[1].cidrs[0]: is empty; give an IPv4 range such as 10.1.0.0/16"),
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
    {"machine.type": "e2-custom-small-2048"},
    {"machine.type": "n1-megamem-96"},
    {"machine.type": "n2-custom-6-6144"},
    {"machine.type": "n2-custom-2-65536-ext"},
    {"machine.type": "custom-1-1024"},
    {"machine.type": "e2-medium"},
    {"networks.0.address": "10.1.0.5", "networks.0.cidrs": ["10.1.0.0/24"], "routes.allow_nested_cidrs": True},
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

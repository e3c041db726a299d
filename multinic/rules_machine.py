"""Rules of machines, metadata, labels and updates. See `rules` for the columns."""

import re
from collections.abc import Iterable

from multinic import guest_files
from multinic.choices import NicType
from multinic.reading import similar
from multinic.settings import SPOT_DRAIN_SEC, Autoscaled, AutoscalerSettings, Fixed, RouterSettings

_NICS = "https://docs.cloud.google.com/vpc/docs/multiple-interfaces-concepts"
_GENERAL = "https://docs.cloud.google.com/compute/docs/general-purpose-machines"
_METADATA = "https://docs.cloud.google.com/compute/docs/metadata/setting-custom-metadata"
_LABELS = "https://docs.cloud.google.com/compute/docs/labeling-resources"
_UPDATES = "https://docs.cloud.google.com/compute/docs/instance-groups/rolling-out-updates-to-managed-instance-groups"
_SPOT = "https://docs.cloud.google.com/compute/docs/instances/spot"
_BACKENDS = "https://docs.cloud.google.com/load-balancing/docs/backend-service"
_AUTOSCALER = "https://docs.cloud.google.com/compute/docs/autoscaler"
_CONFIDENTIAL = "https://docs.cloud.google.com/confidential-computing/confidential-vm/docs/supported-configurations"

_OURS = re.compile(r"multinic-.*|startup-script(-url)?|shutdown-script(-url)?")

_BOOT_DISKS = ("pd-standard", "pd-balanced", "pd-ssd", "pd-extreme", "hyperdisk-balanced", "hyperdisk-extreme")

Findings = Iterable[tuple[str, str]]


def _nics(settings: RouterSettings) -> Findings:
    machine, count = settings.fleet.machine.parsed_type, len(settings.fleet.networks)
    if machine and count > machine.max_nics:
        yield "machine.type", f"{machine.name} takes {machine.max_nics} NICs, not {count}; give one with more vCPUs"


def _nic_types(settings: RouterSettings) -> Findings:
    machine = settings.fleet.machine.parsed_type
    for i, network in enumerate(settings.fleet.networks):
        path = f"networks[{i}]"
        if network.nic_type is NicType.VIRTIO_NET:
            if machine and machine.gvnic_only:
                yield f"{path}.nic_type", f"{machine.series} machines have GVNIC only"
            if settings.fleet.machine.tier_1:
                yield f"{path}.nic_type", "machine.tier_1 needs GVNIC"
        elif network.queue_count is not None and network.queue_count > 16:
            yield f"{path}.queue_count", f"{network.queue_count} queues: GVNIC has at most 16"


def _tier_1(settings: RouterSettings) -> Findings:
    machine = settings.fleet.machine.parsed_type
    if settings.fleet.machine.tier_1 and machine and machine.facts and machine.vcpus and not machine.tier_1_gbps:
        sizes = ", ".join(map(str, sorted(machine.facts.tier_1)))
        cure = f"{machine.series} has it with {sizes} vCPUs" if sizes else f"{machine.series} has it in no size"
        yield "machine.tier_1", f"{machine.name} cannot have Tier_1 networking; {cure}"


def _disk(settings: RouterSettings) -> Findings:
    machine, disk = settings.fleet.machine.parsed_type, settings.fleet.machine.disk_type
    if disk not in _BOOT_DISKS:
        yield "machine.disk_type", f"{disk!r} is no type of boot disk{similar(disk, _BOOT_DISKS)}"
    if machine and machine.facts and not machine.facts.persistent_disk and disk.startswith("pd-"):
        yield "machine.disk_type", f"{machine.series} machines have no Persistent Disk; give {machine.disk}"


def _confidential(settings: RouterSettings) -> Findings:
    machine = settings.fleet.machine
    kind = machine.parsed_type
    if machine.confidential and kind and kind.series not in ("n2d", "c2d", "c3d", "c4d"):
        yield "machine.confidential", f"{kind.series} machines have no AMD SEV; n2d, c2d, c3d and c4d have it"


def _shielded(settings: RouterSettings) -> Findings:
    if settings.fleet.machine.integrity_monitoring and not settings.fleet.machine.vtpm:
        yield "machine.shielded.integrity_monitoring", "needs the vTPM; set it to false as well"


def _spot_drain(settings: RouterSettings) -> Findings:
    needed = settings.fleet.health.drain_sec
    if settings.fleet.machine.spot and needed > SPOT_DRAIN_SEC:
        yield (
            "health.traffic.interval_sec",
            f"the load balancers need {needed} s to notice a leaving router, a Spot VM has {SPOT_DRAIN_SEC}; "
            "give a shorter interval or a lower unhealthy_threshold",
        )


def _metadata(settings: RouterSettings) -> Findings:
    for key in settings.fleet.machine.metadata:
        path = f"machine.metadata.{key}"
        if _OURS.fullmatch(key):
            cure = "; use machine.startup_script" if key.startswith("startup-script") else ""
            yield path, f"is multinic's own key{cure}"
        elif not re.fullmatch(r"[a-zA-Z0-9_-]{1,127}", key):
            yield path, "a metadata key is 1 to 127 letters, digits, hyphens and underscores"


def _metadata_size(settings: RouterSettings) -> Findings:
    for message in guest_files.oversize(guest_files.render(settings.fleet)):
        script = "multinic-user-startup-script" in message
        yield "machine.startup_script" if script else "machine.metadata", message


def _labels(settings: RouterSettings) -> Findings:
    for key, value in settings.fleet.labels.items():
        if not re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", key):
            yield f"labels.{key}", "a label's key is a lower-case letter and up to 62 of a-z, 0-9, _ and -"
        if not re.fullmatch(r"[a-z0-9_-]{0,63}", value):
            yield f"labels.{key}", f"{value!r}: a label's value is up to 63 of a-z, 0-9, _ and -"
    if len(settings.fleet.labels) > 60:
        yield "labels", f"{len(settings.fleet.labels)} labels; a resource has 64, and the provider needs some"


def _replicas(settings: RouterSettings) -> Findings:
    replicas = settings.fleet.replicas
    if isinstance(replicas, Autoscaled):
        if replicas.min < 1:
            yield "replicas.min", "0 switches the fleet off and has no max; give at least 1 to autoscale"
        if replicas.max < replicas.min:
            yield "replicas.max", f"{replicas.max} is less than replicas.min, {replicas.min}"


def _backends(settings: RouterSettings) -> Findings:
    replicas, zones = settings.fleet.replicas, settings.fleet.zones or ()
    most = replicas.max if isinstance(replicas, Autoscaled) else replicas.size
    if most * len(zones) > 250:
        path = "replicas.max" if isinstance(replicas, Autoscaled) else "replicas.min"
        yield path, f"{most} VMs in each of {len(zones)} zones; a load balancer takes at most 250 in all"


def _autoscaler_used(settings: RouterSettings) -> Findings:
    fixed = isinstance(settings.fleet.replicas, Fixed)
    if fixed and settings.fleet.autoscaler != AutoscalerSettings():
        yield "autoscaler", "has no effect with a fixed number of replicas; give replicas.max, or leave it out"


def _schedules(settings: RouterSettings) -> Findings:
    schedules, replicas = settings.fleet.autoscaler.schedules, settings.fleet.replicas
    names = [schedule.name for schedule in schedules]
    if len(schedules) > 128:
        yield "autoscaler.schedules", f"{len(schedules)} schedules; an autoscaler has at most 128"
    for i, schedule in enumerate(schedules):
        path = f"autoscaler.schedules[{i}]"
        if schedule.name in names[:i]:
            yield f"{path}.name", f"{schedule.name} is given twice"
        if isinstance(replicas, Autoscaled) and schedule.min_replicas > replicas.max:
            yield f"{path}.min_replicas", f"{schedule.min_replicas} is more than replicas.max, {replicas.max}"


def _updates(settings: RouterSettings) -> Findings:
    updates = settings.fleet.updates
    if updates.max_surge == 0 and updates.max_unavailable == 0:
        yield "updates.max_surge", "0 together with max_unavailable 0 lets no VM be replaced; give at least 1"


MACHINE_RULES = (
    ("machine-nics", _NICS, "The machine type takes as many NICs as networks.", ("machine.type", "networks"), _nics),
    ("nic-type", _GENERAL, "NIC type and queues fit the machine.", ("machine", "networks"), _nic_types),
    ("machine-tier-1", _GENERAL, "Tier_1 networking on sizes that have it.", ("machine",), _tier_1),
    ("machine-disk", _GENERAL, "A disk type that the series has.", ("machine",), _disk),
    ("machine-confidential", _CONFIDENTIAL, "Confidential VM on AMD series.", ("machine",), _confidential),
    ("machine-shielded", "instances.insert", "Integrity monitoring has a vTPM.", ("machine.shielded",), _shielded),
    ("spot-drain", _SPOT, "A Spot VM can drain in time.", ("machine.spot", "health.traffic"), _spot_drain),
    ("metadata", _METADATA, "Metadata keys are valid and free.", ("machine",), _metadata),
    ("metadata-size", _METADATA, "Metadata is of bounded size.", ("machine", "networks"), _metadata_size),
    ("backends", _BACKENDS, "A backend service has at most 250 VMs.", ("replicas", "zones"), _backends),
    ("labels", _LABELS, "Valid labels.", ("labels",), _labels),
    ("replicas", _AUTOSCALER, "1 ≤ min ≤ max.", ("replicas",), _replicas),
    (
        "autoscaler-used",
        "an input is never ignored",
        "Numbers for an autoscaler only where there is one.",
        ("replicas", "autoscaler"),
        _autoscaler_used,
    ),
    ("schedules", _AUTOSCALER, "Schedules are distinct and within max.", ("replicas", "autoscaler"), _schedules),
    ("updates", _UPDATES, "An update can go on.", ("updates",), _updates),
)

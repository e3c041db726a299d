"""Rules of machines, metadata, labels and updates. See `rules` for the columns."""

import re
from collections.abc import Iterable, Mapping

from multinic import guest_files, images, machines
from multinic.choices import NicType
from multinic.reading import one_line, shown, similar
from multinic.settings import SPOT_DRAIN_SEC, RouterSettings

_NICS = "https://docs.cloud.google.com/vpc/docs/multiple-interfaces-concepts"
_GENERAL = "https://docs.cloud.google.com/compute/docs/general-purpose-machines"
_IMAGES = "https://docs.cloud.google.com/compute/docs/images/os-details"
_CPUS = "https://docs.cloud.google.com/compute/docs/instances/specify-min-cpu-platform"
_KMS = "https://docs.cloud.google.com/compute/docs/disks/customer-managed-encryption"
_TAGS = "https://docs.cloud.google.com/vpc/docs/add-remove-network-tags"
_METADATA = "https://docs.cloud.google.com/compute/docs/metadata/setting-custom-metadata"
_LABELS = "https://docs.cloud.google.com/compute/docs/labeling-resources"
_UPDATES = "https://docs.cloud.google.com/compute/docs/instance-groups/rolling-out-updates-to-managed-instance-groups"
_SPOT = "https://docs.cloud.google.com/compute/docs/instances/spot"
_CONFIDENTIAL = "https://docs.cloud.google.com/confidential-computing/confidential-vm/docs/supported-configurations"

_IP_AND_TCP = 40
"""Bytes of both headers without options."""

_OURS = re.compile(r"multinic-.*|startup-script(-url)?|shutdown-script(-url)?", re.IGNORECASE)
_SECRET = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\"private_key\"\s*:")
_KMS_KEY = (
    r"projects/[^/\s]+/locations/[a-z0-9-]+/keyRings/[\w-]{1,63}/cryptoKeys/[\w-]{1,63}(?:/cryptoKeyVersions/\d+)?"
)

_BOOT_DISKS = ("pd-standard", "pd-balanced", "pd-ssd", "pd-extreme", "hyperdisk-balanced", "hyperdisk-extreme")

Findings = Iterable[tuple[str, ...]]


def _nics(settings: RouterSettings) -> Findings:
    machine, count = settings.fleet.machine.parsed_type, len(settings.fleet.networks)
    if machine and count > machine.max_nics:
        yield "machine.type", f"{machine.name} takes {machine.max_nics} NICs, not {count}; give one with more vCPUs"


def _machine_size(settings: RouterSettings) -> Findings:
    machine = settings.fleet.machine.parsed_type
    if machine is None:
        return
    if machine.memory_mb is not None:
        if machine.series in machines.NO_CUSTOM:
            yield "machine.type", f"{machine.name}: {machine.series} has no custom types; give a predefined one"
        if not machine.vcpus or (machine.vcpus != 1 and machine.vcpus % 2):
            yield "machine.type", f"{machine.name}: a custom type has one vCPU or an even number of them"
        if machine.memory_mb % 256 or not machine.memory_mb:
            yield "machine.type", f"{machine.name}: the memory of a custom type is a multiple of 256 MB"
        yield from _custom_memory(machine, machine.memory_mb)
    elif not machine.is_known_kind:
        yield (
            "machine.type",
            f"{machine.name} is not one of Google Cloud's; give one such as {machine.series}-standard-4",
        )
    elif machine.sizes and machine.vcpus not in machine.sizes:
        sizes = ", ".join(map(str, machine.sizes))
        kind = machine.name.rpartition("-")[0]
        yield "machine.type", f"{machine.name} is not one of Google Cloud's; {kind} comes with {sizes} vCPUs"


def _custom_memory(machine: machines.Machine, memory_mb: int) -> Findings:
    least, most = (bound * 1024 * (machine.vcpus or 0) for bound in machines.CUSTOM_GB.get(machine.series, (0, 1e9)))
    if memory_mb < least or (memory_mb > most and not machine.name.endswith("-ext")):
        low, high = machines.CUSTOM_GB[machine.series]
        yield "machine.type", f"{machine.name}: a custom type of {machine.series} has {low:g} to {high:g} GB a vCPU"


def _image_fits(settings: RouterSettings) -> Findings:
    machine = settings.fleet.machine
    image, kind = machine.image or machine.image_family, machine.parsed_type
    path = "machine.image" if machine.image else "machine.image_family"
    if kind and kind.facts and images.is_public(image) and images.is_arm(image) != kind.facts.arm:
        wanted = "arm64" if kind.facts.arm else "x86"
        yield path, f"is not for the CPUs of {kind.series} machines; give an image for {wanted}"
    if machine.disk_gb < images.least_disk_gb(image):
        yield "machine.disk_gb", f"{machine.disk_gb} GB is less than the image has; give {images.least_disk_gb(image)}"


def _cpu_platform(settings: RouterSettings) -> Findings:
    platform, machine = settings.fleet.machine.min_cpu_platform, settings.fleet.machine.parsed_type
    if not platform:
        return
    vendor = platform.split(" ")[0]
    if vendor not in machines.CPU_VENDORS or not re.fullmatch(r"\w+( \w+)+", platform):
        yield "machine.min_cpu_platform", f"{shown(platform)} is not a CPU platform such as Intel Ice Lake"
    elif machine and machine.series == "e2":
        yield "machine.min_cpu_platform", "e2 machines take no CPU platform; leave it out"
    elif machine and machine.facts and machine.series not in machines.CPU_VENDORS[vendor]:
        yield "machine.min_cpu_platform", f"{machine.series} machines have no CPUs of {vendor}"


def _disk_key(settings: RouterSettings) -> Findings:
    key = settings.fleet.machine.disk_kms_key
    if isinstance(key, str) and key and not re.fullmatch(_KMS_KEY, key):
        form = "projects/P/locations/L/keyRings/R/cryptoKeys/K"
        yield "machine.disk_kms_key", f"{shown(key)} is not a key's name; give {form}"


def _tags(settings: RouterSettings) -> Findings:
    for path, tags, most in (
        ("machine.tags", settings.fleet.machine.tags, 64),
        ("routes.tags", settings.routes.tags, 256),
    ):
        if len(tags) > most:
            yield path, f"{len(tags)} tags; there can be {most}"
        for i, tag in enumerate(tags):
            if tag in tags[:i]:
                yield f"{path}[{i}]", f"{tag} is given twice"


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
            yield f"{path}.queue_count", f"{network.queue_count} queues: GVNIC has at most 16", f"{path}.nic_type"
    queues = sum(network.queue_count or 0 for network in settings.fleet.networks)
    if machine and machine.vcpus and queues > 2 * machine.vcpus:
        yield "networks", f"{queues} queues in all; {machine.name} can have two a vCPU, {2 * machine.vcpus}"


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
    if machine and machine.series in machines.NO_HYPERDISK and disk.startswith("hyperdisk-"):
        yield "machine.disk_type", f"{machine.series} machines have no Hyperdisk; give {machine.disk}"
    if machine and machine.series in ("c3", "c3d") and disk in ("pd-standard", "pd-extreme"):
        yield "machine.disk_type", f"{machine.series} machines boot from pd-balanced, pd-ssd and Hyperdisk only"


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
            "health.traffic.unhealthy_threshold",
        )


def _metadata(settings: RouterSettings) -> Findings:
    for key in settings.fleet.machine.metadata:
        path = f"machine.metadata.{one_line(key)}"
        if _OURS.fullmatch(key):
            cure = "; use machine.startup_script" if key.lower().startswith("startup-script") else ""
            yield path, f"is multinic's own key{cure}"
        elif not re.fullmatch(r"[a-zA-Z0-9_-]{1,127}", key):
            yield path, "a metadata key is 1 to 127 letters, digits, hyphens and underscores"


def _metadata_size(settings: RouterSettings) -> Findings:
    for message in guest_files.oversize(guest_files.render(settings.fleet)):
        script = "multinic-user-startup-script" in message
        yield "machine.startup_script" if script else "machine.metadata", message


def _metadata_secret(settings: RouterSettings) -> Findings:
    machine = settings.fleet.machine
    texts = {f"machine.metadata.{one_line(key)}": value for key, value in machine.metadata.items()}
    for path, text in {**texts, "machine.startup_script": machine.startup_script}.items():
        if _SECRET.search(text):
            yield (
                path,
                "holds a private key; everybody who may see the VM, and every program on it, can read metadata. "
                "Keep it in Secret Manager and let the VM fetch it",
            )


def _clamp(settings: RouterSettings) -> Findings:
    clamp = settings.fleet.machine.clamp_mss
    for i, network in enumerate(settings.fleet.networks):
        if clamp is not None and network.mtu is not None and clamp > network.mtu - _IP_AND_TCP:
            most = network.mtu - _IP_AND_TCP
            yield "machine.clamp_mss", f"{clamp} does not fit networks[{i}].mtu, {network.mtu}; give {most} at most"


def judge_labels(labels: Mapping[str, str]) -> Findings:
    """Judges labels; the other components ask as well."""
    for key, value in labels.items():
        path = f"labels.{one_line(key)}"
        if not re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", key):
            yield path, "a label's key is a lower-case letter and up to 62 of a-z, 0-9, _ and -"
        elif key.startswith("goog-"):
            yield path, "labels that begin with goog- are Google's and the provider's own"
        if not re.fullmatch(r"[a-z0-9_-]{0,63}", value):
            yield path, f"{shown(value)}: a label's value is up to 63 of a-z, 0-9, _ and -"
    if len(labels) > 60:
        yield "labels", f"{len(labels)} labels; a resource has 64, and the provider needs some"


def _labels(settings: RouterSettings) -> Findings:
    return judge_labels(settings.fleet.labels)


def _updates(settings: RouterSettings) -> Findings:
    updates = settings.fleet.updates
    if updates.max_surge == 0 and updates.max_unavailable == 0:
        message = "0 together with max_unavailable 0 lets no VM be replaced; give at least 1"
        yield "updates.max_surge", message, "updates.max_unavailable"


MACHINE_RULES = (
    ("machine-nics", _NICS, "The machine type takes as many NICs as networks.", _nics),
    ("machine-size", _GENERAL, "A size that the series comes in.", _machine_size),
    ("machine-image", _IMAGES, "The image fits CPU and disk.", _image_fits),
    ("cpu-platform", _CPUS, "A CPU platform that the series has.", _cpu_platform),
    ("disk-key", _KMS, "A key of Cloud KMS.", _disk_key),
    ("tags", _TAGS, "Each tag once, not too many.", _tags),
    ("nic-type", _GENERAL, "NIC type and queues fit the machine.", _nic_types),
    ("machine-tier-1", _GENERAL, "Tier_1 networking on sizes that have it.", _tier_1),
    ("machine-disk", _GENERAL, "A disk type that the series has.", _disk),
    ("machine-confidential", _CONFIDENTIAL, "Confidential VM on AMD series.", _confidential),
    ("machine-shielded", "instances.insert", "Integrity monitoring has a vTPM.", _shielded),
    ("clamp-fits", "RFC 9293, 3.7.1", "A segment fits the MTU.", _clamp),
    ("spot-drain", _SPOT, "A Spot VM can drain in time.", _spot_drain),
    ("metadata", _METADATA, "Metadata keys are valid and free.", _metadata),
    ("metadata-secret", _METADATA, "Metadata holds no secret.", _metadata_secret),
    ("metadata-size", _METADATA, "Metadata is of bounded size.", _metadata_size),
    ("labels", _LABELS, "Valid labels.", _labels),
    ("updates", _UPDATES, "An update can go on.", _updates),
)

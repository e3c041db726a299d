"""Machine types: what each series can do, as far as a router cares.

Bandwidth is what Google calls egress bandwidth "up to", per VM and not per NIC; a router sends each byte once.
https://docs.cloud.google.com/compute/docs/general-purpose-machines (read 2026), and for C2D the page on
compute-optimized machines. Series not listed here are accepted, and Google Cloud decides.
"""

import re
from dataclasses import dataclass

VCPUS_PER_GBPS = 0.046
"""vCPUs that forwarding 1 Gbit/s in packets of 1460 bytes takes: 22 to 24 % of two at 10 Gbit/s (n1-highcpu-2, 2020).

docs/AUTOSCALER.md of terraform-google-multinic. Newer CPUs take less; packets count, so small ones take more.
"""
CPU_TARGET_AT_CAP = 0.2 / 0.23
"""CPU target of an autoscaler, as a share of what the cap costs: the same source's 0.2 of 0.23."""
LEAST_CPU_TARGET = 0.05
"""Below it a VM's own programs decide, and not what it forwards."""
USUAL_CPU_TARGET = 0.2
"""Where the machine type's cap is not known."""

SHARED_CORE = {"e2-micro": 2, "e2-small": 2, "e2-medium": 2, "f1-micro": 1, "g1-small": 1}
_SHARED_CORE_GBPS = {"e2-micro": 1, "e2-small": 1, "e2-medium": 2, "f1-micro": 1, "g1-small": 1}


@dataclass(frozen=True)
class Series:
    """What is known of a machine series.

    Attributes:
        gbps: vCPUs → Gbit/s that one VM may send.
        tier_1: vCPUs → Gbit/s with Tier_1 networking; sizes not in it cannot have it.
        gvnic_only: virtio-net is not offered.
        disk: The least costly disk type that a boot disk of this series may have.
        persistent_disk: Persistent Disk is offered, not Hyperdisk only.
        arm: Its CPUs are Arm's, so that it boots images for arm64 only.
    """

    gbps: dict[int, int]
    tier_1: dict[int, int]
    gvnic_only: bool = False
    disk: str = "pd-balanced"
    persistent_disk: bool = True
    arm: bool = False


_HYPERDISK = "hyperdisk-balanced"

NO_HYPERDISK = ("c2", "c2d", "e2", "n1", "t2a")
"""Series without any Hyperdisk. https://docs.cloud.google.com/compute/docs/disks/hyperdisks"""

NO_CUSTOM = ("c2", "c2d", "c3", "c3d", "c4", "c4a", "c4d", "t2a", "t2d")
"""Series without custom types. https://docs.cloud.google.com/compute/docs/instances/creating-instance-with-custom-machine-type"""

CUSTOM_GB = {"e2": (0.5, 8), "n1": (0.9, 6.5), "n2": (0.5, 8), "n2d": (0.5, 8)}
"""GB of memory a vCPU that a custom type has at least and, if it does not end in -ext, at most; from the same page."""

ABSENT = {"e2-highmem": {32}, "n1-highcpu": {1}, "n1-highmem": {1}, "n2-highcpu": {128}, "n2d-highmem": {128, 224}}
"""Kind of type → sizes of its series that it does not come in. https://cloud.google.com/compute/docs/machine-resource"""

CPU_VENDORS = {
    "Intel": ("c2", "c3", "c4", "n1", "n2", "n4"),
    "AMD": ("c2d", "c3d", "c4d", "n2d", "n4d", "t2d"),
    "Ampere": ("t2a",),
    "Google": ("c4a", "n4a"),
}
"""First word of a CPU platform → series with such CPUs. https://docs.cloud.google.com/compute/docs/cpu-platforms"""

SERIES: dict[str, Series] = {
    "e2": Series({2: 4, 4: 8, 8: 16, 16: 16, 32: 16}, {}),
    "n1": Series({1: 2, 2: 10, 4: 10, 8: 16, 16: 32, 32: 32, 64: 32, 96: 32}, {}),
    "n2": Series(
        {2: 10, 4: 10, 8: 16, 16: 32, 32: 32, 48: 32, 64: 32, 80: 32, 96: 32, 128: 32},
        {32: 50, 48: 50, 64: 75, 80: 100, 96: 100, 128: 100},
    ),
    "n2d": Series(
        {2: 10, 4: 10, 8: 16, 16: 32, 32: 32, 48: 32, 64: 32, 80: 32, 96: 32, 128: 32, 224: 32},
        {48: 50, 64: 50, 80: 50, 96: 100, 128: 100, 224: 100},
    ),
    "n4": Series({2: 10, 4: 10, 8: 16, 16: 32, 32: 32, 48: 32, 64: 45, 80: 50}, {}, True, _HYPERDISK, False),
    "n4d": Series({2: 10, 4: 10, 8: 16, 16: 32, 32: 32, 48: 32, 64: 45, 80: 50, 96: 50}, {}, True, _HYPERDISK, False),
    "n4a": Series({1: 10, 2: 10, 4: 10, 8: 16, 16: 32, 32: 32, 48: 32, 64: 50}, {}, True, _HYPERDISK, False, True),
    "c3": Series({4: 23, 8: 23, 22: 23, 44: 32, 88: 62, 176: 100}, {44: 50, 88: 100, 176: 200}, True),
    "c3d": Series(
        {4: 20, 8: 20, 16: 20, 30: 20, 60: 40, 90: 60, 180: 100, 360: 100},
        {30: 50, 60: 75, 90: 100, 180: 150, 360: 200},
        True,
    ),
    "c4": Series(
        {2: 10, 4: 23, 8: 23, 16: 23, 24: 23, 32: 23, 48: 34, 96: 67, 144: 100, 192: 100, 288: 100},
        {48: 50, 96: 100, 144: 150, 192: 200, 288: 200},
        True,
        _HYPERDISK,
        False,
    ),
    "c4d": Series(
        {2: 10, 4: 20, 8: 20, 16: 20, 32: 23, 48: 34, 64: 45, 96: 67, 192: 100, 384: 100},
        {48: 50, 64: 75, 96: 100, 192: 150, 384: 200},
        True,
        _HYPERDISK,
        False,
    ),
    "c4a": Series(
        {1: 10, 2: 10, 4: 23, 8: 23, 16: 23, 32: 23, 48: 34, 64: 45, 72: 50},
        {32: 50, 48: 50, 64: 75, 72: 100},
        True,
        _HYPERDISK,
        False,
        True,
    ),
    "t2d": Series({1: 10, 2: 10, 4: 10, 8: 16, 16: 32, 32: 32, 48: 32, 60: 32}, {}),
    "t2a": Series({1: 10, 2: 10, 4: 10, 8: 16, 16: 32, 32: 32, 48: 32}, {}, True, arm=True),
    "c2d": Series({2: 10, 4: 10, 8: 16, 16: 32, 32: 32, 56: 32, 112: 32}, {32: 50, 56: 50, 112: 100}),
}


@dataclass(frozen=True)
class Machine:
    """A machine type, taken apart.

    Attributes:
        name: As given, such as n2-highcpu-4.
        series: Its series, such as n2.
        vcpus: Number of vCPUs; None if the name does not tell.
        memory_mb: Memory of a custom type in MB; None for any other.
    """

    name: str
    series: str
    vcpus: int | None
    memory_mb: int | None = None

    @property
    def facts(self) -> Series | None:
        """What is known of its series."""
        return SERIES.get(self.series)

    @property
    def gbps(self) -> int | None:
        """Gbit/s that one VM may send, None if not known."""
        if self.name in _SHARED_CORE_GBPS:
            return _SHARED_CORE_GBPS[self.name]
        return self.facts.gbps.get(self.vcpus) if self.facts and self.vcpus else None

    @property
    def tier_1_gbps(self) -> int | None:
        """Gbit/s with Tier_1 networking; None if this machine cannot have it or it is not known."""
        return self.facts.tier_1.get(self.vcpus) if self.facts and self.vcpus else None

    def cap(self, *, tier_1: bool) -> int | None:
        """Gbit/s that one VM may send, with Tier_1 networking or without; None if not known."""
        return (self.tier_1_gbps if tier_1 else None) or self.gbps

    def cpu(self, gbps: float) -> float | None:
        """Share of its CPU that forwarding so much takes; None if its number of vCPUs is not known."""
        return gbps * VCPUS_PER_GBPS / self.vcpus if self.vcpus else None

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """Numbers of vCPUs that this kind of type comes in; None where the list is not known to be whole.

        Custom types, shared cores and types with more behind the number (lssd, metal) have sizes of their own.
        """
        plain = re.fullmatch(r"[a-z0-9]+-(?:standard|highcpu|highmem)-\d+", self.name)
        absent = ABSENT.get(self.name.rpartition("-")[0], set())
        return tuple(sorted(self.facts.gbps.keys() - absent)) if self.facts and plain else None

    @property
    def is_known_kind(self) -> bool:
        """Whether the series comes in this ratio of memory to CPU; true where that is not known."""
        kinds = ("standard",) if self.series in ("t2a", "t2d") else ("standard", "highcpu", "highmem")
        others = (*SHARED_CORE, "n1-megamem-96")
        shared_custom = re.fullmatch(r"e2-custom-(micro|small|medium)-\d+", self.name)
        return self.facts is None or self.name in others or bool(shared_custom) or self.name.split("-")[1] in kinds

    @property
    def max_nics(self) -> int:
        """How many NICs a VM of this type takes: two up to 2 vCPUs, else one a vCPU, at most eight.

        Most types take ten today, multinic supports eight.
        https://docs.cloud.google.com/vpc/docs/multiple-interfaces-concepts
        """
        return 8 if self.vcpus is None else max(2, min(8, self.vcpus))

    @property
    def disk(self) -> str:
        """Type of boot disk when none is given."""
        return self.facts.disk if self.facts else "pd-balanced"

    @property
    def gvnic_only(self) -> bool:
        """Whether virtio-net is not offered."""
        return self.facts.gvnic_only if self.facts else False


def cpu_target(share: float | None) -> float:
    """Returns the CPU target with which an autoscaler acts before a VM is at its cap.

    Args:
        share: Share of the CPU that forwarding at the cap takes; None if not known.
    """
    if share is None:
        return USUAL_CPU_TARGET
    return max(LEAST_CPU_TARGET, min(0.9, round(share * CPU_TARGET_AT_CAP, 2)))


def parse(name: str) -> Machine | None:
    """Takes a machine type's name apart; None if it is not one.

    Knows predefined (n2-highcpu-4, c3-standard-8-lssd), custom (n2-custom-4-8192-ext, custom-2-4096) and shared-core
    types (e2-micro).
    """
    if name in SHARED_CORE:
        return Machine(name, "e2" if name.startswith("e2-") else "n1", SHARED_CORE[name])
    if found := re.fullmatch(r"(?:([a-z]+\d+[a-z]*)-)?custom-(\d{1,4})-(\d{1,8})(?:-ext)?", name):
        return Machine(name, found[1] or "n1", int(found[2]), int(found[3]))
    if found := re.fullmatch(r"([a-z]+\d+[a-z]*)-[a-z]+-(\d{1,4})(?:-[a-z]+)*", name):
        return Machine(name, found[1], int(found[2]))
    if found := re.fullmatch(r"([a-z]+\d+[a-z]*)(?:-[a-z0-9]+)+", name):
        return Machine(name, found[1], None)
    return None

"""What Google Cloud has by itself: zones and regions, machine types, images. The lab's own small selection.

Zones and regions: https://cloud.google.com/compute/docs/regions-zones. Machine types:
https://cloud.google.com/compute/docs/general-purpose-machines. Public images:
https://cloud.google.com/compute/docs/images/os-details. An image with an exact name exists when
the name has the form of its family; which one is a family's newest is made up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import bandwidth

ZONES = (
    "europe-west1-b",
    "europe-west1-c",
    "europe-west1-d",
    "us-central1-a",
    # An AI zone, as look-ups of "all zones" meet them: https://cloud.google.com/compute/docs/regions-zones/ai-zones
    "us-central1-ai1a",
    "us-central1-b",
    "us-central1-c",
    "us-central1-f",
    # There is no us-east1-a.
    "us-east1-b",
    "us-east1-c",
    "us-east1-d",
    "us-west1-a",
    "us-west1-b",
    "us-west1-c",
    "us-west2-a",
    "us-west2-b",
    "us-west2-c",
)
REGIONS = ("europe-west1", "us-central1", "us-east1", "us-west1", "us-west2")


@dataclass(frozen=True)
class MachineType:
    """A machine type. `memory` in MB."""

    name: str
    cpus: int
    memory: int

    @property
    def nics(self) -> int:
        """How many NICs it takes: 2 up to 2 vCPUs, then one a vCPU, at most 10.

        https://cloud.google.com/vpc/docs/multiple-interfaces-concepts#max-interfaces
        """
        return max(2, min(self.cpus, 10))

    def egress(self, *, tier_1: bool = False) -> float:
        """Greatest egress in Gbit/s; see `bandwidth.egress`."""
        return bandwidth.egress(self.name, self.cpus, tier_1=tier_1)


_GB_PER_CPU = {"highcpu": 1.0, "standard": 4.0, "highmem": 8.0}
_SERIES = {
    "n1": ({"highcpu": 0.9, "standard": 3.75, "highmem": 6.5}, (1, 2, 4, 8, 16, 32, 64, 96)),
    "n2": (_GB_PER_CPU, (2, 4, 8, 16, 32, 48, 64, 80, 96, 128)),
    "n2d": (_GB_PER_CPU, (2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 224)),
    "n4": ({"highcpu": 2.0, "standard": 4.0, "highmem": 8.0}, (2, 4, 8, 16, 32, 48, 64, 80)),
    "e2": (_GB_PER_CPU, (2, 4, 8, 16, 32)),
    "c2": ({"standard": 4.0}, (4, 8, 16, 30, 60)),
    "c2d": ({"highcpu": 2.0, "standard": 4.0, "highmem": 8.0}, (2, 4, 8, 16, 32, 56, 112)),
    "c3": ({"highcpu": 2.0, "standard": 4.0, "highmem": 8.0}, (4, 8, 22, 44, 88, 176)),
    "c3d": ({"highcpu": 2.0, "standard": 4.0, "highmem": 8.0}, (4, 8, 16, 30, 60, 90, 180, 360)),
    "c4": ({"highcpu": 2.0, "standard": 3.75, "highmem": 7.75}, (2, 4, 8, 16, 24, 32, 48, 96, 144, 192, 288)),
    "c4d": ({"highcpu": 1.875, "standard": 3.875, "highmem": 7.875}, (2, 4, 8, 16, 32, 48, 64, 96, 192, 384)),
    "t2d": ({"standard": 4.0}, (1, 2, 4, 8, 16, 32, 48, 60)),
    "n4d": ({"highcpu": 2.0, "standard": 4.0, "highmem": 8.0}, (2, 4, 8, 16, 32, 48, 64, 80, 96)),
    # Arm; the lab's guests run on what CPU there is.
    "c4a": ({"highcpu": 2.0, "standard": 4.0, "highmem": 8.0}, (1, 2, 4, 8, 16, 32, 48, 64, 72)),
    "n4a": ({"highcpu": 2.0, "standard": 4.0, "highmem": 8.0}, (1, 2, 4, 8, 16, 32, 48, 64)),
    "t2a": ({"standard": 4.0}, (1, 2, 4, 8, 16, 32, 48)),
}
_ABSENT = {"e2-highmem-32", "n1-highcpu-1", "n1-highmem-1", "n2-highcpu-128", "n2d-highmem-128", "n2d-highmem-224"}
_SHARED = {"e2-micro": 1024, "e2-small": 2048, "e2-medium": 4096, "f1-micro": 614, "g1-small": 1740}


def _machine_types() -> dict[str, MachineType]:
    found = {name: MachineType(name, 1 if name[0] in "fg" else 2, memory) for name, memory in _SHARED.items()}
    for series, (classes, sizes) in _SERIES.items():
        for shape, memory in classes.items():
            for cpus in sizes:
                name = f"{series}-{shape}-{cpus}"
                if name not in _ABSENT:
                    found[name] = MachineType(name, cpus, int(cpus * memory * 1024))
    return found


MACHINE_TYPES = _machine_types()
_CUSTOM = re.compile(
    r"(?:(?:n1|n2|n2d|n4|n4d|e2)-)?custom-(\d{1,3})-(\d{1,7})(?:-ext)?|e2-custom-(?:micro|small|medium)-(\d{1,5})"
)


def machine_type(name: str) -> MachineType | None:
    """Returns a machine type, predefined or custom; None if there is none of that name.

    https://cloud.google.com/compute/docs/instances/creating-instance-with-custom-machine-type
    """
    if name in MACHINE_TYPES or not (found := _CUSTOM.fullmatch(name)):
        return MACHINE_TYPES.get(name)
    cpus, memory = int(found[1] or 2), int(found[2] or found[3])
    return MachineType(name, cpus, memory) if cpus and memory and not memory % 256 else None


_FAMILIES = {
    "debian-cloud": {
        "debian-12": "debian-12-bookworm",
        "debian-12-arm64": "debian-12-bookworm-arm64",
        "debian-13": "debian-13-trixie",
        "debian-13-arm64": "debian-13-trixie-arm64",
    },
    "ubuntu-os-cloud": {
        "ubuntu-2204-lts": "ubuntu-2204-jammy",
        "ubuntu-2404-lts-amd64": "ubuntu-2404-noble-amd64",
        "ubuntu-2404-lts-arm64": "ubuntu-2404-noble-arm64",
    },
    "rocky-linux-cloud": {
        name: name
        for version in ("8", "9", "10")
        for name in (f"rocky-linux-{version}", f"rocky-linux-{version}-optimized-gcp")
    },
    # centos-8 has reached its end of life; reference 1's module asks for it by default.
    "centos-cloud": {name: name for name in ("centos-8", "centos-stream-9", "centos-stream-10")},
}
IMAGE_PROJECTS = tuple(_FAMILIES)
IMAGE_GB = 10
"""Size of every image's disk in the lab; Rocky's and CentOS' have 20 on Google Cloud."""
NEWEST = "v20261101"
"""Version that a family resolves to in the lab."""


@dataclass(frozen=True)
class Image:
    """A public image."""

    project: str
    name: str
    family: str

    @property
    def key(self) -> str:
        """``projects/P/global/images/NAME``."""
        return f"projects/{self.project}/global/images/{self.name}"

    @property
    def architecture(self) -> str:
        """``X86_64`` or ``ARM64``."""
        return "ARM64" if "arm64" in self.family else "X86_64"


def image(project: str, name: str) -> Image | None:
    """The public image of that exact name: ``FAMILY'S STEM-vYYYYMMDD``."""
    found = re.fullmatch(r"(.+)-v\d{8}", name)
    if found:
        for family, stem in _FAMILIES.get(project, {}).items():
            if stem == found[1]:
                return Image(project, name, family)
    return None


def family(project: str, name: str) -> Image | None:
    """The newest image of a family."""
    stem = _FAMILIES.get(project, {}).get(name)
    return Image(project, f"{stem}-{NEWEST}", name) if stem else None


def images(project: str) -> list[Image]:
    """The newest image of each family of a project."""
    return [Image(project, f"{stem}-{NEWEST}", name) for name, stem in sorted(_FAMILIES.get(project, {}).items())]

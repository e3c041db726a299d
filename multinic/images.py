"""OS images: an exact name is wanted, so that scale-out and healing bring up what was tested."""

import re

import pulumi
import pulumi_gcp as gcp

from multinic.problems import Problems

_EXACT = re.compile(
    r"(?:https://(?:www|compute)\.googleapis\.com/compute/(?:v1|beta)/)?"
    r"projects/(?P<project>[a-z0-9.:-]+)/global/images/(?P<name>[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)"
)
_FAMILY = re.compile(
    r"projects/(?P<project>[a-z0-9.:-]+)/global/images/family/(?P<family>[a-z](?:[-a-z0-9]*[a-z0-9])?)"
)

_ENDED = {"centos-7", "centos-8", "centos-stream-8", "debian-9", "debian-10", "debian-11", "ubuntu-1804", "ubuntu-2004"}


def check_exact(image: str, path: str, problems: Problems) -> None:
    """Notes why this is not the exact name of a supported image."""
    if _FAMILY.fullmatch(image):
        problems.add(
            path,
            f"{image} is a family, which means another image after each release; give an exact image, "
            "or use image_family if that is what you want",
            rule="image-exact",
        )
    elif not (found := _EXACT.fullmatch(image)):
        problems.add(
            path,
            f"{image!r} is not an exact image such as projects/debian-cloud/global/images/debian-12-bookworm-v20260921",
            rule="image-exact",
        )
    else:
        _check_supported(found["name"], path, problems)


def check_family(family: str, path: str, problems: Problems) -> None:
    """Notes why this is not a family of images."""
    if not (found := _FAMILY.fullmatch(family)):
        problems.add(
            path,
            f"{family!r} is not a family such as projects/debian-cloud/global/images/family/debian-12",
            rule="image-family",
        )
    else:
        _check_supported(found["family"], path, problems)


def is_arm(image: str) -> bool:
    """Whether an image or family is for Arm's CPUs; Google's public ones say so in their names."""
    return re.search(r"arm64|aarch64", image.rsplit("/", 1)[-1]) is not None


def is_public(image: str) -> bool:
    """Whether Google publishes it, so that its name tells what it is."""
    return re.search(r"(?:^|/)projects/[a-z-]+-cloud/", image) is not None


def least_disk_gb(image: str) -> int:
    """Size in GB of an image, which a boot disk must have at least: 20 for Red Hat's relatives, else 10.

    https://docs.cloud.google.com/compute/docs/images/os-details
    """
    return 20 if re.search(r"projects/(?:rocky-linux|centos|rhel|rhel-sap)-cloud/", image) else 10


def resolve(image: str, family: str, opts: pulumi.InvokeOptions | None = None) -> str:
    """Returns the exact image: the one given, or the newest of a family at this moment.

    Args:
        image: Exact image, or empty.
        family: Family, used when there is no exact image.
        opts: Carries the provider.
    """
    if image:
        return image
    found = _FAMILY.fullmatch(family)
    assert found, "the settings let only families through"
    return gcp.compute.get_image(family=found["family"], project=found["project"], opts=opts).self_link


def _check_supported(name: str, path: str, problems: Problems) -> None:
    """Refuses systems that get no security updates any more or cannot run the guest (COS has a read-only root)."""
    for ended in _ENDED:
        if name == ended or name.startswith(f"{ended}-"):
            problems.add(path, f"{name}: this system has reached its end of life", rule="image-supported")
    if name.startswith("cos-"):
        problems.add(
            path,
            f"{name}: Container-Optimized OS keeps /usr read-only, the router's programs cannot be installed",
            rule="image-supported",
        )

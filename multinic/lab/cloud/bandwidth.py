"""What a VM may send, by machine type.

https://docs.cloud.google.com/compute/docs/general-purpose-machines (C2D:
https://cloud.google.com/compute/docs/compute-optimized-machines; C2 from the test targets of
GoogleCloudPlatform/cloud-image-tests). It is accounted by VM, not by NIC or address:
https://cloud.google.com/compute/docs/network-bandwidth
"""

from __future__ import annotations

from itertools import takewhile

Steps = tuple[tuple[int, float, float | None], ...]
"""(least vCPUs, Gbit/s, Gbit/s with Tier_1 or None where there is none), by vCPUs."""

_LIKE_N4D: Steps = ((1, 10, None), (8, 16, None), (16, 32, None), (64, 45, None), (80, 50, None))
_EGRESS: dict[str, Steps] = {
    # N1 from Skylake on; older platforms send 16 at most.
    "n1": ((1, 2, None), (2, 10, None), (8, 16, None), (16, 32, None)),
    "n2": ((2, 10, None), (8, 16, None), (16, 32, None), (32, 32, 50), (64, 32, 75), (80, 32, 100)),
    "n2d": ((2, 10, None), (8, 16, None), (16, 32, None), (48, 32, 50), (96, 32, 100)),
    "n4": _LIKE_N4D,
    "n4d": _LIKE_N4D,
    "e2": ((1, 2, None), (2, 4, None), (4, 8, None), (8, 16, None)),
    "c2": ((4, 10, None), (8, 16, None), (16, 32, None), (30, 32, 50), (60, 32, 100)),
    "c2d": ((2, 10, None), (8, 16, None), (16, 32, None), (32, 32, 50), (112, 32, 100)),
    "c3": ((4, 23, None), (44, 32, 50), (88, 62, 100), (176, 100, 200)),
    "c3d": ((4, 20, None), (30, 20, 50), (60, 40, 75), (90, 60, 100), (180, 100, 150), (360, 100, 200)),
    "c4": ((2, 10, None), (4, 23, None), (48, 34, 50), (96, 67, 100), (144, 100, 150), (192, 100, 200)),
    "c4d": (
        *((2, 10, None), (4, 20, None), (32, 23, None), (48, 34, 50), (64, 45, 75), (96, 67, 100)),
        *((192, 100, 150), (384, 100, 200)),
    ),
    "c4a": ((1, 10, None), (4, 23, None), (32, 23, 50), (48, 34, 50), (64, 45, 75), (72, 50, 100)),
    "n4a": ((1, 10, None), (8, 16, None), (16, 32, None), (64, 50, None)),
    "t2a": ((1, 10, None), (8, 16, None), (16, 32, None)),
    "t2d": ((1, 10, None), (8, 16, None), (16, 32, None)),
}
_SHARED = {"e2-micro": 1.0, "e2-small": 1.0, "e2-medium": 2.0, "f1-micro": 1.0, "g1-small": 1.0}


def egress(machine_type: str, cpus: int, *, tier_1: bool = False) -> float:
    """Greatest egress of a VM in Gbit/s.

    Args:
        machine_type: ``n2-highcpu-4``.
        cpus: Its vCPUs.
        tier_1: Whether the VM has Tier_1 networking; of no effect where the type has none.
    """
    if machine_type in _SHARED:
        return _SHARED[machine_type]
    series = machine_type.partition("-")[0].replace("custom", "n1")  # custom-2-4096 is of N1
    *_, (_, plain, faster) = takewhile(lambda step: step[0] <= cpus, _EGRESS[series])
    return float(faster if tier_1 and faster is not None else plain)

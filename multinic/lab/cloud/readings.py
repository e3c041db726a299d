"""What a VM does: counters of the substrate, and the load between two looks at them.

A guest's kernel is the lab's own, so what it spends on packets is not the guest's. A VM's CPU utilisation is therefore
the CPU time of the guest's programs (its control group), plus a documented cost of each byte that it sends
(`VCPUS_PER_GBPS`), over the machine type's vCPUs. Where what VMs may send is scaled down, a byte costs so much more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import catalog
from .autoscaling import Load
from .links import name_of
from .store import Object

if TYPE_CHECKING:
    from .cloud import Cloud

VCPUS_PER_GBPS = 0.046
"""Reference 1 measured 22 to 24 % of an n1-highcpu-2's two vCPUs at 10 Gbit/s; docs/lab-fidelity.md."""


@dataclass(frozen=True)
class Reading:
    """One look at a VM: its id, and the counters since it was created."""

    identity: str
    sent: int
    received: int
    cpu: float


def read(cloud: Cloud, key: str, instance: Object) -> Reading:
    """Looks at a VM now."""
    below = cloud.substrate
    return Reading(instance["id"], below.egress_bytes(key), below.ingress_bytes(key), below.cpu_seconds(key))


def load(cloud: Cloud, instance: Object, before: Reading, after: Reading, seconds: float) -> Load:
    """What the VM did between two looks, that many real seconds apart: guests and packets keep real time."""
    sent = max(0, after.sent - before.sent) / seconds
    programs = max(0.0, after.cpu - before.cpu) / seconds
    machine_type = catalog.machine_type(name_of(instance["machineType"]))
    cpus = machine_type.cpus if machine_type else 1
    packets = sent * 8 / 1e9 / cloud.egress_scale * VCPUS_PER_GBPS
    return Load(min(1.0, (programs + packets) / cpus), sent)

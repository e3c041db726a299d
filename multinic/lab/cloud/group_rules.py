"""What a managed instance group may ask for.

https://cloud.google.com/compute/docs/instance-groups
"""

from __future__ import annotations

import re

from .rules import DISCOVERY, Rule, at, between, holds, matches
from .store import Object

_UPDATES = "https://cloud.google.com/compute/docs/instance-groups/updating-managed-instance-groups"
_NAME = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
"""RFC 1035: discovery document compute.v1, NamedPort.name."""


def _both_zero(group: Object) -> bool:
    policy = group.get("updatePolicy") or {}
    return bool(at(policy, "maxSurge.fixed") == 0 and at(policy, "maxUnavailable.fixed") == 0)


RULES: tuple[Rule, ...] = (
    matches("baseInstanceName", r"[a-z](?:[-a-z0-9]{0,57})?", DISCOVERY + "InstanceGroupManager.baseInstanceName"),
    between("targetSize", 0, 1000, "https://cloud.google.com/compute/docs/instance-groups#managed_instance_groups"),
    between("updatePolicy.minReadySec", 0, 3600, "discovery document compute.beta, updatePolicy.minReadySec"),
    holds(
        "namedPorts",
        "A named port needs a name of its form and a port from 1 to 65535; a name may have several ports.",
        DISCOVERY + "NamedPort.name, port",
        lambda group: all(
            _NAME.fullmatch(named.get("name", "")) and 1 <= int(named.get("port") or 0) <= 65535
            for named in group.get("namedPorts", [])
        ),
    ),
    holds(
        "autoHealingPolicies",
        "At most one autohealing policy may be given, with initialDelaySec from 0 to 3600.",
        DISCOVERY + "InstanceGroupManager.autoHealingPolicies, initialDelaySec",
        lambda group: (
            len(group.get("autoHealingPolicies", [])) <= 1
            and all(0 <= int(p.get("initialDelaySec") or 0) <= 3600 for p in group.get("autoHealingPolicies", []))
        ),
    ),
    holds(
        "updatePolicy.maxUnavailable",
        "maxSurge and maxUnavailable cannot both be 0.",
        _UPDATES + "#max_unavailable",
        lambda group: not _both_zero(group),
    ),
    holds(
        "updatePolicy.maxSurge",
        "Percentages may be used only when the target size is at least 10.",
        _UPDATES + "#max_surge",
        lambda group: (
            group.get("targetSize", 0) >= 10
            or not (at(group, "updatePolicy.maxSurge.percent") or at(group, "updatePolicy.maxUnavailable.percent"))
        ),
    ),
    holds(
        "updatePolicy.replacementMethod",
        "RECREATE needs maxSurge 0 and maxUnavailable above 0.",
        DISCOVERY + "InstanceGroupManagerUpdatePolicy.replacementMethod",
        lambda group: (
            at(group, "updatePolicy.replacementMethod") != "RECREATE"
            or (
                not at(group, "updatePolicy.maxSurge.fixed")
                and not at(group, "updatePolicy.maxSurge.percent")
                and at(group, "updatePolicy.maxUnavailable.fixed") != 0
            )
        ),
    ),
)

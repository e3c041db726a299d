"""VPC firewall rules.

https://cloud.google.com/firewall/docs/firewalls
"""

from __future__ import annotations

from typing import Any, ClassVar

from typing_extensions import override

from .call import Answer, Call
from .errors import invalid, required
from .references import Reference
from .resource import Resource
from .rules import DISCOVERY, at_most, between, holds, is_port_range, network_of, one_of
from .store import Object

_DOC = "https://cloud.google.com/firewall/docs/firewalls"
_PROTOCOLS = ("tcp", "udp", "icmp", "esp", "ah", "sctp", "ipip", "all")


def _entries(rule: Object) -> list[Any]:
    return [*rule.get("allowed", []), *rule.get("denied", [])]


def _protocol(text: Any) -> bool:
    text = str(text)
    return text.lower() in _PROTOCOLS or (text.isascii() and text.isdigit() and len(text) <= 3 and int(text) <= 255)


_MOST = {
    "sourceRanges": 5000,
    "destinationRanges": 5000,
    "sourceTags": 30,
    "targetTags": 70,
    "sourceServiceAccounts": 10,
    "targetServiceAccounts": 10,
}


RULES = (
    *(
        at_most(name, most, "https://cloud.google.com/firewall/docs/quotas#limits-per-rule")
        for name, most in _MOST.items()
    ),
    between("priority", 0, 65535, DISCOVERY + "Firewall.priority"),
    one_of("direction", ("INGRESS", "EGRESS"), DISCOVERY + "Firewall.direction"),
    holds(
        "allowed",
        "Exactly one of 'allowed' and 'denied' must be given.",
        _DOC + "#rule-components",
        lambda rule: bool(rule.get("allowed")) != bool(rule.get("denied")),
    ),
    holds(
        "allowed",
        "IPProtocol must be a protocol number or one of tcp, udp, icmp, esp, ah, sctp, ipip, all.",
        DISCOVERY + "Firewall.allowed[].IPProtocol",
        lambda rule: all(_protocol(entry.get("IPProtocol", "")) for entry in _entries(rule)),
    ),
    holds(
        "allowed",
        "Ports must be numbers from 0 to 65535 or ranges of them.",
        DISCOVERY + "Firewall.allowed[].ports",
        lambda rule: all(is_port_range(port) for entry in _entries(rule) for port in entry.get("ports", [])),
    ),
    holds(
        "allowed",
        "Ports may be given for tcp, udp and sctp only.",
        DISCOVERY + "Firewall.allowed[].ports",
        lambda rule: all(
            not entry.get("ports") or str(entry["IPProtocol"]).lower() in ("tcp", "udp", "sctp", "6", "17", "132")
            for entry in _entries(rule)
        ),
    ),
    holds(
        "sourceRanges",
        "Must be CIDR address ranges without host bits.",
        DISCOVERY + "Firewall.sourceRanges",
        lambda rule: all(_range(text) for text in rule.get("sourceRanges", [])),
    ),
    holds(
        "destinationRanges",
        "Must be CIDR address ranges without host bits.",
        DISCOVERY + "Firewall.destinationRanges",
        lambda rule: all(_range(text) for text in rule.get("destinationRanges", [])),
    ),
    holds(
        "targetTags",
        "Tags and service accounts cannot be used in the same rule.",
        DISCOVERY + "Firewall.targetTags, sourceServiceAccounts",
        lambda rule: (
            not (
                (rule.get("sourceTags") or rule.get("targetTags"))
                and (rule.get("sourceServiceAccounts") or rule.get("targetServiceAccounts"))
            )
        ),
    ),
    holds(
        "sourceTags",
        "Sources belong to INGRESS rules only.",
        DISCOVERY + "Firewall.sourceTags",
        lambda rule: (
            rule["direction"] == "INGRESS" or not (rule.get("sourceTags") or rule.get("sourceServiceAccounts"))
        ),
    ),
    holds(
        "targetServiceAccounts",
        "A rule has at most 10 target service accounts.",
        _DOC + "#service-accounts-vs-tags",
        lambda rule: len(rule.get("targetServiceAccounts", [])) <= 10,
    ),
)


def _range(text: Any) -> bool:
    return network_of(text if "/" in str(text) else f"{text}/32") is not None


class Firewalls(Resource):
    """``firewalls``: global, each in one network; the fabric enforces them (see `plans`)."""

    collection = "firewalls"
    noun = "firewall"
    kind = "firewall"
    served: ClassVar = {"global": "firewalls"}
    verbs = ("insert", "get", "list", "patch", "update", "delete", "testIamPermissions")
    references = (Reference("network", "networks", scope="global"),)
    defaults: ClassVar = {
        "direction": "INGRESS",
        "priority": 1000,
        "disabled": False,
        "logConfig": {"enable": False},
    }
    immutable = ("network", "direction")
    rules = RULES

    @override
    def insert(self, call: Call) -> Answer:
        if not call.body.get("network"):
            # Google takes the network named "default" then, if there is one.
            call.body["network"] = f"projects/{self.project}/global/networks/default"
        return super().insert(call)

    @override
    def complete(self, key: str, value: Object) -> None:
        if value.get("priority") is None:
            raise required("priority")
        ingress = value["direction"] == "INGRESS"
        selective = value.get("sourceRanges") or value.get("sourceTags") or value.get("sourceServiceAccounts")
        if ingress and not selective:
            value["sourceRanges"] = ["0.0.0.0/0"]
        if not ingress and not value.get("destinationRanges"):
            value["destinationRanges"] = ["0.0.0.0/0"]
        for entry in _entries(value):
            if not entry.get("IPProtocol"):
                raise invalid("allowed", entry, "IPProtocol is required.")

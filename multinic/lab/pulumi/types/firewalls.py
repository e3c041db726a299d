"""VPC firewall rules."""

from __future__ import annotations

from multinic.lab.pulumi.fields import Field, Fields, block, blocks
from multinic.lab.pulumi.kinds import Integer, Items, Link, Problem, Scope, Text
from multinic.lab.pulumi.resource_type import Change, Inputs, ResourceType, all_of, exactly_one
from multinic.lab.pulumi.rest import Document
from multinic.lab.pulumi.types.common import DELETION_POLICY, DESCRIPTION, FLAG, NAME, PROJECT

_TEXTS = Items(Text(), is_set=True)
_RULES = blocks(
    Field("protocol", Text(), "IPProtocol", required=True),
    Field("ports", Items(Text())),
    is_set=True,
)
_LISTS = (
    "destinationRanges",
    "sourceRanges",
    "sourceServiceAccounts",
    "sourceTags",
    "targetServiceAccounts",
    "targetTags",
)


def _check_sources(inputs: Inputs) -> list[Problem]:
    if inputs.get("direction") == "EGRESS":
        return []
    if any(inputs.get(name) for name in ("sourceRanges", "sourceTags", "sourceServiceAccounts")):
        return []
    reason = "one of source_tags, source_ranges, or source_service_accounts must be defined when direction is INGRESS"
    return [Problem("sourceRanges", reason)]


def _check_tags(inputs: Inputs) -> list[Problem]:
    tags = [name for name in ("sourceTags", "targetTags") if inputs.get(name)]
    accounts = [name for name in ("sourceServiceAccounts", "targetServiceAccounts") if inputs.get(name)]
    if not (tags and accounts):
        return []
    return [Problem(accounts[0], f'"{accounts[0]}": conflicts with {tags[0]}: tags and service accounts do not mix')]


def _shape(body: Document, inputs: Inputs, _scope: Scope) -> Document:
    logs = {"enable": True} | body["logConfig"] if "logConfig" in body else {"enable": False}
    return body | {"logConfig": logs}


def _unshape(live: Document, _inputs: Inputs) -> Document:
    logs = live.get("logConfig") or {}
    return {key: value for key, value in live.items() if key != "logConfig" or logs.get("enable")}


def _update(change: Change) -> None:
    body = _shape(FIREWALL.fields.encode(change.new, change.scope), change.new, change.scope)
    body = {key: value for key, value in body.items() if key not in ("name", "direction")}
    unset: Document = {name: [] for name in ("allowed", "denied", *_LISTS)} | {"description": "", "disabled": False}
    change.run("PATCH", change.path, unset | body)


FIREWALL = ResourceType(
    pulumi_type="gcp:compute/firewall:Firewall",
    collection="projects/{project}/global/firewalls",
    fields=Fields(
        (
            NAME,
            PROJECT,
            DELETION_POLICY,
            DESCRIPTION,
            Field("network", Link("networks"), required=True),
            Field("direction", Text(choices=("INGRESS", "EGRESS")), replaces=True, computed=True),
            Field("priority", Integer(0, 65535), default=1000),
            Field("disabled", FLAG),
            Field("allows", _RULES, "allowed"),
            Field("denies", _RULES, "denied"),
            Field("sourceRanges", _TEXTS, computed=False),
            Field("destinationRanges", _TEXTS, computed=True),
            Field("sourceTags", _TEXTS),
            Field("targetTags", _TEXTS),
            Field("sourceServiceAccounts", _TEXTS),
            Field("targetServiceAccounts", _TEXTS),
            Field(
                "logConfig",
                block(
                    Field(
                        "metadata",
                        Text(choices=("EXCLUDE_ALL_METADATA", "INCLUDE_ALL_METADATA")),
                        required=True,
                    )
                ),
            ),
        )
    ),
    computed=("selfLink", "creationTimestamp"),
    check=all_of(exactly_one("allows", "denies"), _check_sources, _check_tags),
    shape=_shape,
    unshape=_unshape,
    update=_update,
)

TYPES = (FIREWALL,)

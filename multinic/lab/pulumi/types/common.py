"""Inputs that many resource types share."""

from __future__ import annotations

from multinic.lab.pulumi import links
from multinic.lab.pulumi.fields import Field
from multinic.lab.pulumi.kinds import Flag, Kind, Strings, Text
from multinic.lab.pulumi.names import COMPUTE_NAME
from multinic.lab.pulumi.resource_type import PROVISIONED, Inputs
from multinic.lab.pulumi.rest import Document

NAME = Field("name", Text(pattern=COMPUTE_NAME), replaces=True)
PROJECT = Field("project", sent=False, replaces=True)
REGION = Field("region", Text(), sent=False, replaces=True)
ZONE = Field("zone", Text(), sent=False, replaces=True)
DELETION_POLICY = Field("deletionPolicy", sent=False)
DESCRIPTION = Field("description")
LABELS = Field("labels", Strings())
FLAG = Flag()


def optional(name: str, kind: Kind | None = None, to: str = "") -> Field:
    """Return an input that the API fills in where it is not given."""
    return Field(name, kind or Text(), to, computed=True)


def fixed(name: str, kind: Kind | None = None, to: str = "", *, required: bool = False) -> Field:
    """Return an input whose change makes a new resource."""
    return Field(name, kind or Text(), to, replaces=True, required=required)


def with_provisioned(inputs: Inputs) -> dict[str, str]:
    """Return the labels that the plugin sends: the program's and its own."""
    return dict(inputs.get("labels") or {}) | PROVISIONED


def metadata_items(metadata: dict[str, str]) -> Document:
    """Return metadata in the API's form: a sorted list of keys and values, left out when there is none."""
    items = [{"key": key, "value": value} for key, value in sorted(metadata.items())]
    return {"items": items} if items else {}


def metadata_map(document: Document | None) -> dict[str, str]:
    """Return the API's metadata as a map."""
    return {item["key"]: item.get("value", "") for item in (document or {}).get("items", [])}


def zone_of(link: str) -> str:
    """Return the zone in a link to a zonal resource."""
    parts = link.split("/")
    return parts[parts.index("zones") + 1] if "zones" in parts[:-1] else links.name_of(link)

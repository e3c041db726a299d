"""How Compute Engine names things: selfLinks, partial links, and the keys that the lab uses.

A *key* is the path from ``projects/`` on, such as ``projects/lab/zones/us-central1-a/instances/r-x1y2``.
Forms of a reference: https://cloud.google.com/apis/design/resource_names and the field descriptions of the
discovery document (``Route.network``: full and partial URLs are both valid).
"""

from __future__ import annotations

import re
from typing import NamedTuple

BASE = "https://www.googleapis.com/compute/v1/"
_PREFIX = re.compile(r"^(?:https?://[^/]+)?/?(?:compute/(?:v1|beta|alpha)/)?(?=projects/|global/|regions/|zones/)")


class Key(NamedTuple):
    """The parts of a key. `scope` is ``global``, ``regions/R`` or ``zones/Z``."""

    project: str
    scope: str
    collection: str
    name: str

    def __str__(self) -> str:
        return f"projects/{self.project}/{self.scope}/{self.collection}/{self.name}"


def link(key: str) -> str:
    """The selfLink of a key."""
    return BASE + key


def key_of(reference: str) -> str:
    """The key of a selfLink, of any base URL and version; other texts come back as they are."""
    if reference.startswith(BASE):
        return reference[len(BASE) :]
    found = _PREFIX.match(reference)
    return reference[found.end() :] if found else reference


def split(key: str) -> Key:
    """The parts of a full key.

    Raises:
        ValueError: `key` is not ``projects/P/SCOPE/COLLECTION/NAME``.
    """
    match key.split("/"):
        case ["projects", project, "global", collection, name]:
            return Key(project, "global", collection, name)
        case ["projects", project, ("regions" | "zones") as kind, place, collection, name]:
            return Key(project, f"{kind}/{place}", collection, name)
        case ["projects", project, "global", "images", "family", name]:
            return Key(project, "global", "images/family", name)
    raise ValueError(key)


def resolve(reference: str, project: str, collection: str, scope: str) -> str:
    """The key that a reference means.

    Args:
        reference: A full URL, a partial one (``global/networks/n``, ``regions/r/…``) or a bare name.
        project: Project of the object that holds the reference.
        collection: Collection that the field refers to; only a bare name needs it.
        scope: Scope of a bare name.

    Raises:
        ValueError: The text is none of these.
    """
    text = key_of(reference)
    if "/" not in text:
        text = f"projects/{project}/{scope}/{collection}/{text}"
    elif not text.startswith("projects/"):
        text = f"projects/{project}/{text}"
    return str(split(text))


def name_of(reference: str) -> str:
    """The last part of a link or key."""
    return reference.rstrip("/").rsplit("/", 1)[-1]


def region_of(zone: str) -> str:
    """The region of a zone's name: ``us-central1-a`` → ``us-central1``."""
    return zone.rsplit("-", 1)[0]

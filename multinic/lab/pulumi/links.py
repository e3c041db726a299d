"""Google's resource links in their three forms: a bare name, a path from ``projects/``, a full URL."""

from __future__ import annotations

import re

COMPUTE_V1 = "https://www.googleapis.com/compute/v1/"
_VERSION = re.compile(r"/compute/[a-z0-9]+/")


def path_of(link: str) -> str:
    """Return the part of a link from ``projects/`` on, or the link as it is where it has none."""
    start = link.find("projects/")
    return link[start:] if start >= 0 else link


def name_of(link: str) -> str:
    """Return the last part of a link."""
    return link.split("?", 1)[0].rstrip("/").rsplit("/", 1)[-1]


def full(link: str) -> str:
    """Return a link as a full v1 URL; a bare name or an address stays as it is."""
    if link.startswith(("http://", "https://")) or not link.startswith("projects/"):
        return link
    return COMPUTE_V1 + link


def as_v1(link: str) -> str:
    """Return a link of any API version as one of v1, the form that the plugin keeps in its state."""
    return _VERSION.sub("/compute/v1/", link, count=1)


def same_resource(one: str, other: str) -> bool:
    """Tell whether two links, in whatever form each, mean the same resource.

    A template link may carry ``?uniqueId=…``: names of replaced templates differ, so the name decides.
    """
    one, other = (path_of(link).split("?", 1)[0] for link in (one, other))
    if one == other:
        return True
    # A bare name is enough of a match: project and region come from the same provider.
    bare = "/" not in one or "/" not in other
    return bare and name_of(one) == name_of(other)

"""Links of Google's resources: full, partial, or as ``projects/…`` paths."""

from __future__ import annotations

import re


def path(link: str) -> str:
    """``projects/P/…`` of a full or partial link, whatever host and version it names."""
    head, found, tail = link.partition("projects/")
    return f"projects/{tail}" if found else head


def name(link: str) -> str:
    """The last part."""
    return link.rstrip("/").rpartition("/")[2]


def project(link: str) -> str:
    """The project that it names, else nothing."""
    parts = path(link).split("/")
    return parts[1] if parts[0] == "projects" and len(parts) > 1 else ""


def place(link: str) -> str:
    """The zone or region that it names, else nothing."""
    parts = path(link).split("/")
    return parts[3] if len(parts) > 3 and parts[2] in ("zones", "regions") else ""


def same(one: str, other: str) -> bool:
    """Whether two links name one resource."""
    return path(one) == path(other)


def is_name(text: str) -> bool:
    """Whether something may be called so; what may not must not get into a filter either."""
    return re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", text) is not None

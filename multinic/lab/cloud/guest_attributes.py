"""Guest attributes: what the programs of a VM say about it, written through the metadata server, read by REST.

https://cloud.google.com/compute/docs/metadata/manage-guest-attributes
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .call import Answer, Call
from .errors import ApiError
from .links import link
from .store import Object

if TYPE_CHECKING:
    from .cloud import Cloud

_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")
_BIGGEST_VALUE = 262_144
_BIGGEST_SUM = 524_288
"""Bytes; assumed to be those of other metadata.

https://cloud.google.com/compute/docs/metadata/setting-custom-metadata#limitations"""
_FIELD = "_guestAttributes"

Attributes = dict[str, dict[str, str]]
"""Namespace → key → value."""


def of(instance: Object) -> Attributes | None:
    """The guest attributes of an instance; None where its metadata does not have ``enable-guest-attributes=TRUE``."""
    items = {item["key"]: str(item.get("value", "")) for item in instance["metadata"].get("items", [])}
    if items.get("enable-guest-attributes", "").upper() != "TRUE":
        return None
    found: Attributes = instance.get(_FIELD, {})
    return found


class GuestAttributes:
    """Those of all instances; they live and die with the instance's record."""

    def __init__(self, cloud: Cloud) -> None:
        """Begins with those on disk."""
        self._cloud = cloud

    def change(self, machine: str, namespace: str, name: str, value: str | None) -> tuple[int, str]:
        """Writes an attribute for a VM's own program, or deletes it.

        Args:
            machine: The VM's key.
            namespace: First part of the attribute's path.
            name: Second part.
            value: Any text, or None to delete.

        Returns:
            HTTP status and text of the metadata server's answer.
        """
        instance = self._cloud.store.get(machine)
        old = of(instance) if instance else None
        if old is None:
            return 403, "Guest attributes endpoint access is disabled.\n"
        if not _NAME.fullmatch(namespace) or not _NAME.fullmatch(name):
            return 400, f"Namespace and key must match {_NAME.pattern}.\n"
        entries = {key: text for key, text in old.get(namespace, {}).items() if key != name}
        if value is None and len(entries) == len(old.get(namespace, {})):
            return 404, "Not found\n"
        new = {space: content for space, content in old.items() if space != namespace}
        if value is not None:
            entries[name] = value
        if entries:
            new[namespace] = entries
        sizes = [len(key) + len(text.encode()) for content in new.values() for key, text in content.items()]
        if len((value or "").encode()) > _BIGGEST_VALUE or sum(sizes) > _BIGGEST_SUM:
            return 413, f"A value has at most {_BIGGEST_VALUE} bytes, all together {_BIGGEST_SUM}.\n"
        try:
            self._cloud.instances.write(machine, **{_FIELD: new})
        except ApiError as error:
            return error.code, error.message + "\n"
        self._cloud.substrate.metadata_changed(machine)
        return 200, ""

    def get(self, call: Call) -> Answer:
        """One attribute (``variableKey``), or those below a path (``queryPath``: all, a namespace, a key)."""
        key = self._cloud.instances.target(call)
        found = of(self._cloud.store.require(key)) or {}
        wanted = call.params.get("variableKey")
        path = str(wanted or call.params.get("queryPath") or "")
        namespace, _, name = path.partition("/")
        items = [
            {"namespace": space, "key": own, "value": value}
            for space, entries in sorted(found.items())
            for own, value in sorted(entries.items())
            if namespace in ("", space) and name in ("", own)
        ]
        if not items or (wanted and not name):
            raise ApiError(
                404, "notFound", f"The resource '{key}/guestAttributes/{path}' of type 'Guest Attribute' was not found."
            )
        answer: Answer = {"kind": "compute#guestAttributes", "selfLink": f"{link(key)}/guestAttributes/{path}"}
        if wanted:
            return {**answer, "variableKey": path, "variableValue": items[0]["value"]}
        return {**answer, "queryPath": path, "queryValue": {"items": items}}

"""Fingerprints: the optimistic locks of Compute Engine objects.

They are base64 of eight bytes and change with the content, so an empty set of labels always has the same one
(discovery: ``Instance.labelFingerprint``, ``Metadata.fingerprint``, ``Tags.fingerprint``).
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from .errors import condition_not_met


def fingerprint(content: Any) -> str:
    """The fingerprint of JSON content."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def check(given: Any, current: str, what: str, *, needed: bool = False) -> None:
    """Refuses a stale fingerprint.

    Args:
        given: What the request carried; empty means none.
        current: The object's own.
        what: For the message, such as ``Supplied``.
        needed: Whether a request without one is refused too.

    Raises:
        ApiError: 412 ``conditionNotMet``.
    """
    if not given:
        if needed:
            raise condition_not_met(what)
        return
    if str(given).replace("+", "-").replace("/", "_") != current:
        raise condition_not_met(what)

"""Labels, and what is refused in them.

https://cloud.google.com/compute/docs/labeling-resources
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .errors import invalid

_LABEL_KEY = re.compile(r"[a-z\u00df-\u00ff][\w-]{0,62}")
_LABEL_VALUE = re.compile(r"[\w-]{0,63}")


def check_labels(labels: Mapping[str, Any]) -> None:
    """Refuses labels that Google refuses.

    Keys and values: at most 63 characters of lower-case letters, digits, ``_`` and ``-``, keys begin with a letter, at
    most 64 labels: https://cloud.google.com/compute/docs/labeling-resources#requirements
    """
    if len(labels) > 64:
        raise invalid("labels", len(labels), "A resource has at most 64 labels.")
    for name, content in labels.items():
        if not _LABEL_KEY.fullmatch(name) or name != name.lower():
            raise invalid("labels", name, "Label keys must match the regex '[a-z][a-z0-9_-]{0,62}'.")
        if not _LABEL_VALUE.fullmatch(str(content)) or str(content) != str(content).lower():
            raise invalid(f"labels.{name}", content, "Label values must match the regex '[a-z0-9_-]{0,63}'.")

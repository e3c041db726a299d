"""What a PATCH makes of an object."""

from __future__ import annotations

import copy

from .store import Object


def merged(old: Object, change: Object) -> Object:
    """JSON merge patch (RFC 7396), with empty texts and lists clearing as well; lists are replaced as a whole."""
    result = copy.deepcopy(old)
    for name, content in change.items():
        if content in (None, "", []):
            result.pop(name, None)
        elif isinstance(content, dict) and isinstance(result.get(name), dict) and name != "labels":
            result[name] = merged(result[name], content)
        else:
            result[name] = copy.deepcopy(content)
    return result

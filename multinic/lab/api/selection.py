"""The ``fields`` parameter: only some parts of an answer, such as ``items(name,id),nextPageToken`` or ``items/name``.

https://developers.google.com/workspace/drive/api/guides/fields-parameter
"""

from __future__ import annotations

import re
from typing import Any

from ..cloud.errors import ApiError

_TOKEN = re.compile(r"[^,()/]+|[,()/]")
_DEEPEST = 20

Wanted = dict[str, Any]
"""Name of a field → what is wanted of it; empty: all of it."""


def only_fields(answer: Any, text: str) -> Any:
    """The parts of an answer that `text` names.

    Raises:
        ApiError: 400 ``invalidParameter`` for a text that is no selection.
    """
    return _cut(answer, _Parser(text).whole())


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._tokens = text, [token.strip() for token in _TOKEN.findall(text)][::-1]

    def whole(self) -> Wanted:
        wanted = self._selections(0)
        if self._tokens:
            raise self._bad()
        return wanted

    def _selections(self, depth: int) -> Wanted:
        """``name, name/name, name(…)``."""
        wanted = self._selection(depth)
        while self._take(","):
            wanted |= self._selection(depth)
        return wanted

    def _selection(self, depth: int) -> Wanted:
        name = self._tokens.pop() if self._tokens else ""
        if depth > _DEEPEST or not name or name in ",()/":
            raise self._bad()
        if self._take("/"):
            return {name: self._selection(depth + 1)}
        if not self._take("("):
            return {name: {}}
        inner = self._selections(depth + 1)
        if not self._take(")"):
            raise self._bad()
        return {name: inner}

    def _take(self, mark: str) -> bool:
        if self._tokens and self._tokens[-1] == mark:
            self._tokens.pop()
            return True
        return False

    def _bad(self) -> ApiError:
        return ApiError(400, "invalidParameter", f"Invalid field selection {self._text[:100]}")


def _cut(value: Any, wanted: Wanted) -> Any:
    if not wanted or "*" in wanted:
        return value
    if isinstance(value, list):
        return [_cut(one, wanted) for one in value]
    if isinstance(value, dict):
        return {name: _cut(value[name], inner) for name, inner in wanted.items() if name in value}
    return value

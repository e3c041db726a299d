"""The ``filter`` of list requests.

Both of Google's notations: ``name = x AND (status != y OR labels.k:*)`` and the older ``name eq 'regular.*'``.
https://cloud.google.com/compute/docs/reference/rest/v1/instances/list, parameter ``filter``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..cloud.errors import ApiError

Test = Callable[[dict[str, Any]], bool]
_TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<mark>\(|\)|!=|<=|>=|=|<|>|:)|(?P<word>[^\s()=!<>:"']+))"""
)
_LONGEST = 2048
_LINK = re.compile(r"^https?://[^/]+/compute/(?:v1|beta)/")
"""A link in any base path: older versions of Google's provider filter zones by their region, below its endpoint."""


def parse(text: str) -> Test:
    """The test that a filter means; an empty one lets everything through.

    Raises:
        ApiError: 400 ``invalid``.
    """
    if not text.strip():
        return lambda _: True
    if len(text) > _LONGEST:
        raise _bad(text[:100] + "...")
    parser = _Parser(text)
    test = parser.either()
    if parser.peek() is not None:
        raise _bad(text)
    return test


def _bad(text: str) -> ApiError:
    return ApiError(400, "invalid", f"Invalid value for field 'filter': '{text}'. Invalid list filter expression.")


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._tokens, self._depth = text, self._split(text), 0

    def _split(self, text: str) -> list[tuple[str, str]]:
        tokens, position = [], 0
        text = text.rstrip()
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None:
                raise _bad(text)
            position = found.end()
            kind = str(found.lastgroup)
            value = found[kind]
            tokens.append((kind, re.sub(r"\\(.)", r"\1", value[1:-1]) if kind == "quoted" else value))
        return tokens

    def peek(self) -> tuple[str, str] | None:
        return self._tokens[0] if self._tokens else None

    def _take(self, *wanted: str) -> bool:
        if self._tokens and self._tokens[0][0] != "quoted" and self._tokens[0][1] in wanted:
            self._tokens.pop(0)
            return True
        return False

    def either(self) -> Test:
        test = self._both()
        while self._take("OR"):
            test = _either(test, self._both())
        return test

    def _both(self) -> Test:
        test = self._one()
        while self._tokens and self.peek() != ("mark", ")") and self.peek() != ("word", "OR"):
            # Two expressions side by side mean AND as well.
            self._take("AND")
            test = _both(test, self._one())
        return test

    def _one(self) -> Test:
        if self._take("NOT"):
            return _not(self._one())
        if self._tokens and self._tokens[0][0] == "word" and self._tokens[0][1][:1] == "-":
            # A minus right before an expression negates it.
            rest = self._tokens[0][1][1:]
            self._tokens[:1] = [("word", rest)] if rest else []
            return _not(self._one())
        if self._take("("):
            self._depth += 1
            if self._depth > 50:
                raise _bad(self._text[:100])
            test = self.either()
            if not self._take(")"):
                raise _bad(self._text)
            self._depth -= 1
            return test
        return self._comparison()

    def _comparison(self) -> Test:
        if len(self._tokens) < 3 or self._tokens[0][0] == "mark":
            raise _bad(self._text)
        field = self._tokens.pop(0)[1]
        operator = self._tokens.pop(0)[1]
        kind, value = self._tokens.pop(0)
        if kind == "mark":
            raise _bad(self._text)
        # A word may go on over a colon: URLs are often not quoted.
        while kind == "word" and len(self._tokens) > 1 and self.peek() == ("mark", ":"):
            self._tokens.pop(0)
            value += ":" + self._tokens.pop(0)[1]
        value = _LINK.sub(r"https://www.googleapis.com/compute/v1/", value)
        test = _OPERATORS.get(operator)
        if test is None:
            raise _bad(self._text)
        if operator in ("eq", "ne"):
            try:
                re.compile(value)
            except re.error:
                raise _bad(self._text) from None
        return lambda item: test(_read(item, field), value)


def _either(one: Test, other: Test) -> Test:
    return lambda item: one(item) or other(item)


def _both(one: Test, other: Test) -> Test:
    return lambda item: one(item) and other(item)


def _not(one: Test) -> Test:
    return lambda item: not one(item)


def _read(item: Any, field: str) -> Any:
    for part in field.split("."):
        if isinstance(item, list):
            found = [_read(one, part) for one in item]
            item = [one for one in found if one is not None]
        elif isinstance(item, dict):
            item = item.get(part)
        else:
            return None
    return item


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _equal(value: Any, wanted: str) -> bool:
    if isinstance(value, list):
        return any(_equal(one, wanted) for one in value)
    if value is None:
        return False
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _order(value, wanted) == 0
    pattern = ".*".join(map(re.escape, wanted.split("*")))
    return re.fullmatch(pattern, _text(value), re.IGNORECASE | re.DOTALL) is not None


def _has(value: Any, wanted: str) -> bool:
    if wanted == "*":
        return value not in (None, [], {}, "")
    if isinstance(value, (list, dict)):
        return any(_equal(one, wanted) for one in value)
    return value is not None and wanted.strip("*").lower() in _text(value).lower()


def _regex(value: Any, wanted: str) -> bool:
    if isinstance(value, list):
        return any(_regex(one, wanted) for one in value)
    return value is not None and re.fullmatch(wanted, _text(value)) is not None


def _order(value: Any, wanted: str) -> int | None:
    try:
        one, other = float(value), float(wanted)
    except (TypeError, ValueError):
        if value is None or isinstance(value, (list, dict)):
            return None
        return (_text(value) > wanted) - (_text(value) < wanted)
    return (one > other) - (one < other)


_OPERATORS: dict[str, Callable[[Any, str], bool]] = {
    "=": _equal,
    "!=": lambda value, wanted: not _equal(value, wanted),
    ":": _has,
    "eq": _regex,
    "ne": lambda value, wanted: not _regex(value, wanted),
    "<": lambda value, wanted: _order(value, wanted) == -1,
    ">": lambda value, wanted: _order(value, wanted) == 1,
    "<=": lambda value, wanted: _order(value, wanted) in (-1, 0),
    ">=": lambda value, wanted: _order(value, wanted) in (0, 1),
}

"""What a path of the metadata server answers: a pure function of a VM's metadata tree.

Source: https://docs.cloud.google.com/compute/docs/metadata/querying-metadata (recursion, formats, waiting for a
change).
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote

PREFIX = "/computeMetadata/v1"
VERBATIM = {"attributes": 1, "serviceAccounts": 1, "guestAttributes": 2}
"""Folders below which so many levels are named by users; all others are written-with-hyphens in paths and camelCase in
JSON."""
TOKEN_SECONDS = 3599
GUEST_ATTRIBUTES = ("instance", "guest-attributes")
"""Where programs of the VM may write.

https://cloud.google.com/compute/docs/metadata/manage-guest-attributes"""


@dataclass(frozen=True)
class Query:
    """A request, taken apart.

    Attributes:
        path: Segments below ``/computeMetadata/v1``.
        recursive: The whole subtree, as JSON unless `text` is asked for.
        json: ``alt=json``.
        text: ``alt=text``.
        wait: Answer only when something has changed.
        last_etag: What the asker saw last; None if it does not say.
        timeout: Longest wait in seconds; None means for ever.
    """

    path: tuple[str, ...]
    recursive: bool = False
    json: bool = False
    text: bool = False
    wait: bool = False
    last_etag: str | None = None
    timeout: float | None = None


@dataclass(frozen=True)
class Answer:
    """What goes back.

    Attributes:
        status: HTTP status.
        body: The content.
        kind: Content type.
    """

    status: int
    body: bytes
    kind: str = "application/text"

    @property
    def etag(self) -> str:
        """Changes when, and only when, the content does."""
        return hashlib.sha256(self.body).hexdigest()[:16]


DISABLED = Answer(403, b"Guest attributes endpoint access is disabled.\n", "text/html; charset=UTF-8")
MISSING = Answer(404, b"Not found\n", "text/html; charset=UTF-8")


def parse(target: str) -> Query | None:
    """Takes a request target apart; None if it lies outside of the metadata."""
    path, _, query = target.partition("?")
    if path != PREFIX and not path.startswith(PREFIX + "/"):
        return None
    given = {key: values[-1] for key, values in parse_qs(query, keep_blank_values=True).items()}
    timeout = given.get("timeout_sec")
    return Query(
        path=tuple(unquote(part) for part in path.removeprefix(PREFIX).split("/") if part),
        recursive=given.get("recursive", "").lower() == "true",
        json=given.get("alt") == "json",
        text=given.get("alt") == "text",
        wait=given.get("wait_for_change", "").lower() == "true",
        last_etag=given.get("last_etag"),
        timeout=float(timeout) if timeout and re.fullmatch(r"\d+(\.\d+)?", timeout) else None,
    )


def answer(tree: dict[str, Any], query: Query, token: str) -> Answer:
    """The answer to a query.

    Args:
        tree: The VM's metadata.
        query: What is asked for.
        token: Access token of the VM's service accounts.
    """
    path = query.path
    if len(path) == 4 and path[:2] == ("instance", "service-accounts") and path[3] == "token":
        if _find(tree, path[:3]) is None:
            return MISSING
        body = {"access_token": token, "expires_in": TOKEN_SECONDS, "token_type": "Bearer"}
        return Answer(200, json.dumps(body).encode(), "application/json")
    found = _find(tree, path)
    if found is None:
        return DISABLED if path[:2] == GUEST_ATTRIBUTES and "guestAttributes" not in tree["instance"] else MISSING
    value, verbatim = found
    if isinstance(value, (dict, list)):
        if query.recursive and query.text:
            return Answer(200, "".join(f"{line}\n" for line in _flat(value, "", verbatim)).encode())
        if query.recursive:
            return Answer(200, json.dumps(value).encode(), "application/json")
        if query.json:
            names = [name.rstrip("/") for name in _listing(value, verbatim)]
            return Answer(200, json.dumps(names).encode(), "application/json")
        return Answer(200, "".join(f"{name}\n" for name in _listing(value, verbatim)).encode())
    if query.json:
        return Answer(200, json.dumps(value).encode(), "application/json")
    return Answer(200, str(value).encode())


def _find(tree: dict[str, Any], path: tuple[str, ...]) -> tuple[Any, int] | None:
    """The value at a path, and on how many levels below it names are taken as they are."""
    value: Any = tree
    verbatim = 0
    for part in path:
        if isinstance(value, list):
            if not part.isdigit() or int(part) >= len(value):
                return None
            value, verbatim = value[int(part)], 0
        elif isinstance(value, dict):
            name = part if verbatim or part in value else _camel(part)
            if name not in value:
                return None
            value, verbatim = value[name], _below(name, verbatim)
        else:
            return None
    return value, verbatim


def _below(name: str, verbatim: int) -> int:
    """On how many levels below a name names are taken as they are; `verbatim` is the same for the name itself."""
    return verbatim - 1 if verbatim else VERBATIM.get(name, 0)


def _listing(value: dict[str, Any] | list[Any], verbatim: int) -> list[str]:
    items = enumerate(value) if isinstance(value, list) else sorted(value.items())
    return [
        f"{name if verbatim else _hyphens(str(name))}{'/' if isinstance(child, (dict, list)) else ''}"
        for name, child in items
    ]


def _flat(value: Any, prefix: str, verbatim: int) -> list[str]:
    if not isinstance(value, (dict, list)):
        return [f"{prefix} {value}"]
    items = enumerate(value) if isinstance(value, list) else sorted(value.items())
    lines = []
    for name, child in items:
        shown = str(name) if verbatim else _hyphens(str(name))
        lines += _flat(child, f"{prefix}/{shown}" if prefix else shown, _below(str(name), verbatim))
    return lines


def _camel(name: str) -> str:
    first, *rest = name.split("-")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def _hyphens(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda m: "-" + m[1].lower(), name)

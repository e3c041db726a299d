"""The metadata server, by plain sockets: Python's HTTP client would double the memory of a router's programs.

https://cloud.google.com/compute/docs/metadata/querying-metadata
"""

from __future__ import annotations

import json
import socket
import time

import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SERVER = ("169.254.169.254", 80)
TREE = "/computeMetadata/v1/?recursive=true&alt=json"
MAX_BYTES = 4 * 1024 * 1024
"""The server's own limit is 512 KB of keys and values for an instance, and as much for its project."""


class UnavailableError(Exception):
    """The metadata server did not give a usable answer."""


def get(path: str, timeout: float = 5.0) -> tuple[dict[str, str], bytes]:
    """One request.

    Args:
        path: Path with query.
        timeout: Seconds for connecting and for each wait for bytes.

    Returns:
        Headers (names in lower case) and body.

    Raises:
        UnavailableError: No connection, no status 200, or half an answer.
    """
    request = (
        f"GET {path} HTTP/1.1\r\nHost: metadata.google.internal\r\nMetadata-Flavor: Google\r\nConnection: close\r\n\r\n"
    )
    try:
        with socket.create_connection(SERVER, timeout=min(timeout, 2.0)) as connection:
            connection.settimeout(timeout)
            connection.sendall(request.encode())
            with connection.makefile("rb") as stream:
                status = stream.readline(65536).split(None, 2)
                headers = {}
                for line in iter(lambda: stream.readline(65536).strip(), b""):
                    name, _, value = line.decode("latin-1").partition(":")
                    headers[name.strip().lower()] = value.strip()
                if len(status) < 2 or status[1] != b"200":
                    raise UnavailableError(f"{path.split('?')[0]}: status {status[1:2]}")
                body = (
                    _chunks(stream)
                    if headers.get("transfer-encoding", "").lower() == "chunked"
                    else stream.read(MAX_BYTES)
                )
        if len(body) < int(headers.get("content-length") or 0):
            raise UnavailableError("the answer ended early")
    except (OSError, ValueError) as error:
        raise UnavailableError(f"{type(error).__name__}: {error}") from error
    return headers, body


def _chunks(stream: Any) -> bytes:
    """Body in chunked transfer coding."""
    parts: list[bytes] = []
    left = MAX_BYTES
    while True:
        size = int(stream.readline(64).split(b";")[0], 16)
        if size == 0:
            return b"".join(parts)
        left -= size
        if size < 0 or left < 0:
            raise ValueError("more than the server can hold")
        parts.append(stream.read(size))
        stream.readline(64)


def tree(etag: str | None = None, wait: int = 60) -> tuple[str, Any]:
    """The whole metadata tree.

    Args:
        etag: Of the last answer: then the call returns only once something has changed, or after `wait` seconds.
        wait: Seconds the server may hold the answer back.

    Returns:
        The answer's ETag and the tree.
    """
    path = TREE if etag is None else f"{TREE}&wait_for_change=true&last_etag={etag}&timeout_sec={wait}"
    headers, body = get(path, timeout=5.0 if etag is None else wait + 10.0)
    try:
        return headers.get("etag", ""), json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnavailableError(f"not JSON: {error}") from error


def save(etag: str, whole: Any) -> None:
    """Keeps what routing needs, for the next program of this boot; the rest may be secret, and is left out.

    Args:
        etag: Of the answer.
        whole: The tree; its instance and attributes are known to be JSON objects.
    """
    instance = whole["instance"]
    attributes = instance.get("attributes") or {}
    part = {key: instance.get(key) for key in ("id", "name", "zone", "networkInterfaces")}
    part["attributes"] = {
        key: attributes[key] for key in ("multinic-config", "multinic-networks", "multinic-drain") if key in attributes
    }
    project = whole.get("project")
    kept = {"instance": part, "project": {"projectId": project.get("projectId") if isinstance(project, dict) else None}}
    record = {"etag": etag, "read": time.monotonic(), "tree": kept}
    paths.write(paths.METADATA, json.dumps(record), 0o600)


def saved(max_age: float) -> tuple[str, Any] | None:
    """What `save` kept, if it is at most `max_age` seconds old."""
    try:
        record = json.loads(paths.read(paths.METADATA) or "")
        if 0 <= time.monotonic() - record["read"] <= max_age:
            return record["etag"], record["tree"]
    except (ValueError, KeyError, TypeError):
        pass
    return None

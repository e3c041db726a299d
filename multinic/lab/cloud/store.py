"""The lab's objects: in memory for reading, one JSON file each on disk, so that a killed lab comes back with them."""

from __future__ import annotations

import contextlib
import errno
import json
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from .errors import ApiError, not_found
from .links import key_of

Object = dict[str, Any]


class Store:
    """All objects by key.

    An object is a dict in Google's JSON form; names that begin with ``_`` are the lab's own and never answered.
    A write reaches the disk before it counts, by way of a temporary file and a rename: a kill at any moment leaves the
    old object or the new one. Nothing is flushed past the kernel's cache: what a power cut of the host loses, it loses.

    Args:
        folder: Where the files go; made when missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._objects: dict[str, Object] = {}
        self._parents: dict[str, dict[str, Object]] = {}
        self._sorted: dict[str, list[tuple[str, Object]]] = {}
        self._in_networks: dict[str, dict[str, list[tuple[str, Object]]]] = {}
        self._scopes: dict[str, list[str]] = {}
        self._made: set[Path] = set()
        self._refers_to: dict[str, tuple[str, ...]] = {}
        self._used_by: dict[str, set[str]] = {}
        self._watchers: list[Callable[[str], None]] = []
        self._random = random.SystemRandom()
        folder.mkdir(parents=True, exist_ok=True)
        self._load()

    def _load(self) -> None:
        for path in sorted(self._folder.rglob("*.json")):
            key = str(path.relative_to(self._folder))[: -len(".json")]
            try:
                value = json.loads(path.read_text())
                references = value.pop("_references", [])
            except (ValueError, AttributeError, TypeError) as error:
                raise ApiError(
                    503, "backendError", f"The lab's file {path} is not readable ({error}). Delete it and start again."
                ) from error
            self._remember(key, value, references)

    def new_id(self) -> str:
        """A number as Google gives them: 64 bits, never twice."""
        return str(self._random.randrange(10**18, 9 * 10**18))

    def watch(self, watcher: Callable[[str], None]) -> None:
        """Has `watcher(key)` called after each write and removal."""
        self._watchers.append(watcher)

    def get(self, key: str) -> Object | None:
        """The object, or None."""
        return self._objects.get(key)

    def require(self, key: str) -> Object:
        """The object.

        Raises:
            ApiError: 404 ``notFound``.
        """
        found = self._objects.get(key)
        if found is None:
            raise not_found(key)
        return found

    def children(self, parent: str) -> list[tuple[str, Object]]:
        """The objects of one collection in one scope, by name; `parent` is a key without its last part."""
        found = self._sorted.get(parent)
        if found is None:
            # A list that was given away is never changed: whoever goes through it may write meanwhile.
            found = [(f"{parent}/{name}", value) for name, value in sorted(self._parents.get(parent, {}).items())]
            self._sorted[parent] = found
        return found

    def everywhere(self, collection: str) -> Iterator[tuple[str, Object]]:
        """The objects of a collection in all scopes."""
        for parent in self._scopes.get(collection, ()):
            yield from self.children(parent)

    def in_network(self, collection: str, network: str) -> list[tuple[str, Object]]:
        """The objects of a collection that are in a network (its key), by their own field or by one of their NICs."""
        index = self._in_networks.get(collection)
        if index is None:
            index = self._in_networks[collection] = {}
            for key, value in self.everywhere(collection):
                nics = value.get("networkInterfaces") or (value,)
                for one in dict.fromkeys(key_of(nic["network"]) for nic in nics if "network" in nic):
                    index.setdefault(one, []).append((key, value))
        return index.get(network, [])

    def users(self, key: str) -> list[str]:
        """Keys of the objects that refer to `key`."""
        return sorted(self._used_by.get(key, ()))

    def references(self, key: str) -> tuple[str, ...]:
        """Keys that the object refers to."""
        return self._refers_to.get(key, ())

    def put(self, key: str, value: Object, references: Iterable[str] | None = None) -> None:
        """Writes an object.

        Args:
            key: Its key.
            value: The whole object; replaces what was there.
            references: Keys that it refers to and that therefore cannot be deleted; None leaves them as they were.

        Raises:
            ApiError: 503 when the disk takes no more; nothing has changed then.
        """
        held = tuple(sorted(set(references))) if references is not None else self.references(key)
        self._write(key, {**value, "_references": list(held)} if held else value)
        self._remember(key, value, held)
        self._tell(key)

    def remove(self, key: str) -> None:
        """Deletes an object; one that is not there is no error.

        Raises:
            ApiError: 503 when the disk takes no change; nothing has changed then.
        """
        if key not in self._objects:
            return
        try:
            self._path(key).unlink(missing_ok=True)
        except OSError as error:
            raise self._unwritable(error) from error
        del self._objects[key]
        parent, _, name = key.rpartition("/")
        del self._parents[parent][name]
        self._forget_lists(parent)
        self._forget_references(key)
        self._tell(key)

    def _remember(self, key: str, value: Object, references: Iterable[str]) -> None:
        self._objects[key] = value
        parent, _, name = key.rpartition("/")
        if parent not in self._parents:
            self._parents[parent] = {}
            scopes = self._scopes.setdefault(parent.rpartition("/")[2], [])
            scopes.append(parent)
            scopes.sort()
        self._parents[parent][name] = value
        self._forget_lists(parent)
        self._forget_references(key)
        self._refers_to[key] = tuple(references)
        for target in self._refers_to[key]:
            self._used_by.setdefault(target, set()).add(key)

    def _forget_lists(self, parent: str) -> None:
        self._sorted.pop(parent, None)
        self._in_networks.pop(parent.rpartition("/")[2], None)

    def _forget_references(self, key: str) -> None:
        for target in self._refers_to.pop(key, ()):
            users = self._used_by[target]
            users.discard(key)
            if not users:
                del self._used_by[target]

    def _path(self, key: str) -> Path:
        parts = key.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise ApiError(400, "invalid", f"'{key}' is not a valid resource name")
        return self._folder.joinpath(*parts[:-1], parts[-1] + ".json")

    def _write(self, key: str, value: Object) -> None:
        path = self._path(key)
        # One process writes, so the temporary file needs no name of its own kind.
        temporary = path.with_suffix(".new")
        text = json.dumps(value, separators=(",", ":"))
        try:
            if path.parent not in self._made:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._made.add(path.parent)
            with temporary.open("w") as file:
                file.write(text)
            temporary.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> ApiError:
        cure = (
            "Free some space and retry." if error.errno in (errno.ENOSPC, errno.EDQUOT) else "Make it writable again."
        )
        return ApiError(503, "backendError", f"The lab cannot write to {self._folder}: {error.strerror}. {cure}")

    def _tell(self, key: str) -> None:
        for watcher in self._watchers:
            watcher(key)

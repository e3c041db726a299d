"""Operations: what every change answers with, and what clients poll until it is DONE.

Form: discovery document compute.v1, schema ``Operation``. They live in memory: after a restart of the lab the objects
are what counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
import uuid
from collections import OrderedDict
from collections.abc import Coroutine
from typing import Any

from .clock import timestamp
from .errors import ApiError, not_found
from .links import link
from .store import Store

_KEPT = 20_000


class Operations:
    """All operations, the newest 20,000 of them."""

    def __init__(self, store: Store, project: str) -> None:
        self._store, self._project = store, project
        self._operations: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._requests: OrderedDict[tuple[str, uuid.UUID], str] = OrderedDict()
        self._finished: dict[str, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def done(self, kind: str, scope: str, target: str, target_id: str | None = None) -> dict[str, Any]:
        """An operation that has already happened.

        Args:
            kind: ``insert``, ``delete``, ``patch`` … as Google names them.
            scope: ``global``, ``regions/R`` or ``zones/Z``.
            target: Key of what it changed.
            target_id: The object's number; looked up when not given.
        """
        operation = self._new(kind, scope, target, target_id)
        self._finish(operation)
        return operation

    def run(
        self, kind: str, scope: str, target: str, work: Coroutine[Any, Any, None], target_id: str | None = None
    ) -> dict[str, Any]:
        """An operation that is RUNNING until `work` ends; an ApiError in it becomes the operation's error."""
        operation = self._new(kind, scope, target, target_id)
        self._finished[operation["name"]] = asyncio.Event()
        task = asyncio.get_running_loop().create_task(self._follow(operation, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return dict(operation)

    def get(self, scope: str, name: str) -> dict[str, Any]:
        """An operation by name.

        Raises:
            ApiError: 404 ``notFound``.
        """
        found = self._operations.get(f"{scope}/{name}")
        if found is None:
            raise not_found(f"projects/{self._project}/{scope}/operations/{name}")
        return dict(found)

    async def wait(self, scope: str, name: str, seconds: float = 120.0) -> dict[str, Any]:
        """An operation once it is DONE, or as it is after that many real seconds (Google waits two minutes too)."""
        self.get(scope, name)
        event = self._finished.get(name)
        if event is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await event.wait()
        return self.get(scope, name)

    def delete(self, scope: str, name: str) -> dict[str, Any]:
        """Forgets an operation; what it does goes on."""
        self.get(scope, name)
        del self._operations[f"{scope}/{name}"]
        return {}

    def listed(self, scope: str) -> list[dict[str, Any]]:
        """The operations of one scope, by name."""
        found = [dict(value) for key, value in self._operations.items() if key.rpartition("/")[0] == scope]
        return sorted(found, key=lambda operation: str(operation["name"]))

    def remember(self, scope: str, request: uuid.UUID, name: str) -> None:
        """Notes which operation answered a request that carried a ``requestId``."""
        self._requests[scope, request] = name
        while len(self._requests) > _KEPT:
            self._requests.popitem(last=False)

    def of_request(self, scope: str, request: uuid.UUID) -> dict[str, Any] | None:
        """The operation that answered a request with this ``requestId``, or None."""
        found = self._operations.get(f"{scope}/{self._requests.get((scope, request), '')}")
        return dict(found) if found else None

    async def close(self) -> None:
        """Ends what is still running."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _new(self, kind: str, scope: str, target: str, target_id: str | None) -> dict[str, Any]:
        stored = self._store.get(target) or {}
        parts = (str(int(time.time() * 1000)), secrets.token_hex(7)[:13], secrets.token_hex(4), secrets.token_hex(4))
        name = "-".join(("operation", *parts))
        now = timestamp()
        operation: dict[str, Any] = {
            "kind": "compute#operation",
            "id": self._store.new_id(),
            "name": name,
            "operationType": kind,
            "targetLink": link(target),
            "targetId": target_id or stored.get("id") or self._store.new_id(),
            "status": "RUNNING",
            "user": f"lab@{self._project}.iam.gserviceaccount.com",
            "progress": 0,
            "insertTime": now,
            "startTime": now,
            "selfLink": link(f"projects/{self._project}/{scope}/operations/{name}"),
        }
        place, _, _ = scope.partition("/")
        if place != "global":
            operation[place[:-1]] = link(f"projects/{self._project}/{scope}")
        self._operations[f"{scope}/{name}"] = operation
        while len(self._operations) > _KEPT:
            _, oldest = self._operations.popitem(last=False)
            self._finished.pop(oldest["name"], None)
        return operation

    def _finish(self, operation: dict[str, Any]) -> None:
        operation.update(status="DONE", progress=100, endTime=timestamp())
        event = self._finished.pop(operation["name"], None)
        if event is not None:
            event.set()

    async def _follow(self, operation: dict[str, Any], work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except ApiError as error:
            operation.update(
                error={"errors": [{"code": error.reason, "message": error.message}]},
                httpErrorStatusCode=error.code,
                httpErrorMessage=error.message,
            )
        finally:
            self._finish(operation)

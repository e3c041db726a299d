"""Google's client library for Compute Engine, as the operator commands use it.

It is imported at the first request: it takes seconds, and must not meet pulumi's provider modules in one process.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Self, TypeVar

from multinic.operate import links
from multinic.operate.door import TIMEOUT_SECONDS, Door, disabled, reason
from multinic.operate.errors import OperateError

T = TypeVar("T")
AT_ONCE = 8
OPERATION_SECONDS = 600.0
_RETRY_SECONDS = 20.0


class Api:
    """Compute Engine of one project; a context manager, which closes its connections.

    Attributes:
        door: Where it answers.
        project: Project of requests that name none.
        requests: How many have been sent.
    """

    def __init__(self, door: Door, project: str) -> None:
        self.door, self.project = door, project
        self.requests = 0
        self._counting, self._making = threading.Lock(), threading.Lock()
        self._credentials: Any = None
        # Shared by threads, as requests' connection pools are.
        self._clients: dict[str, Any] = {}
        self._pool = ThreadPoolExecutor(AT_ONCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        for client in self._clients.values():
            client.transport.close()

    def items(self, kind: str, method: str = "list", **request: Any) -> list[Any]:
        """All items of a list, page by page.

        Args:
            kind: The client's name without ``Client``, such as ``Routes``.
            method: Its method.
            request: Fields of the request; the project is added.

        Raises:
            OperateError: Google's refusal, in one sentence.
        """
        with _told(f"{kind}.{method}", self.door):
            pager = self._send(kind, method, request)
            found: list[Any] = []
            for number, page in enumerate(pager.pages):
                self._count(1 if number else 0)
                found.extend(_items(page))
            return found

    def get(self, kind: str, method: str = "get", **request: Any) -> Any:
        """One answer.

        Raises:
            OperateError: Google's refusal, in one sentence.
        """
        with _told(f"{kind}.{method}", self.door):
            return self._send(kind, method, request)

    def do(self, kind: str, method: str, **request: Any) -> None:
        """Begins a change and waits for the end of its operation.

        The library's own waiting asks Google Cloud even when the request went to another endpoint.

        Raises:
            OperateError: Google's refusal, the operation's error, or no end in `OPERATION_SECONDS`.
        """
        what = f"{kind}.{method}"
        # By its id Google knows a request that comes twice, and does it once.
        request["request_id"] = str(uuid.uuid4())
        with _told(what, self.door):
            operation = self._send(kind, f"{method}_unary", request)
            rounds = 0
            while operation.status.name != "DONE":
                rounds += 1
                # Each wait is held for up to two minutes by Google.
                if rounds > OPERATION_SECONDS / 120 + 1:
                    raise OperateError(f"{what}: operation {operation.name} has not ended; look at it in the console")
                operation = self._send(*self._waiting(operation), timeout=150.0)
        errors = [one.message or one.code for one in operation.error.errors]
        if errors:
            raise OperateError(f"{what}: {'; '.join(errors)}")

    def _waiting(self, operation: Any) -> tuple[str, str, dict[str, Any]]:
        link = operation.self_link or ""
        request: dict[str, Any] = {"project": links.project(link) or self.project, "operation": operation.name}
        if operation.zone:
            return "ZoneOperations", "wait", {**request, "zone": links.name(operation.zone)}
        if operation.region:
            return "RegionOperations", "wait", {**request, "region": links.name(operation.region)}
        return "GlobalOperations", "wait", request

    def together(self, *jobs: Callable[[], T]) -> Sequence[T]:
        """Runs several reads at the same time and returns their results in order."""
        return [future.result() for future in [self._pool.submit(job) for job in jobs]]

    def _send(self, kind: str, method: str, request: dict[str, Any], timeout: float | None = None) -> Any:
        self._count(1)
        call = getattr(self._client(kind), method)
        return call(request={"project": self.project, **request}, timeout=timeout or TIMEOUT_SECONDS, retry=_retry())

    def _client(self, kind: str) -> Any:
        with self._making:
            if kind not in self._clients:
                library = _library()
                if self._credentials is None:
                    self._credentials = self.door.credentials()
                options = {"api_endpoint": self.door.endpoint} if self.door.lab else {}
                make = getattr(library, f"{kind}Client")
                self._clients[kind] = make(client_options=options, credentials=self._credentials)
            return self._clients[kind]

    def _count(self, number: int) -> None:
        with self._counting:
            self.requests += number


def message(kind: str, **fields: Any) -> Any:
    """A message of Google's library, such as ``Route``."""
    return getattr(_library(), kind)(**fields)


def _library() -> Any:
    from google.cloud import compute_v1

    return compute_v1


def _retry() -> Any:
    """Requests are tried again for a while where that may help: not where nobody listens or the answer is no."""
    from google.api_core import exceptions, retry
    from requests.exceptions import ConnectionError as BrokenError

    def temporary(error: BaseException) -> bool:
        if isinstance(error, BrokenError):
            # A connection that was kept open and that the other side has closed meanwhile.
            return "Connection aborted" in str(error)
        return isinstance(error, exceptions.ServiceUnavailable | exceptions.TooManyRequests)

    return retry.Retry(predicate=temporary, initial=0.5, maximum=5.0, timeout=_RETRY_SECONDS)


def _items(page: Any) -> Iterator[Any]:
    """Items of a page, also of an aggregated list, whose items are lists by place."""
    items = page.managed_instances if hasattr(page, "managed_instances") else page.items
    if not hasattr(items, "items"):
        yield from items
        return
    for scoped in items.values():
        for field in type(scoped).meta.fields:
            if field != "warning":
                yield from getattr(scoped, field)


@contextmanager
def _told(what: str, door: Door) -> Iterator[None]:
    """Turns whatever the library raises into one sentence."""
    from google.api_core import exceptions
    from google.auth.exceptions import GoogleAuthError, RefreshError
    from google.protobuf.json_format import ParseError
    from requests.exceptions import RequestException

    try:
        yield
    except (ParseError, UnicodeDecodeError):
        raise OperateError(f"{what}: {door.no_json}") from None
    except (exceptions.Unauthorized, RefreshError):
        # Where a token is refused, the library asks for a new one, and that fails.
        raise OperateError(door.refused) from None
    except exceptions.Forbidden as error:
        said = _message(error)
        if api_off := disabled(said):
            raise OperateError(f"{what}: {api_off}") from None
        cure = "`multinic doctor` lists the permissions that are missing"
        raise OperateError(f"{what} is not permitted: {said}; {cure}") from None
    except (exceptions.RetryError, exceptions.ServiceUnavailable, exceptions.GatewayTimeout) as error:
        raise OperateError(f"{what}: {door.title} cannot answer now ({_message(error)}); try again") from None
    except exceptions.GoogleAPICallError as error:
        raise OperateError(f"{what}: {_message(error)}") from None
    except (GoogleAuthError, RequestException) as error:
        raise OperateError(f"{what}: {door.title} does not answer ({reason(error)})") from None


def _message(error: Any) -> str:
    text = str(getattr(error, "message", "") or error)
    cause = getattr(error, "cause", None)
    if cause is not None:
        with suppress(AttributeError):
            text = str(cause.message)
    # The library puts the request in front of Google's words.
    return re.sub(r"^(GET|POST|PATCH|PUT|DELETE) \S+: ", "", text).strip().rstrip(".")

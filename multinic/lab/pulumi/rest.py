"""Google's REST as a client sees it: requests with a token, error bodies, operations that take time."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

Document = dict[str, Any]

SERVICES = {
    "compute": "compute/beta/",
    "iam": "iam/v1/",
    "crm": "crm/v1/",
    "serviceusage": "serviceusage/v1/",
}
"""First part of each service's paths at the lab's front door. The plugin's own default for compute is beta."""

_REQUEST_TIMEOUT_S = 120.0
_FIRST_POLL_S = 0.02
_SLOWEST_POLL_S = 1.0


class LabUnreachableError(Exception):
    """Nothing answers where the lab should be."""


class ApiError(Exception):
    """An error that the API answered, in the words of Google's Go client, which are the plugin's too.

    Attributes:
        status: HTTP code, 0 for an error that an operation reported.
        reason: Google's machine-readable reason, such as ``notFound``.
        message: Google's sentence.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        prefix = f"googleapi: Error {status}: " if status else ""
        super().__init__(f"{prefix}{message}" + (f", {reason}" if reason else ""))
        self.status = status
        self.reason = reason
        self.message = message

    @property
    def is_missing(self) -> bool:
        """Whether the resource is not there."""
        return self.status == 404


class CancelledError(Exception):
    """The run was interrupted."""


class DeadlineError(Exception):
    """Something did not happen within its time limit."""


@dataclass(frozen=True)
class Rest:
    """A client of the lab's front door.

    Attributes:
        endpoint: ``http://HOST:PORT``, without a path.
        token: Sent as a bearer token.
        cancelled: Set when the run is interrupted: ends every wait for an operation or a group.
    """

    endpoint: str
    token: str
    cancelled: threading.Event = field(default_factory=threading.Event, compare=False)

    def pause(self, seconds: float) -> None:
        """Wait, unless the run is being cancelled.

        Raises:
            CancelledError: If it is.
        """
        if self.cancelled.wait(seconds):
            raise CancelledError("cancelled while waiting")

    def url(self, service: str, path: str) -> str:
        """Return the full URL of a path of a service."""
        return f"{self.endpoint.rstrip('/')}/{SERVICES[service]}{path}"

    def request(
        self, method: str, path: str, body: Document | None = None, *, service: str = "compute", **query: str
    ) -> Document:
        """Send one request and return the answer.

        Args:
            method: HTTP method.
            path: Path within the service, such as ``projects/p/global/networks``.
            body: JSON body, none for a request without one.
            service: Key of `SERVICES`.
            **query: Query parameters.

        Raises:
            ApiError: If the API refuses.
            LabUnreachableError: If there is no API.
        """
        address = urllib.parse.urlsplit(self.url(service, urllib.parse.quote(path, safe="/:@")))
        target = address.path + ("?" + urllib.parse.urlencode(query) if query else "")
        headers = {"Authorization": f"Bearer {self.token}", "User-Agent": "multinic-lab-pulumi"}
        payload = None
        if body is not None:
            payload = json.dumps(body)
            headers["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection(address.netloc, timeout=_REQUEST_TIMEOUT_S)
        try:
            connection.request(method, target, payload, headers)
            response = connection.getresponse()
            text = response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            detail = f"{type(error).__name__}: {error}"
            raise LabUnreachableError(
                f"the lab does not answer at {self.endpoint} ({detail}); is it running?"
            ) from error
        finally:
            connection.close()
        answer = _parse(text)
        if response.status >= 400:
            raise _error(response.status, answer, text)
        return answer

    def get(self, path: str, *, service: str = "compute", **query: str) -> Document:
        """Return a resource."""
        return self.request("GET", path, None, service=service, **query)

    def pages(self, path: str, *, key: str = "items", service: str = "compute", **query: str) -> list[Document]:
        """Return everything that a list has, all pages of it."""
        found: list[Document] = []
        while True:
            page = self.get(path, service=service, **query)
            found += page.get(key, [])
            if not page.get("nextPageToken"):
                return found
            query["pageToken"] = page["nextPageToken"]

    def run(self, method: str, path: str, body: Document | None, deadline: float, **query: str) -> Document:
        """Send a request that starts an operation and return the operation when it is done.

        Args:
            method: HTTP method.
            path: Path within the compute service.
            body: JSON body.
            deadline: Point of `time.monotonic` at which waiting ends.
            **query: Query parameters.

        Raises:
            ApiError: If the request is refused or the operation fails.
            DeadlineError: If the operation is still running at the deadline.
        """
        operation = self.request(method, path, body, service="compute", **query)
        pause = _FIRST_POLL_S
        while operation.get("status", "DONE") != "DONE":
            if time.monotonic() > deadline:
                raise DeadlineError(f"operation {operation.get('name')} ({method} {path}) is still running")
            self.pause(pause)
            pause = min(pause * 2, _SLOWEST_POLL_S)
            operation = self.get(_operation_path(operation, path))
        errors = (operation.get("error") or {}).get("errors") or []
        if errors:
            text = "; ".join(str(error.get("message", error.get("code", "unknown error"))) for error in errors)
            raise ApiError(int(operation.get("httpErrorStatusCode") or 0), str(errors[0].get("code", "")), text)
        return operation


def _operation_path(operation: Document, path: str) -> str:
    """Return where an operation is read: in the scope that it names itself, as the plugin does."""
    project = "/".join(path.split("/")[:2])
    for scope in ("zone", "region"):
        if operation.get(scope):
            return f"{project}/{scope}s/{operation[scope].rsplit('/', 1)[-1]}/operations/{operation['name']}"
    return f"{project}/global/operations/{operation['name']}"


def _parse(text: str) -> Document:
    try:
        answer = json.loads(text) if text else {}
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _error(status: int, answer: Document, text: str) -> ApiError:
    error = answer.get("error")
    if not isinstance(error, dict):
        return ApiError(status, "", text[:500] or "no message")
    details = error.get("errors") or [{}]
    return ApiError(status, str(details[0].get("reason") or error.get("status") or ""), str(error.get("message", "")))

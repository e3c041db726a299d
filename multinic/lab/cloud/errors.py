"""Errors in the form that Google's APIs give them: an HTTP code, a reason, a sentence.

Codes and reasons: https://cloud.google.com/compute/docs/troubleshooting/troubleshooting-api-errors and the
error reference of Google's JSON APIs, https://developers.google.com/webmaster-tools/v1/errors.
"""

from __future__ import annotations

from typing import Any

_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ALREADY_EXISTS",
    412: "FAILED_PRECONDITION",
    413: "INVALID_ARGUMENT",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
}


class ApiError(Exception):
    """A refusal, as a client sees it.

    Attributes:
        code: HTTP status.
        reason: Google's short word for the cause, such as ``notFound``.
        message: The sentence for people.
    """

    def __init__(self, code: int, reason: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.more = code, reason, message, more

    def body(self, *, compute: bool = True) -> dict[str, Any]:
        """The JSON answer: Compute Engine lists its errors, newer APIs give a canonical status."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if compute:
            error["errors"] = [{"message": self.message, "domain": "global", "reason": self.reason, **self.more}]
        if not compute or self.code in (400, 401, 403, 501):
            error["status"] = _STATUS.get(self.code, "UNKNOWN")
        return {"error": error}


def not_found(key: str) -> ApiError:
    """404 for an object that is not there; `key` is its path from ``projects/`` on."""
    return ApiError(404, "notFound", f"The resource '{key}' was not found")


def already_exists(key: str) -> ApiError:
    """409 for a name that is taken."""
    return ApiError(409, "alreadyExists", f"The resource '{key}' already exists")


def in_use(noun: str, key: str, user: str) -> ApiError:
    """400 for an object that another one still refers to."""
    return ApiError(
        400,
        "resourceInUseByAnotherResource",
        f"The {noun} resource '{key}' is already being used by '{user}'",
    )


def required(field: str) -> ApiError:
    """400 for a field that must be given; `field` counts from the request body."""
    return ApiError(400, "required", f"Required field 'resource.{field}' not specified")


def invalid(field: str, value: Any, why: str) -> ApiError:
    """400 for a value that its field does not take."""
    shown = value if isinstance(value, str) else _json(value)
    return ApiError(400, "invalid", f"Invalid value for field 'resource.{field}': '{shown}'. {why}")


def condition_not_met(what: str) -> ApiError:
    """412 for a fingerprint or ETag that is older than the object."""
    return ApiError(412, "conditionNotMet", f"{what} fingerprint does not match. Read the resource again and retry.")


def not_served(what: str) -> ApiError:
    """501 for what Google offers and the lab does not."""
    return ApiError(501, "notImplemented", f"The lab does not serve {what}. See docs/lab.md for what it serves.")


def _json(value: Any) -> str:
    import json

    text = json.dumps(value)
    return text if len(text) <= 200 else text[:197] + "..."

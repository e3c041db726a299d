"""Declares a router under mocks."""

from __future__ import annotations

from typing import Any

from multinic import MultinicRouter, MultinicRouterArgs, testing
from tests.unit.shapes import router_args


def declare(args: MultinicRouterArgs | None = None, *, preview: bool = False, **region: Any) -> testing.Declared:
    mocks = testing.Mocks(testing.Region(**region))
    return testing.run(lambda: MultinicRouter("router", args or router_args()), preview=preview, given=mocks)

"""One request to the cloud, and what answers it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from .store import Object

Answer = dict[str, Any]
Handler = Callable[["Call"], Answer | Coroutine[Any, Any, Answer]]


@dataclass(frozen=True)
class Call:
    """One request, already matched to a method of the discovery document and checked by it.

    Attributes:
        method: Such as ``instanceGroupManagers.resize``.
        params: Path and query parameters.
        body: The request's JSON object; nulls and empty texts are gone, but for a patch, where they mean "clear".
    """

    method: str
    params: Mapping[str, Any]
    body: Object = field(default_factory=dict)

    @property
    def scope(self) -> str:
        """``global``, ``regions/R`` or ``zones/Z``."""
        if "zone" in self.params:
            return f"zones/{self.params['zone']}"
        if "region" in self.params:
            return f"regions/{self.params['region']}"
        return "global"

"""Zones and regions.

https://cloud.google.com/compute/docs/regions-zones
"""

from __future__ import annotations

import zlib
from typing import ClassVar

from typing_extensions import override

from . import catalog
from .call import Answer, Call
from .errors import not_found
from .links import link, region_of
from .resource import Resource


def _id(name: str) -> str:
    return str(1000 + zlib.crc32(name.encode()) % 9000)


class Zones(Resource):
    """``zones``: fixed."""

    collection = "zones"
    noun = "zone"
    kind = "zone"
    served: ClassVar = {"global": "zones"}
    verbs = ("get", "list")

    def _zone(self, name: str) -> Answer:
        return {
            "kind": "compute#zone",
            "id": _id(name),
            "name": name,
            "description": name,
            "status": "UP",
            "region": link(f"projects/{self.project}/regions/{region_of(name)}"),
            "selfLink": link(f"projects/{self.project}/zones/{name}"),
            "creationTimestamp": self.cloud.began,
        }

    @override
    def get(self, call: Call) -> Answer:
        name = call.params["zone"]
        if name not in catalog.ZONES:
            raise not_found(f"projects/{self.project}/zones/{name}")
        return self._zone(name)

    @override
    def list_all(self, call: Call) -> Answer:
        return self.listing(f"projects/{self.project}/zones", [self._zone(name) for name in catalog.ZONES])


class Regions(Resource):
    """``regions``: fixed."""

    collection = "regions"
    noun = "region"
    kind = "region"
    served: ClassVar = {"global": "regions"}
    verbs = ("get", "list")

    def _region(self, name: str) -> Answer:
        zones = [zone for zone in catalog.ZONES if region_of(zone) == name]
        return {
            "kind": "compute#region",
            "id": _id(name),
            "name": name,
            "description": name,
            "status": "UP",
            "zones": [link(f"projects/{self.project}/zones/{zone}") for zone in zones],
            "selfLink": link(f"projects/{self.project}/regions/{name}"),
            "creationTimestamp": self.cloud.began,
        }

    @override
    def get(self, call: Call) -> Answer:
        name = call.params["region"]
        if name not in catalog.REGIONS:
            raise not_found(f"projects/{self.project}/regions/{name}")
        return self._region(name)

    @override
    def list_all(self, call: Call) -> Answer:
        return self.listing(f"projects/{self.project}/regions", [self._region(name) for name in catalog.REGIONS])

"""The limits and prices that plans are made with, read from `data/limits.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from multinic.machines import SERIES, Machine, parse
from multinic.measure.errors import MeasureError

FILE = Path(__file__).parents[1] / "data" / "limits.toml"


@dataclass(frozen=True)
class Type:
    """A machine type that can be planned with.

    Attributes:
        machine: What is known of it.
        vcpus: Number of vCPUs.
        gbps: What one VM may send, Gbit/s.
        tier_1: That is with Tier_1 networking, whose own charge is not in `hourly`.
        hourly: Price of an hour in US dollars.
    """

    machine: Machine
    vcpus: int
    gbps: float
    tier_1: bool
    hourly: float

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.machine.name} with Tier_1" if self.tier_1 else self.machine.name


@dataclass(frozen=True)
class Limits:
    """All of them.

    Attributes:
        tables: The file's content.
    """

    tables: Mapping[str, Any]

    def number(self, table: str, key: str) -> float:
        """One number.

        Raises:
            MeasureError: The file has none of that name.
        """
        try:
            return float(self.tables[table][key])
        except (KeyError, TypeError, ValueError):
            raise MeasureError(f"the data file has no number {table}.{key}") from None

    def source(self, table: str) -> str:
        """Where a table's figures come from, and when they were read."""
        found = self.tables.get(table, {})
        return f"{found.get('source', 'no source')}, read {found.get('date', 'some day')}"

    def types(self, *, tier_1: bool = False) -> list[Type]:
        """Every machine type that has a price and a known bandwidth, cheapest first."""
        found = []
        for series, price in self.tables["series"].items():
            for vcpus in SERIES[series].gbps:
                machine = parse(f"{series}-{price['kind']}-{vcpus}")
                assert machine is not None and machine.gbps is not None
                hourly = vcpus * (price["vcpu_hour"] + price["gb_hour"] * price["gb_per_vcpu"])
                found.append(Type(machine, vcpus, machine.gbps, False, hourly))
                if tier_1 and machine.tier_1_gbps:
                    found.append(Type(machine, vcpus, machine.tier_1_gbps, True, hourly))
        return sorted(found, key=lambda one: (one.hourly, one.name))


def load(path: Path = FILE) -> Limits:
    """Reads a data file.

    Raises:
        MeasureError: It cannot be read, or names a series that is not known.
    """
    try:
        tables = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise MeasureError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if unknown := set(tables.get("series", {})) - set(SERIES):
        raise MeasureError(f"{path}: series {', '.join(sorted(unknown))}: the bandwidth of its machines is not known")
    if not tables.get("series"):
        raise MeasureError(f"{path}: it has no [series.…] to plan with")
    return Limits(tables)

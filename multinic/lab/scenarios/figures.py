"""What live connections noticed of an event."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from multinic.lab.scenarios.traffic import Sample

Mark = tuple[str, float, str]
"""What happened, when, and its colour in the plot."""


@dataclass(kw_only=True)
class Figures:
    """One event and what the connections noticed. All times in seconds; moments are relative to the event.

    Attributes:
        engine: What ran the Pulumi program.
        boot_delay_s: Added to each boot, since guests boot faster here than VMs of a cloud.
        up_s: From the program's start until all routers served.
        longest_gap_s: The longest of the streams' gaps.
        caused_gap_s: Likewise, less what the machine caused itself (`gaps.judge`).
        lost_packets_s: When the gaps began and ended that were taken for a packet that the machine lost.
        gap_span_s: When the longest began and ended.
        gaps_s: Longest gap by stream.
        lost_streams: Streams that broke.
        failed_connections: New connections that got no answer in a minute.
        slow_connections: New connections that took longer than half a second.
        new_connections: How many were tried.
        ready_s: Until the whole fleet served again.
        lab_mb: Memory of the lab's own processes.
        guest_mb: Memory of the largest guest.
        samples: Per stream what came when; for the plot only.
    """

    engine: str
    boot_delay_s: float
    up_s: float
    longest_gap_s: float
    caused_gap_s: float
    gap_span_s: tuple[float, float]
    gaps_s: dict[str, float]
    lost_streams: int
    failed_connections: int
    slow_connections: int
    new_connections: int
    ready_s: float
    lab_mb: float
    guest_mb: float
    lost_packets_s: list[tuple[float, float]] = field(default_factory=list)
    samples: dict[str, list[Sample]] = field(default_factory=dict, repr=False)

    @property
    def title(self) -> str:
        """For the plot; runs of one title show the same."""
        raise NotImplementedError

    @property
    def marks(self) -> list[Mark]:
        """For the plot."""
        raise NotImplementedError

    def as_json(self) -> dict[str, Any]:
        """What `report.json` says of it: everything but the samples."""
        return {key: value for key, value in asdict(self).items() if key != "samples"}

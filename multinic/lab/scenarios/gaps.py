"""Times in which a stream got nothing, and what of them the event caused.

A machine under load makes pauses of its own, and a promise about the event is not about those. But an excuse must be
shown, not supposed: only two count, and the report says the bare figure beside the judged one.

1. A stream that passes no router paused at the same time: so long nobody in that guest could have got anything.
2. Nothing changed in the lab from a second before the gap until its end, and the gap is over with TCP's first
   retransmission. That is a packet which the machine lost. A path that is really gone needs the second one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

STALL_SECONDS = 0.05
"""Shorter gaps are the pace of the streams and of their reports."""
CAUSE_SECONDS = 1.0
"""A gap begins so soon after its cause: packets are steered by a change at once."""
LOST_PACKET_SECONDS = 0.2, 0.4
"""A lost packet is sent again after 0.2 s and the round trip's variation, the next time 0.4 s after that (RFC 6298)."""


@dataclass(frozen=True)
class Gap:
    """A time without received bytes, by the monotonic clock."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """How long it was."""
        return self.end - self.start


@dataclass(frozen=True)
class Judgement:
    """What a scenario's event caused.

    Attributes:
        caused: Seconds of the longest gap that are the event's.
        lost_packets: The gaps that were taken for a packet that the machine lost (2).
    """

    caused: float
    lost_packets: list[Gap]


def judge(gaps: Iterable[Gap], own: Sequence[Gap], changes: Sequence[float], event: float) -> Judgement:
    """What of the streams' gaps the event caused.

    Args:
        gaps: Of all streams.
        own: Of the streams that pass no router. Each ended: one that did not says that the stream is gone, no more.
        changes: When something changed in the lab, the event included.
        event: When it was; a gap that ended before has another cause.
    """
    longest, lost_packets = 0.0, []
    for gap in gaps:
        if gap.end <= event:
            continue
        seconds = gap.seconds if gap.seconds < STALL_SECONDS else gap.seconds - _stalled(gap, own)
        changed = any(gap.start - CAUSE_SECONDS <= change <= gap.end for change in changes)
        least, most = LOST_PACKET_SECONDS
        if seconds >= least and not changed and gap.seconds <= most:
            lost_packets.append(gap)
        else:
            longest = max(longest, seconds)
    return Judgement(longest, lost_packets)


def _stalled(gap: Gap, own: Sequence[Gap]) -> float:
    """For how much of a gap the machine stood still."""
    seconds, at = 0.0, gap.start
    for stall in sorted(own, key=lambda one: one.start):
        start, end = max(stall.start, at), min(stall.end, gap.end)
        if stall.seconds >= STALL_SECONDS and start < end:
            seconds, at = seconds + end - start, end
    return seconds

"""Consistent hashing: which backend each of 256 buckets of flows belongs to.

Rendezvous hashing (the backend with the highest score of bucket and name wins): when a backend goes, only its own
buckets move, and when it comes back, exactly those return. Both networks of a router get the same answer, as names
and buckets are the same. Google says that hashing is consistent and symmetric, not how it is done
(docs/lab-fidelity.md): https://docs.cloud.google.com/load-balancing/docs/internal/ilb-next-hop-overview
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

BUCKETS = 256


def owners(backends: Iterable[str]) -> list[str]:
    """The backend of each bucket.

    Args:
        backends: Their names, at least one.
    """
    names = sorted(backends)
    return [max(names, key=lambda name: _score(bucket, name)) for bucket in range(BUCKETS)]


def _score(bucket: int, name: str) -> bytes:
    return hashlib.blake2b(f"{bucket}/{name}".encode(), digest_size=8).digest()

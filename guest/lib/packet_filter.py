"""The packet filter: our own table of it, and what others' tables do to forwarding."""

from __future__ import annotations

import os
import re
from typing import Iterable, Mapping, NamedTuple

from program import run, run_together

COUNTER = re.compile(r"counter (\w+) \{\s*packets (\d+)")
COUNTS = re.compile(r"packets \d+ bytes \d+")
FORWARD_CHAIN = re.compile(r"type filter hook forward priority [^;]*; policy drop;")
INTERFACE = re.compile(r'(?:iif|oif)(?:name)? (?:!= )?"([^"]+)"')


def program() -> str | None:
    """The packet filter's program, which some images lack."""
    # Not by shutil, whose import costs every program a megabyte of compressors.
    places = (f"{folder}/nft" for folder in ("/usr/sbin", "/sbin", "/usr/bin", "/bin"))
    return next((place for place in places if os.access(place, os.X_OK)), None)


class Listing(NamedTuple):
    """What nft shows.

    Attributes:
        ours: Our table without counts; empty when there is none.
        drops: Its counts of packets.
        closing: Others' tables that drop what they are told nothing about on its way from NIC to NIC.
    """

    ours: str = ""
    drops: Mapping[str, int] = {}
    closing: tuple[str, ...] = ()


def listing() -> Listing | None:
    """Reads it; None without nft."""
    nft = program()
    if nft is None:
        return None
    # Asked in one process, nft would show the chains of our table only.
    own, all_chains = run_together([[nft, "list", "table", "ip", "multinic"], [nft, "list", "chains"]])
    blocks = re.split(r"^table ", all_chains[1], flags=re.MULTILINE)[1:]
    closing = tuple(" ".join(block.split(None, 2)[:2]) for block in blocks if FORWARD_CHAIN.search(block))
    if own[0] != 0:
        return Listing(closing=closing)
    counts = {name: int(packets) for name, packets in COUNTER.findall(own[1])}
    return Listing(COUNTS.sub("", own[1]), counts, closing)


def lets_pass(table: str, devices: Iterable[str]) -> bool:
    """Whether a rule of a table that drops by default may accept packets from NIC to NIC.

    Docker's accept only what comes from or goes to its own bridges.

    Args:
        table: Family and name.
        devices: Interface names of the NICs.
    """
    nft = program()
    if nft is None:
        return True
    _, rules, _ = run([nft, "list", "table", *table.split()])
    accepting = [line for line in rules.splitlines() if line.rstrip().endswith("accept")]
    return any(not set(INTERFACE.findall(line)) - set(devices) for line in accepting)


def load(table: str) -> str | None:
    """Replaces our table in one transaction. Returns what went wrong."""
    nft = program()
    if nft is None:
        return None
    # Declared first, since deleting what is not there would fail the transaction.
    code, _, errors = run([nft, "-f", "-"], f"table ip multinic\ndelete table ip multinic\n{table}")
    return None if code == 0 else f"nft: {errors.strip()}"

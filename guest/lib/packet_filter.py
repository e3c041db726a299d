"""The packet filter: our own table of it, and what others' tables do to forwarding."""

from __future__ import annotations

import os
import re
from typing import Iterable

from program import run

COUNTER = re.compile(r"counter (\w+) \{\s*packets (\d+)")
COUNTS = re.compile(r"packets \d+ bytes \d+")
FORWARD_CHAIN = re.compile(r"type filter hook forward priority [^;]*; policy drop;")
INTERFACE = re.compile(r'(?:iif|oif)(?:name)? (?:!= )?"([^"]+)"')


def program() -> str | None:
    """The packet filter's program, which some images lack."""
    # Not by shutil, whose import costs every program a megabyte of compressors.
    places = (f"{folder}/nft" for folder in ("/usr/sbin", "/sbin", "/usr/bin", "/bin"))
    return next((place for place in places if os.access(place, os.X_OK)), None)


def listing() -> tuple[str, dict[str, int]] | None:
    """Our table as nft prints it, without counts, and the counts; empty when there is none; None without nft."""
    nft = program()
    if nft is None:
        return None
    code, output, _ = run([nft, "list", "table", "ip", "multinic"])
    if code != 0:
        return "", {}
    counts = {name: int(packets) for name, packets in COUNTER.findall(output)}
    return COUNTS.sub("", output), counts


def forward_policies(devices: Iterable[str]) -> tuple[list[str], list[str]]:
    """Others' filters that drop what they are not told to let pass, as Docker's does.

    Args:
        devices: Interface names of the NICs.

    Returns:
        Tables that let nothing pass from NIC to NIC, since each rule that accepts names another interface; and tables
        whose rules may have been made for this router.
    """
    nft = program()
    if nft is None:
        return [], []
    _, output, _ = run([nft, "list", "chains"])
    closed: list[str] = []
    unclear: list[str] = []
    for block in re.split(r"^table ", output, flags=re.MULTILINE)[1:]:
        table = " ".join(block.split(None, 2)[:2])
        if not FORWARD_CHAIN.search(block):
            continue
        _, rules, _ = run([nft, "list", "table", *table.split()])
        accepting = [line for line in rules.splitlines() if line.rstrip().endswith("accept")]
        ours = [line for line in accepting if not set(INTERFACE.findall(line)) - set(devices)]
        (unclear if ours else closed).append(table)
    return closed, unclear


def load(table: str) -> str | None:
    """Replaces our table in one transaction. Returns what went wrong."""
    nft = program()
    if nft is None:
        return None
    # Declared first, since deleting what is not there would fail the transaction.
    code, _, errors = run([nft, "-f", "-"], f"table ip multinic\ndelete table ip multinic\n{table}")
    return None if code == 0 else f"nft: {errors.strip()}"

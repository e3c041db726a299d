"""The packet filter: our own table of it, and what others' tables do to forwarding."""

from __future__ import annotations

import json
import os
import re
import socket
import struct
from typing import Iterable, Mapping, NamedTuple, Sequence

import paths
from program import run

COUNTER = re.compile(r"counter (\w+) \{\s*packets (\d+)")
COUNTS = re.compile(r"packets \d+ bytes \d+")
ON_THE_WAY = re.compile(r"type (?:filter|route) hook (?:prerouting|forward|postrouting) priority [^;]*; policy (\w+);")
"""The head of a chain that packets pass on their way from NIC to NIC."""

CHAIN = re.compile(r"^\tchain (\S+) \{\n(.*?)^\t\}", re.MULTILINE | re.DOTALL)
JUMP = re.compile(r"(?:jump|goto) ([^\s,}]+)")
REMARK = re.compile(
    r' ?(?:comment "[^"]*"|counter (?:packets \d+ bytes \d+|name "[^"]*")|log(?: prefix "[^"]*")?(?: level \w+)?)'
)
"""What a rule says beside what it demands and what it does."""

INTERFACE = re.compile(r'(?:iif|oif)(?:name)? "([^"]+)"')
"""What a rule demands of an interface; one that it forbids leaves the others."""

ACCEPTS = re.compile(r"(?<![\w-])accept(?![\w-])")
QUOTED = re.compile(r'"[^"]*"')

NOTHING = "\n"
"""Loaded in the place of our table, it takes it away."""

NETLINK_NETFILTER = 12
GETGEN, NEWGEN = (10 << 8) | 16, (10 << 8) | 15
"""What generation of its rules the kernel is at: linux/netfilter/nf_tables.h, NFT_MSG_*, subsystem 10."""

FIRST = 1
"""The generation in which no table has ever been made: nf_tables_init_net in net/netfilter/nf_tables_api.c."""


class Listing(NamedTuple):
    """What nft shows.

    Attributes:
        generation: The kernel's number of this state of all tables; None where it tells none.
        ours: Our table without counts; empty when there is none, None when it was not asked for.
        drops: Its counts of packets.
        closing: Others' tables that drop what they are told nothing about on its way from NIC to NIC; for each, the
            interfaces that its accepting rules demand.
        exists: Whether there is a table of our name.
    """

    generation: int | None = None
    ours: str | None = None
    drops: Mapping[str, int] = {}
    closing: Mapping[str, tuple[frozenset[str], ...]] = {}
    exists: bool = False


_kept = Listing()
"""The last listing, good until the generation changes."""


def program() -> str | None:
    """The packet filter's program, which some images lack."""
    # Not by shutil, whose import costs every program a megabyte of compressors.
    places = (f"{folder}/nft" for folder in ("/usr/sbin", "/sbin", "/usr/bin", "/bin"))
    return next((place for place in places if os.access(place, os.X_OK)), None)


def generation() -> int | None:
    """The kernel's number of the present state of all tables: one message instead of two programs."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_NETFILTER) as channel:
            channel.settimeout(1.0)
            channel.send(struct.pack("=IHHIIBBH", 20, GETGEN, 1, 1, 0, 0, 0, 0))
            answer = channel.recv(4096)
    except OSError:
        return None
    # Header, the family's own header, and the first attribute: length, kind 1, the number with its high byte first.
    if len(answer) < 28 or struct.unpack_from("=H", answer, 4)[0] != NEWGEN:
        return None
    return int(struct.unpack_from(">I", answer, 24)[0])


def asked(at: int | None, fresh: bool = True) -> list[tuple[list[str], str]]:
    """The programs that show it, with their input; none without nft, without tables, or where nothing has changed.

    Args:
        at: The present generation.
        fresh: Show it also when nothing has changed since the last time, to know the counts.
    """
    nft = program()
    if nft is None or at == FIRST or (not fresh and at is not None and at == _kept.generation):
        return []
    # Asked in one process, nft would show the chains of our table only.
    asked = [([nft, "list", "chains"], "")]
    return [*asked, ([nft, "list", "table", "ip", "multinic"], "")] if _record()[0].strip() else asked


def understood(at: int | None, answers: Sequence[tuple[int, str, str]]) -> Listing | None:
    """What they have shown; None without nft.

    Args:
        at: The generation from before they ran: a change while they read shows as one at the next look.
        answers: Of the programs; where there are none, what they showed last is still true of others' tables.
    """
    global _kept
    nft = program()
    if nft is None:
        return None
    if not answers:
        return _kept._replace(generation=at)
    blocks = re.split(r"^table ", answers[0][1], flags=re.MULTILINE)[1:]
    # Those of other families, `ip6` say, see no packet of IPv4.
    tables = {" ".join(block.split(None, 2)[:2]): block for block in blocks if block.startswith(("ip ", "inet "))}
    exists = tables.pop("ip multinic", None) is not None
    hooked = [table for table, block in tables.items() if ON_THE_WAY.search(block)]
    whole = {table: run([nft, "list", "table", *table.split()])[1] for table in hooked}
    closing = {table: accepting(rules) for table, rules in whole.items() if is_closing(rules)}
    _kept = Listing(at, closing=closing, exists=exists)
    for code, shown, _ in answers[1:]:
        counts = {name: int(packets) for name, packets in COUNTER.findall(shown)} if code == 0 else {}
        _kept = _kept._replace(ours=COUNTS.sub("", shown) if code == 0 else "", drops=counts)
    return _kept


def is_closing(rules: str) -> bool:
    """Whether a table drops what it is told nothing about, by the policy or a rule of a chain that all packets pass.

    A rule that demands something, be it an interface, is meant so.

    Args:
        rules: The table as nft shows it.
    """
    chains, left = _chains(rules)
    while left:
        for line in chains.pop(left.pop(), "").splitlines():
            head = ON_THE_WAY.search(line)
            words = [head[1]] if head else REMARK.sub("", line).split()
            if words[:1] in (["drop"], ["reject"]):
                return True
            if "return" in words:
                break  # what follows is for the others
            if words[:1] in (["jump"], ["goto"]):
                left.append(words[1])
    return False


def accepting(rules: str) -> tuple[frozenset[str], ...]:
    """The interfaces that each rule demands which accepts packets on their way.

    Args:
        rules: The table as nft shows it.
    """
    chains, left = _chains(rules)
    if " vmap @" in rules:
        left = list(chains)  # the chains' names stand elsewhere
    found = []
    while left:
        for line in chains.pop(left.pop(), "").splitlines():
            # A comment or a log's prefix may hold any word.
            bare = QUOTED.sub("", line)
            left += JUMP.findall(bare)
            if ACCEPTS.search(bare) and not ON_THE_WAY.search(line):
                found.append(frozenset(INTERFACE.findall(line)))
    return tuple(found)


def _chains(rules: str) -> tuple[dict[str, str], list[str]]:
    """The chains of a table by name, and the names of those that packets on their way pass first."""
    chains = dict(CHAIN.findall(rules))
    return chains, [name for name, body in chains.items() if ON_THE_WAY.search(body)]


def lets_pass(accepting: Iterable[frozenset[str]], devices: Iterable[str]) -> bool:
    """Whether a rule of a table that drops by default may accept packets from NIC to NIC.

    Docker's accept only what comes from or goes to its own bridges.

    Args:
        accepting: The interfaces that each accepting rule demands.
        devices: Interface names of the NICs.
    """
    nics = tuple(devices)
    return any(all(_is_one_of(name, nics) for name in interfaces) for interfaces in accepting)


def _is_one_of(name: str, nics: Iterable[str]) -> bool:
    """Whether a rule's interface, which may be a beginning such as ``ens*``, is one of the NICs."""
    return any(nic.startswith(name[:-1]) if name.endswith("*") else nic == name for nic in nics)


def is_loaded(table: str, shown: Listing) -> bool:
    """Whether our table is still the one that was loaded.

    nft has its own words for rules. What it shows first, while nothing has changed since the loading, is what it must
    show from then on.

    Args:
        table: What should be loaded.
        shown: What nft shows now.
    """
    loaded, at, words = _record()
    if loaded != table:
        return False
    if words:
        return shown.ours in (None, words)
    if at != shown.generation or shown.ours == "":
        return False
    if shown.ours:
        paths.write(paths.NFT_LOADED, json.dumps([table, at, shown.ours]), 0o600)
    return True


def _record() -> tuple[str, int | None, str]:
    """The table as last loaded, the generation that it made, and nft's words for it as soon as they are known."""
    try:
        table, at, words = json.loads(paths.read(paths.NFT_LOADED) or "[]")
    except ValueError:
        return "", None, ""
    return str(table), at, str(words)


def loading(table: str, at: int | None) -> list[tuple[list[str], str]]:
    """The program, with its input, that replaces our table in one transaction; none without nft.

    Args:
        table: What is loaded.
        at: The present generation.
    """
    nft = program()
    if nft is None:
        return []
    if at == FIRST or (at is not None and at == _kept.generation and not _kept.exists):
        # The kernel takes some 10 ms to delete a table, also one that was made for that.
        return [([nft, "-f", "-"], table)]
    # Declared first, since deleting what is not there would fail the transaction.
    return [([nft, "-f", "-"], f"table ip multinic\ndelete table ip multinic\n{table}")]


def loaded(table: str, code: int, errors: str) -> str:
    """Takes note of how that program ended. Returns what went wrong; empty when nothing has."""
    global _kept
    _kept = _kept._replace(generation=None, ours=None, drops={})
    if code != 0:
        return f"nft: {errors.strip()}"
    words, at = "", generation()
    nft = program()
    if nft is not None and _record()[0] == table:
        # A second time: others may change theirs so often that ours is never seen before they do. So it is seen now.
        _, shown, _ = run([nft, "list", "table", "ip", "multinic"])
        words = COUNTS.sub("", shown) if generation() == at else ""
    paths.write(paths.NFT_LOADED, json.dumps([table, at, words]), 0o600)
    return ""

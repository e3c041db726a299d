"""The kernel's present state by `ip -json`, in one process, and changes to it, in one process."""

from __future__ import annotations

import json
import os
import re
from ipaddress import IPv4Network
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

import packet_filter
import paths
from foreign import ForeignRule
from links import LinkState, parsed
from program import KernelError, run_together
from wanted import DEFAULT, DROP_RULE, LOCAL, MAIN, PROTOCOL, TRANSIT_RULE, Lookup, Route, Rule

KINDS = {
    "1": "unicast",
    "2": "local",
    "3": "broadcast",
    "4": "anycast",
    "5": "multicast",
    "6": "blackhole",
    "7": "unreachable",
    "8": "prohibit",
    "9": "throw",
}
TABLES = {"main": MAIN, "local": LOCAL, "default": DEFAULT}
DROP_ACTIONS = ("6", "blackhole")
APOSTROPHE = re.compile(r"(\\\\)|\\'")


class Observed(NamedTuple):
    """What the kernel holds.

    Attributes:
        links: By interface name.
        routes: With the origin mark of who made them.
        rules: Likewise.
        foreign: Others' rules before ours.
        lookups: The answers.
        sysctls: Values by path; None where there is none.
        filter: None without nft.
        neighbours: Interface and address of entries that nobody but an administrator changes.
        refused: What was said about changes that failed, one text each.
        unloaded: Why nft would not load the packet filter; empty when it has, or was not asked.
    """

    links: Mapping[str, LinkState]
    routes: tuple[tuple[Route, int], ...]
    rules: tuple[tuple[Rule, int], ...]
    foreign: tuple[ForeignRule, ...]
    lookups: Mapping[tuple[str, str, str], str]
    sysctls: Mapping[str, str | None]
    filter: packet_filter.Listing | None
    neighbours: frozenset[tuple[str, str]] = frozenset()
    refused: tuple[str, ...] = ()
    unloaded: str = ""


def observe(
    lookups: Iterable[Lookup], sysctls: Iterable[str], changes: Sequence[str] = (), load: str = "", fresh: bool = True
) -> Observed:
    """Reads everything that the wanted state speaks about.

    Args:
        lookups: Routing decisions to ask for; one that the kernel refuses is missing from the answer.
        sysctls: Paths below /proc/sys.
        changes: `ip` commands that the same process runs before, all of them, also after one that fails.
        load: A packet filter that nft loads at the same time.
        fresh: Have nft show the packet filter also when it has not changed since the last time.
    """
    shows = ["link show", "addr show", "route show table all", "rule show", "neigh show nud permanent nud noarp"]
    lines = [*changes, *shows]
    for destination, source, iif, _ in lookups:
        lines += [f"route get {destination} from {source}" + (f" iif {iif}" if iif else "")]
    # -N: numbers, since names of tables and protocols are anybody's. -force: a refused lookup must not end the batch.
    batch = (["ip", "-4", "-N", "-d", "-json", "-force", "-batch", "-"], "\n".join(lines) + "\n")
    at = packet_filter.generation()
    (_, output, errors), *filtered = run_together(
        [batch, *(packet_filter.loading(load, at) if load else packet_filter.asked(at, fresh))]
    )
    answers = _documents(output)
    if len(answers) < len(shows):
        raise KernelError(f"ip: {errors.strip() or 'no answer'}")
    links, addresses, routes, rules, neighbours = answers[: len(shows)]
    unloaded = ""
    if load and filtered:
        code, _, said = filtered.pop()
        unloaded = packet_filter.loaded(load, code, said)
        at = packet_filter.generation()
    return Observed(
        links=parsed(links, addresses),
        routes=tuple((_route(raw), _int(raw.get("protocol"))) for raw in routes if raw),
        rules=tuple((_rule(raw), _int(raw.get("protocol"))) for raw in rules if raw),
        foreign=tuple(_foreign(raw) for raw in rules if raw and _before_ours(raw)),
        lookups=dict(_lookup(answer[0]) for answer in answers[len(shows) :] if answer),
        sysctls={path: sysctl(path) for path in sysctls},
        filter=packet_filter.understood(at, filtered),
        neighbours=frozenset((raw.get("dev", ""), raw.get("dst", "")) for raw in neighbours if raw),
        refused=tuple(_refused(changes, errors)),
        unloaded=unloaded,
    )


def _documents(output: str) -> list[Any]:
    """The JSON documents that a batch prints one after the other."""
    # A route's encapsulation is printed into the same object, with a destination of its own after the route's.
    # An alias of a link may hold control characters, and older ones have a backslash before each apostrophe.
    decoder = json.JSONDecoder(object_pairs_hook=lambda pairs: dict(reversed(pairs)), strict=False)
    output = APOSTROPHE.sub(lambda found: found[1] or "'", output)
    found = []
    start = output.find("[")
    while start >= 0:
        try:
            document, end = decoder.raw_decode(output, start)
        except ValueError as error:
            raise KernelError(f"ip: not JSON ({error})") from error
        found.append(document)
        start = output.find("[", end)
    return found


def _int(value: Any) -> int:
    return int(value) if str(value or "").isdigit() else 0


def _table(raw: Any) -> int:
    name = str(raw.get("table", MAIN))
    return int(name) if name.isdigit() else TABLES.get(name, 0)


def _route(raw: Any) -> Route:
    kind = str(raw.get("type", "1"))
    return Route(
        table=_table(raw),
        destination=raw.get("dst", ""),
        device=raw.get("dev", "") if KINDS.get(kind, kind) != "blackhole" else "",
        via=raw.get("gateway", ""),
        kind=KINDS.get(kind, kind),
        source=raw.get("prefsrc", ""),
        metric=raw.get("metric", 0),
        extra=" ".join(f"{key} {raw[key]}" for key in ("metrics", "nexthops", "encap", "via", "flow") if raw.get(key)),
        key=" ".join(f"{key} {raw[key]}" for key in ("tos", "nhid") if raw.get(key)),
    )


def _rule(raw: Any) -> Rule:
    """What a rule asks beyond source, destination and incoming NIC (a mark, say) goes into `source`: ours have none."""
    known = {"priority", "src", "srclen", "dst", "dstlen", "iif", "iif_detached", "table", "action", "protocol"}
    foreign = set(raw) - known
    drop = str(raw.get("action", "")) in DROP_ACTIONS
    action = [] if "action" not in raw or drop else [f"action {raw['action']}"]
    return Rule(
        priority=raw.get("priority", 0),
        source=" ".join([_selector(raw, "src"), *sorted(f"{key} {raw[key]}" for key in foreign), *action]),
        destination=_selector(raw, "dst"),
        iif=raw.get("iif", "") + (" [detached]" if "iif_detached" in raw else ""),
        table=0 if drop else _table(raw),
    )


def _before_ours(raw: Any) -> bool:
    """Whether a rule is somebody's, comes before the last of ours, and can fit packets that nobody has marked."""
    marked = int(str(raw.get("fwmark", "0")), 0) != 0 or bool({"oif", "l3mdev", "tun_id"} & set(raw))
    ours = _int(raw.get("protocol")) == PROTOCOL
    harmless = (marked and "not" not in raw) or "nop" in raw or ours or _table(raw) == LOCAL
    return raw.get("priority", 0) < DROP_RULE + 100 and not harmless


def _foreign(raw: Any) -> ForeignRule:
    priority, protocol = raw.get("priority", 0), _int(raw.get("protocol"))
    words = [f"pref {priority}"] + [
        f"{word} {raw[key]}/{raw.get(key + 'len', 32)}"
        for word, key in (("from", "src"), ("to", "dst"))
        if raw.get(key, "all") != "all"
    ]
    if "iif" in raw:
        words.append(f"iif {raw['iif']}")
    if protocol:
        words.append(f"protocol {protocol}")
    # Also where it leads: without a priority, which 0 is to the kernel, the first rule that fits would go.
    if "table" in raw:
        words.append(f"lookup {_table(raw)}")
    elif str(raw.get("action", "")) in DROP_ACTIONS:
        words.append("blackhole")
    over = "over" if "goto" in raw and _int(raw["goto"]) > TRANSIT_RULE else None
    return ForeignRule(
        priority=priority,
        protocol=protocol,
        source=IPv4Network(_selector(raw, "src").replace("all", "0.0.0.0/0"), strict=False),
        destination=IPv4Network(_selector(raw, "dst").replace("all", "0.0.0.0/0"), strict=False),
        iif=raw.get("iif", ""),
        inverted="not" in raw,
        table=_table(raw) if "table" in raw else 0,
        ends="" if "action" in raw else over,
        suppress=raw.get("suppress_prefixlen", -1),
        selector=" ".join(["not", *words] if "not" in raw else words),
    )


def _selector(raw: Any, key: str) -> str:
    return f"{raw[key]}/{raw[key + 'len']}" if key + "len" in raw else str(raw.get(key, "all"))


def _lookup(raw: Any) -> tuple[tuple[str, str, str], str]:
    local = KINDS.get(str(raw.get("type", "1")), str(raw.get("type"))) == "local"
    return (raw.get("dst", ""), raw.get("from", ""), raw.get("iif", "")), "local" if local else raw.get("dev", "")


def _refused(changes: Sequence[str], errors: str) -> list[str]:
    """What a batch said about those of its first lines that failed."""
    failed = []
    message = ""
    for line in errors.splitlines():
        if not line.startswith("Command failed -:"):
            message = line.strip()
            continue
        number = line.rpartition(":")[2].strip()
        if number.isdigit() and 0 < int(number) <= len(changes):
            failed.append(f"ip {changes[int(number) - 1]}: {message or 'failed'}")
        message = ""
    return failed


def sysctl(path: str, value: str | None = None) -> str | None:
    """Reads a sysctl, or writes it first. None when there is no such sysctl."""
    full = os.path.join(paths.SYSCTL, path)
    try:
        if value is not None:
            with open(full, "w", encoding="ascii") as file:
                file.write(value)
        with open(full, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None

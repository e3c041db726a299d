"""Compares wanted with observed, changes what differs, and looks again: only a second look counts as success."""

from __future__ import annotations

import fcntl
import json
import os
import time
from typing import NamedTuple

import kernel
import paths
from model import Router
from wanted import BASE_RULES, LOCAL, PROTOCOL, Link, Route, Rule, Wanted, names, owned, wanted


class Difference(NamedTuple):
    """One thing that is not as wanted.

    Attributes:
        reason: Stable name, for programs.
        detail: For people.
        commands: What `ip` must do about it; empty where something else must be done, or nothing can.
    """

    reason: str
    detail: str
    commands: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """What a pass found and left.

    Attributes:
        found: Differences before the pass.
        left: Differences after it; none means that the router forwards as wanted.
        errors: What programs said when they refused a change.
        warnings: What is worth a word but does not stop forwarding.
    """

    found: tuple[Difference, ...]
    left: tuple[Difference, ...]
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Lock:
    """Keeps two programs from changing the kernel at the same time; held by a file, freed by the kernel with its holder."""

    def __init__(self, wait: float = 15.0) -> None:
        self.wait = wait

    def __enter__(self) -> None:
        os.makedirs(paths.RUN, exist_ok=True)
        self.file = os.open(paths.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        end = time.monotonic() + self.wait
        while True:
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError:
                if time.monotonic() > end:
                    os.close(self.file)
                    raise kernel.Failed("another policy-routing has been at work for too long") from None
                time.sleep(0.02)

    def __exit__(self, *_: object) -> None:
        os.close(self.file)


def reconcile(router: Router, change: bool = True) -> Outcome:
    """One pass.

    Args:
        router: From the metadata.
        change: False only looks.
    """
    target, observed, found = _look(router)
    if not found or not change:
        return Outcome(tuple(found), tuple(found), warnings=_warnings(router))
    errors = _repair(target, found)
    write_names(router)
    # Routes over a NIC can be made only once its link is up, and a NIC may just have come: a second pass does what the first could not.
    target, observed, left = _look(router)
    if left:
        errors = _repair(target, left)
        target, observed, left = _look(router)
    return Outcome(tuple(found), tuple(left), tuple(errors), _warnings(router))


def _warnings(router: Router) -> tuple[str, ...]:
    if router.clamp_mss is not None and kernel.nft_program() is None:
        return ("clamp-unavailable: clamp_mss is set, and this image has no nft",)
    return ()


def _look(router: Router) -> tuple[Wanted, kernel.Observed, list[Difference]]:
    """Reads the kernel. NICs are found by MAC in the answer itself; only if a name is not the last known one is a second look needed."""
    macs = {nic.index: nic.mac for nic in router.nics}
    guess = wanted(router, _last_devices)
    observed = kernel.observe(guess.lookups, [path for path, _ in guess.sysctls])
    present = kernel.devices(macs, observed.links)
    target = guess
    if present != _last_devices:
        _last_devices.clear()
        _last_devices.update(present)
        target = wanted(router, present)
        observed = kernel.observe(target.lookups, [path for path, _ in target.sysctls])
    missing = [
        Difference("nic-missing", f"nic{nic.index}: no interface has the MAC {nic.mac}")
        for nic in router.nics
        if nic.index not in present
    ]
    return target, observed, missing + differences(target, observed)


_last_devices: dict[int, str] = {}


def differences(target: Wanted, observed: kernel.Observed) -> list[Difference]:
    """Pure comparison, in the order in which things must be changed."""
    found: list[Difference] = []
    for link in target.links:
        found += _link(link, observed.links[link.device])
    found += _sysctls(target, observed)
    found += _routes(target, observed)
    found += _rules(target, observed)
    if observed.nft is not None and not _nft_as_loaded(target.nft, observed.nft):
        found.append(Difference("filter-missing", "table ip multinic is not the one that was loaded"))
    if not found:
        for lookup in target.lookups:
            answer = observed.lookups.get((lookup.destination, lookup.source, lookup.iif), "nothing")
            if answer != lookup.device:
                way = f"{lookup.source} → {lookup.destination}" + (f" in by {lookup.iif}" if lookup.iif else "")
                found.append(Difference("lookup-wrong", f"{way}: {answer}, not {lookup.device}"))
    return found


def _link(link: Link, state: kernel.LinkState) -> list[Difference]:
    found = []
    if link.mtu is not None and state.mtu != link.mtu:
        found.append(
            Difference(
                "mtu-wrong",
                f"{link.device}: {state.mtu}, not {link.mtu}",
                (f"link set dev {link.device} mtu {link.mtu}",),
            )
        )
    if not state.up:
        found.append(Difference("link-down", f"{link.device} is down", (f"link set dev {link.device} up",)))
    elif not state.carrier:
        found.append(Difference("link-down", f"{link.device} has no carrier"))
    if link.address not in state.addresses:
        found.append(
            Difference(
                "address-missing",
                f"{link.address} on {link.device}",
                (f"addr add {link.address}/32 dev {link.device}",),
            )
        )
    return found


def _sysctls(target: Wanted, observed: kernel.Observed) -> list[Difference]:
    return [
        Difference("sysctl-wrong", f"{path}={observed.sysctls.get(path)}, not {value}")
        for path, value in target.sysctls
        if observed.sysctls.get(path) != value
    ]


def _routes(target: Wanted, observed: kernel.Observed) -> list[Difference]:
    found = []
    present = {route for route, _ in observed.routes}
    local = {route.destination for route in present if route.table == LOCAL and route.kind == "local"}
    for route in target.routes:
        # Whoever made the local route of an address (the guest agent does, too), packets for it are delivered.
        if route not in present and not (route.kind == "local" and route.destination in local):
            name = "local-route-missing" if route.kind == "local" else "route-missing"
            found.append(Difference(name, describe(route), (f"route replace {describe(route)}",)))
    wanted_keys = {(route.table, route.destination) for route in target.routes}
    for route, protocol in observed.routes:
        ours = owned(route.table) or (route.table == LOCAL and protocol == PROTOCOL)
        if not ours or route in target.routes:
            continue
        # One that differs in its way only is replaced above.
        commands = (
            ()
            if (route.table, route.destination) in wanted_keys and route.table != LOCAL
            else (f"route del {describe(route, protocol)}",)
        )
        found.append(Difference("route-unwanted", describe(route), commands))
    return found


def _rules(target: Wanted, observed: kernel.Observed) -> list[Difference]:
    found = []
    present = [rule for rule, _ in observed.rules]
    for rule in target.rules:
        if rule not in present:
            found.append(Difference("rule-missing", describe(rule), (f"rule add {describe(rule)}",)))
    for base in BASE_RULES:
        # Some network plugins move the `local` rule; anywhere before ours it does its work.
        if not any(r._replace(priority=base.priority) == base and (base.priority or r.priority < 900) for r in present):
            found.append(
                Difference(
                    "base-rule-missing",
                    describe(base),
                    (f"rule add pref {base.priority} from all lookup {base.table}",),
                )
            )
    seen = set()
    for rule, protocol in observed.rules:
        if protocol == PROTOCOL and (rule not in target.rules or rule in seen):
            found.append(Difference("rule-unwanted", describe(rule), (f"rule del {describe(rule)}",)))
        seen.add(rule)
    return found


def describe(item: Route | Rule, protocol: int = PROTOCOL) -> str:
    """As an `ip` command would have it."""
    if isinstance(item, Rule):
        words = [f"pref {item.priority} from {item.source}"]
        if item.destination != "all":
            words.append(f"to {item.destination}")
        if item.iif:
            words.append(f"iif {item.iif.split()[0]}")
        words.append(f"lookup {item.table}" if item.table else "blackhole")
        return " ".join([*words, f"protocol {protocol}"])
    words = [item.destination] if item.kind == "unicast" else [item.kind, item.destination]
    if item.via:
        words.append(f"via {item.via}")
    if item.device:
        words.append(f"dev {item.device}")
    words.append(f"table {item.table} proto {protocol}")
    if item.kind == "local":
        words.append("scope host")
    elif item.kind == "unicast" and not item.via:
        words.append("scope link")
    if item.source:
        words.append(f"src {item.source}")
    return " ".join(words)


def _repair(target: Wanted, found: list[Difference]) -> list[str]:
    errors = []
    for path, value in target.sysctls:
        if any(
            difference.reason == "sysctl-wrong" and difference.detail.startswith(path + "=") for difference in found
        ):
            if kernel.sysctl(path, value) != value:
                errors.append(f"sysctl {path}: cannot be set")
    additions = [c for d in found for c in d.commands if " del " not in c]
    removals = [c for d in found for c in d.commands if " del " in c]
    # What is new comes before what is old goes, so that no packet finds a gap.
    errors += kernel.apply(additions + removals)
    if any(difference.reason == "filter-missing" for difference in found):
        error = kernel.nft_load(target.nft)
        if error is None:
            paths.write(paths.NFT_LOADED, json.dumps({"wanted": target.nft, "listing": kernel.nft_listing()}), 0o600)
        else:
            errors.append(error)
    return errors


def _nft_as_loaded(table: str, listing: str) -> bool:
    """nft prints rules in its own words: the words right after our own load are what later listings must equal."""
    try:
        loaded = json.loads(paths.read(paths.NFT_LOADED) or "{}")
    except ValueError:
        return False
    return bool(listing) and loaded.get("wanted") == table and loaded.get("listing") == listing


def write_names(router: Router) -> None:
    """Writes the names of our tables for people who read `ip rule`. Nothing depends on them."""
    for name, text in names(router).items():
        path = os.path.join(paths.IPROUTE2, name)
        try:
            if paths.read(path) != text:
                paths.write(path, text)
        except OSError:
            pass


def remove() -> list[str]:
    """Takes our routes, rules and filter away. NICs keep their addresses, and sysctls their values. Returns what failed."""
    observed = kernel.observe((), (), nft=False)
    commands = [f"rule del {describe(rule)}" for rule, protocol in observed.rules if protocol == PROTOCOL]
    commands += [
        f"route del {describe(route, protocol)}" for route, protocol in observed.routes if protocol == PROTOCOL
    ]
    errors = kernel.apply(commands)
    program = kernel.nft_program()
    if program is not None:
        kernel.run([program, "-f", "-"], "table ip multinic\ndelete table ip multinic\n")
    return errors

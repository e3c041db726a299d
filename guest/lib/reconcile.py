"""Compares wanted with observed, changes what differs, and looks again: only a second look counts as success."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from typing import Mapping, NamedTuple

import kernel
import links
import packet_filter
import paths
from differences import Difference, describe, differences, identify
from foreign import swallowing, takeovers
from model import Router
from program import KernelError
from wanted import LOCAL, PROTOCOL, Wanted, names, wanted


class Outcome(NamedTuple):
    """What a pass found and left.

    Attributes:
        found: Differences before the pass.
        left: Differences after it; none means that the router forwards as wanted.
        errors: What programs said when they refused a change.
        warnings: What is worth a word but does not stop forwarding.
        drops: Packets that the filter has dropped, by counter.
        blocked: What stops forwarding, and neither we nor a new VM would cure.
    """

    found: tuple[Difference, ...]
    left: tuple[Difference, ...]
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    drops: Mapping[str, int] = {}
    blocked: tuple[Difference, ...] = ()


class Repair(NamedTuple):
    """What is still to be changed, by the programs that the next look runs anyway.

    Attributes:
        changes: Commands for `ip`.
        load: The packet filter; empty where it is as it should be.
        errors: Settings that the kernel refused.
    """

    changes: tuple[str, ...] = ()
    load: str = ""
    errors: tuple[str, ...] = ()


NOTHING_DONE = Repair()


class Lock:
    """Keeps two programs from changing the kernel at once. It is a file's lock: the kernel frees it with its holder."""

    def __init__(self, wait: float = 15.0) -> None:
        self.wait = wait

    def __enter__(self) -> None:
        os.makedirs(paths.RUN, exist_ok=True)
        self.file = os.open(paths.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        end = time.monotonic() + self.wait
        while not self._try():
            if time.monotonic() > end:
                os.close(self.file)
                raise KernelError("another policy-routing has been at work for too long")
            time.sleep(0.02)

    def _try(self) -> bool:
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def __exit__(self, *_: object) -> None:
        os.close(self.file)


def reconcile(router: Router, change: bool = True, fresh: bool = True) -> Outcome:
    """One pass.

    Args:
        router: From the metadata.
        change: False only looks.
        fresh: Have nft show the packet filter also when it has not changed since the last pass of this process.
    """
    target, found, observed = _look(router, fresh=fresh)
    left = found
    errors: tuple[str, ...] = ()
    warnings: list[str] = []
    if found and change:
        # Twice where needed: a route needs its link to be up, and lookups are tried only when all else is there.
        for _ in range(2):
            done = _repair(target, left)
            target, left, observed = _look(router, done, fresh)
            errors = (*done.errors, *observed.refused, *filter(None, [observed.unloaded]))
            if not left:
                break
        _write_names(router)
        if observed.unloaded:
            # Routing does without: the filter counts, and drops once more what routing drops already.
            found, left = ([held for held in each if held.reason != "filter-missing"] for each in (found, left))
            warnings.append(f"filter-unavailable: {observed.unloaded}")
    if router.clamp_mss is not None and observed.filter is None:
        warnings.append("clamp-unavailable: clamp_mss is set, and this image has no nft")
    blocked = []
    for table, accepting in observed.filter.closing.items() if observed.filter is not None else ():
        if packet_filter.lets_pass(accepting, _names.values()):
            warnings.append(f"forward-filter: table {table} drops what it does not accept")
        else:
            blocked.append(Difference("forward-filtered", f"table {table} lets nothing pass between our NICs"))
    drops = observed.filter.drops if observed.filter is not None else {}
    return Outcome(tuple(found), tuple(left), errors, tuple(warnings), drops, tuple(blocked))


_names: dict[int, str] = {}
"""NIC number → interface name at the last look."""


def _look(
    router: Router, done: Repair = NOTHING_DONE, fresh: bool = True
) -> tuple[Wanted, list[Difference], kernel.Observed]:
    """Reads the kernel, after the repair that is still to be done."""
    macs = {nic.number: nic.mac for nic in router.nics}
    if not _names:
        _names.update(links.guess(macs))
    target = wanted(router, _names)
    settings = [path for path, _ in target.sysctls]
    observed = kernel.observe(target.lookups, settings, done.changes, done.load, fresh)
    present = links.devices(macs, observed.links)
    missing = [
        Difference("nic-missing", f"nic{number}: no interface has the MAC {mac}")
        for number, mac in macs.items()
        if number not in present
    ]
    if present == _names:
        return target, missing + differences(target, observed, _taken(router, observed)), observed
    # A NIC is new, gone or has another name: what was asked by the names of the last look says nothing.
    _names.clear()
    _names.update(present)
    target = wanted(router, present)
    values = {path: kernel.sysctl(path) for path, _ in target.sysctls}
    observed = observed._replace(sysctls=values, lookups={})
    found = differences(target, observed, _taken(router, observed))
    if all(difference.reason == "lookup-wrong" for difference in found):
        # All is in place, so the lookups have to be asked for.
        observed = kernel.observe(target.lookups, values)._replace(refused=observed.refused)
        found = differences(target, observed, _taken(router, observed))
    return target, missing + found, observed


def _taken(router: Router, observed: kernel.Observed) -> list[Difference]:
    """Others' rules that lead our packets elsewhere, and others' local routes that take them; hardly ever any."""
    found = []
    if observed.foreign:
        for rule, packet in takeovers(observed.foreign, tuple(route for route, _ in observed.routes), router, _names):
            detail = f"{rule.selector} takes {packet.source} → {packet.destination} from us"
            found.append(Difference("foreign-rule", detail, (f"rule del {rule.selector}",)))
    for route, protocol in swallowing(observed.routes, router):
        text = identify(route, protocol)
        found.append(Difference("foreign-route", f"{text} takes what is behind a NIC", (f"route del {text}",)))
    return found


def _repair(target: Wanted, found: list[Difference]) -> Repair:
    """Changes what a write to a file changes, and says what else must be."""
    settings = [difference.sysctl for difference in found if difference.sysctl is not None]
    errors = [f"sysctl {path}: cannot be set to {v}" for path, v in settings if kernel.sysctl(path, v) != v]
    # What is new comes before what is old goes, so that no packet finds a gap.
    changes = sorted(
        (command for difference in found for command in difference.commands), key=lambda command: " del " in command
    )
    loads = any(difference.reason == "filter-missing" for difference in found)
    return Repair(tuple(changes), target.nft if loads else "", tuple(errors))


def _write_names(router: Router) -> None:
    """Names our tables for people who read `ip rule`. Nothing depends on it, so nothing fails over it."""
    for name, content in names(router).items():
        path = os.path.join(paths.IPROUTE2, name)
        with suppress(OSError):
            if paths.read(path) != content:
                paths.write(path, content)


def remove() -> list[str]:
    """Takes our routes, rules and filter away. NICs keep addresses, and sysctls values. Returns what failed."""
    observed = kernel.observe((), ())
    commands = [f"rule del {describe(rule)}" for rule, protocol in observed.rules if protocol == PROTOCOL]
    # Delivery to NICs' own addresses is the kernel's, also where we had to put it back: without it the VM is cut off.
    own = {address for link in observed.links.values() for address in link.addresses}
    commands += [
        f"route del {identify(route, protocol)}"
        for route, protocol in observed.routes
        if protocol == PROTOCOL and not (route.table == LOCAL and route.destination in own)
    ]
    done = kernel.observe((), (), commands, load=packet_filter.NOTHING)
    return [*done.refused, *filter(None, [done.unloaded])]

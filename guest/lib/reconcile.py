"""Compares wanted with observed, changes what differs, and looks again: only a second look counts as success."""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import suppress
from typing import Mapping, NamedTuple

import kernel
import paths
from differences import Difference, describe, differences
from model import Router
from wanted import PROTOCOL, Wanted, names, wanted


class Outcome(NamedTuple):
    """What a pass found and left.

    Attributes:
        found: Differences before the pass.
        left: Differences after it; none means that the router forwards as wanted.
        errors: What programs said when they refused a change.
        warnings: What is worth a word but does not stop forwarding.
        drops: Packets that the filter has dropped, by counter.
    """

    found: tuple[Difference, ...]
    left: tuple[Difference, ...]
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    drops: Mapping[str, int] = {}


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
                raise kernel.KernelError("another policy-routing has been at work for too long")
            time.sleep(0.02)

    def _try(self) -> bool:
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def __exit__(self, *_: object) -> None:
        os.close(self.file)


def reconcile(router: Router, change: bool = True) -> Outcome:
    """One pass.

    Args:
        router: From the metadata.
        change: False only looks.
    """
    target, found, drops = _look(router)
    if not found or not change:
        return Outcome(tuple(found), tuple(found), warnings=_warnings(router), drops=drops)
    errors, loaded = _repair(target, found)
    _write_names(router)
    # Once more where needed: a route needs its link to be up, and lookups are tried only when all else is there.
    target, left, drops = _look(router, loaded)
    if left:
        errors, loaded = _repair(target, left)
        target, left, drops = _look(router, loaded)
    return Outcome(tuple(found), tuple(left), tuple(errors), _warnings(router), drops)


def _warnings(router: Router) -> tuple[str, ...]:
    if router.clamp_mss is not None and kernel.nft_program() is None:
        return ("clamp-unavailable: clamp_mss is set, and this image has no nft",)
    return ()


_names: dict[int, str] = {}
"""NIC number → interface name at the last look."""


def _look(router: Router, loaded_now: bool = False) -> tuple[Wanted, list[Difference], Mapping[str, int]]:
    """Reads the kernel.

    Args:
        router: From the metadata.
        loaded_now: The filter has just been loaded: what nft prints now is what it must print from now on.
    """
    macs = {nic.number: nic.mac for nic in router.nics}
    target = wanted(router, _names)
    ever_loaded = loaded_now or bool(_loaded()[0])
    observed = kernel.observe(target.lookups, [path for path, _ in target.sysctls], ever_loaded)
    if loaded_now and observed.nft:
        paths.write(paths.NFT_LOADED, json.dumps([target.nft, observed.nft]), 0o600)
    present = kernel.devices(macs, observed.links)
    missing = [
        Difference("nic-missing", f"nic{number}: no interface has the MAC {mac}")
        for number, mac in macs.items()
        if number not in present
    ]
    if present == _names:
        return target, missing + differences(target, observed, _loaded()), observed.drops
    # A NIC is new, gone or has another name: what was asked by the names of the last look says nothing.
    _names.clear()
    _names.update(present)
    target = wanted(router, present)
    settings = {path: kernel.sysctl(path) for path, _ in target.sysctls}
    observed = observed._replace(sysctls=settings, lookups={})
    found = differences(target, observed, _loaded())
    if all(difference.reason in ("lookup-wrong", "foreign-rule") for difference in found):
        # All is in place, so the lookups have to be asked for.
        observed = kernel.observe(target.lookups, settings)
        found = differences(target, observed, _loaded())
    return target, missing + found, observed.drops


def _repair(target: Wanted, found: list[Difference]) -> tuple[list[str], bool]:
    """Changes what differs. Returns what failed, and whether the filter was loaded."""
    settings = [difference.sysctl for difference in found if difference.sysctl is not None]
    errors = [f"sysctl {path}: cannot be set to {v}" for path, v in settings if kernel.sysctl(path, v) != v]
    commands = [command for difference in found for command in difference.commands]
    # What is new comes before what is old goes, so that no packet finds a gap.
    errors += kernel.apply(sorted(commands, key=lambda command: " del " in command))
    if not any(difference.reason == "filter-missing" for difference in found):
        return errors, False
    error = kernel.nft_load(target.nft)
    return (errors, True) if error is None else ([*errors, error], False)


def _loaded() -> tuple[str, str]:
    """The filter's table as last loaded, and as nft printed it then."""
    try:
        table, listing = json.loads(paths.read(paths.NFT_LOADED) or "[]")
    except ValueError:
        return "", ""
    return str(table), str(listing)


def _write_names(router: Router) -> None:
    """Names our tables for people who read `ip rule`. Nothing depends on it, so nothing fails over it."""
    for name, content in names(router).items():
        path = os.path.join(paths.IPROUTE2, name)
        with suppress(OSError):
            if paths.read(path) != content:
                paths.write(path, content)


def remove() -> list[str]:
    """Takes our routes, rules and filter away. NICs keep addresses, and sysctls values. Returns what failed."""
    observed = kernel.observe((), (), nft=False)
    commands = [f"rule del {describe(rule)}" for rule, protocol in observed.rules if protocol == PROTOCOL]
    commands += [f"route del {describe(route)}" for route, protocol in observed.routes if protocol == PROTOCOL]
    errors = kernel.apply(commands)
    error = kernel.nft_load("")
    return [*errors, error] if error else errors

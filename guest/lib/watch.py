"""The watcher: repairs when the kernel tells of a change, looks by itself every few seconds, follows the metadata."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from typing import Any

import events
import metadata
import paths
import verdict
from model import InvalidError, Router, parse
from notify import notify
from program import KernelError
from reconcile import Lock, Outcome, reconcile

PERIOD = 5.0
"""Seconds between looks without any event: what sends no event (a sysctl, say) is repaired within it."""

SETTLE = 0.05
"""Seconds for a burst of events to end: one pass then repairs it as a whole."""

MIN_GAP = 0.25
"""Seconds between passes at least, so that a program that changes routes all the time costs little."""

DROPS_EVERY = 60.0
"""Seconds between two events about dropped packets, and between two looks at their counts if nothing happens."""

TOLD, TOLD_WITHIN = 10, 60.0
"""Events of one name that are told in so many seconds; the verdict counts all repairs."""

NETLINK_ROUTE, NETLINK_NETFILTER = 0, 12
ROUTE_GROUPS = (1 << 0) | (1 << 4) | (1 << 6) | (1 << 7) | (1 << 23)
"""Links, IPv4 addresses, routes, rules, and sysctls of interfaces: linux/rtnetlink.h, RTNLGRP_*."""

NEIGHBOUR_GROUP = 1 << 2
NEWNEIGH, FIXED = 28, 0x80 | 0x40
"""A neighbour's entry has changed, and its states that the network does not change: linux/neighbour.h, NUD_*."""

NFTABLES_GROUP = 1 << 6
"""Changes of the packet filter: linux/netfilter/nfnetlink.h, NFNLGRP_NFTABLES."""


class Metadata(threading.Thread):
    """Waits for changes of the metadata; each answer wakes the watcher through a pipe."""

    def __init__(self) -> None:
        super().__init__(name="metadata", daemon=True)
        self.reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._lock = threading.Lock()
        # What the last program of this boot has read: the first pass need not wait for an answer.
        # It is saved when it changes, so its age says nothing.
        self._answer = metadata.saved(max_age=float("inf"))
        self._etag = self._answer[0] if self._answer is not None else ""
        self.error = "not asked yet"

    def run(self) -> None:
        """Thread body: never ends, never gives up, asks less often while nobody answers."""
        etag = self._etag or None
        pause = 0.5
        while True:
            try:
                answer = metadata.tree(etag)
            except metadata.UnavailableError as error:
                self.error = str(error)
                time.sleep(pause)
                pause = min(pause * 2, 15.0)
                continue
            pause = 0.5
            if answer[0] == etag:
                time.sleep(1.0)  # Not every server that stands in for Google's waits for a change.
                continue
            self._hand_over(answer)
            etag = answer[0] or None
            if etag is None:
                time.sleep(5.0)  # A server without ETags cannot make us wait for a change.

    def _hand_over(self, answer: tuple[str, Any]) -> None:
        with self._lock:
            self._answer = answer
        with suppress(BlockingIOError):  # Full: it is awake already.
            os.write(self._writer, b"x")

    def take(self) -> tuple[str, Any] | None:
        """The newest answer, once."""
        with suppress(BlockingIOError):
            os.read(self.reader, 4096)
        with self._lock:
            answer, self._answer = self._answer, None
        return answer


class Watcher:
    """State between passes."""

    def __init__(self) -> None:
        self.source = Metadata()
        self.router: Router | None = None
        self.problem = ("metadata-unavailable", "no answer yet")
        self.last = verdict.load()
        self.degraded = None if not self.last or self.last.get("ok") else names(self.last)
        self.tellings: dict[str, list[float]] = {}
        self.warned: list[str] = []
        self.told: dict[str, int] = {}
        self.told_at = -DROPS_EVERY
        self.counted_at = -DROPS_EVERY
        self.running = True

    def run(self) -> int:
        """Until SIGTERM."""
        poller = select.poll()
        sockets = [listen(NETLINK_ROUTE, ROUTE_GROUPS), listen(NETLINK_NETFILTER, NFTABLES_GROUP)]
        # By itself: it tells of each neighbour that is asked for again, too.
        neighbours = listen(NETLINK_ROUTE, NEIGHBOUR_GROUP)
        for channel in (*sockets, neighbours):
            if channel is not None:
                poller.register(channel, select.POLLIN)
        wake_reader, wake_writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: setattr(self, "running", False))
        signal.set_wakeup_fd(wake_writer)
        poller.register(wake_reader, select.POLLIN)
        poller.register(self.source.reader, select.POLLIN)
        self.source.start()
        notify("READY=1")
        following = 0.0
        while self.running:
            happened = poller.poll(max(0.0, following - time.monotonic()) * 1000)
            told = [number for number, _ in happened]
            if neighbours is not None and told == [neighbours.fileno()] and not tells_of_fixed(neighbours):
                continue
            if happened and self.running:
                time.sleep(SETTLE)
            if not self.running:
                break
            for channel in (*sockets, neighbours):
                drain(channel)
            try:
                self.step(bool(happened))
            except OSError as error:
                # A /run that takes nothing. Forwarding goes on, and the endpoints tell that the verdict grows old.
                print(f"policy-routing: {error}", file=sys.stderr, flush=True)
            notify(f"WATCHDOG=1\nSTATUS={self.last.get('state', '')}")
            following = time.monotonic() + PERIOD
            if self.running and happened:
                time.sleep(MIN_GAP - SETTLE)
        return 0

    def step(self, happened: bool) -> None:
        """One pass: metadata, kernel, verdict.

        Args:
            happened: Something told us to look; else it is the period, which costs little where nothing has changed.
        """
        self._take_metadata()
        if os.path.exists(paths.STOPPED):
            self.last = verdict.stopped()
            verdict.store(self.last)
            return
        outcome: Outcome | None = None
        problems = []
        if self.router is None:
            problems.append(
                self.problem if self.problem[0] != "metadata-unavailable" else (self.problem[0], self.source.error)
            )
        else:
            try:
                with Lock():
                    # Looked at again under the lock: `stop` may have run while this pass waited for it.
                    if os.path.exists(paths.STOPPED):
                        return
                    fresh = happened or time.monotonic() - self.counted_at >= DROPS_EVERY
                    outcome = reconcile(self.router, fresh=fresh)
                    self.counted_at = time.monotonic() if fresh else self.counted_at
            except KernelError as error:
                problems.append(("program-failed", str(error)))
            except (
                Exception
            ) as error:  # A mistake of ours closes the traffic port with a reason instead of leaving an old verdict.
                import traceback  # A megabyte that is needed only now.

                traceback.print_exc()
                problems.append(("internal-error", repr(error)))
        self.publish(verdict.judge(self.last, self.router, outcome, problems), outcome)

    def _take_metadata(self) -> None:
        answer = self.source.take()
        if answer is None:
            return
        try:
            router = parse(answer[1])
        except InvalidError as error:
            # The last good description stays in force: a slip in a whole fleet's metadata must not end its forwarding.
            self.problem = ("metadata-invalid", str(error))
            events.emit("metadata-invalid", "ERROR", detail=str(error), kept=self.router is not None)
            return
        if self.router is not None and router.drain != self.router.drain:
            events.emit("drained" if router.drain else "undrained", "NOTICE")
        self.router = router
        self.problem = ("", "")
        with suppress(OSError):  # It only saves the next program a question.
            metadata.save(*answer)

    def publish(self, new: dict[str, Any], outcome: Outcome | None) -> None:
        """Stores the verdict and tells of what changed."""
        if new["warnings"] and new["warnings"] != self.warned:
            events.emit("warned", "WARNING", warnings=new["warnings"])
        self.warned = new["warnings"]
        if self.problem[0] == "metadata-invalid" and self.router is not None:
            new["warnings"] = [*new["warnings"], f"metadata-invalid: {self.problem[1]}"]
        verdict.store(new)
        reasons, now = names(new), new["monotonic"]
        if outcome is not None and outcome.found and not outcome.left and self._may_tell("repaired", now):
            events.emit(
                "repaired",
                "WARNING",
                found=[f"{d.reason}: {d.detail}" for d in outcome.found[:20]],
                repairs=new["repairs"],
            )
        if not new["ok"] and reasons != self.degraded and self._may_tell("degraded", now):
            events.emit(
                "degraded", "ERROR", reasons=reasons, details=[reason["detail"] for reason in new["reasons"][:20]]
            )
            self.degraded = reasons
        if new["ok"] and self.degraded is not None:
            events.emit("recovered", "NOTICE")
            self.degraded = None
        self._tell_drops(new)
        if (
            new["first_good"] is not None
            and verdict.heal(new, now)
            and not (self.last.get("first_good") and verdict.heal(self.last, now))
        ):
            events.emit("healing-wanted", "CRITICAL", reasons=reasons)
        self.last = new

    def _may_tell(self, event: str, now: float) -> bool:
        """Whether one more such event is told: a program that undoes ours all the time must not fill the log."""
        told = self.tellings[event] = [at for at in self.tellings.get(event, ()) if now - at < TOLD_WITHIN]
        if len(told) >= TOLD:
            return False
        told.append(now)
        return True

    def _tell_drops(self, new: dict[str, Any]) -> None:
        """Packets that were dropped, at most once a minute: whoever causes them must not fill the log."""
        before = self.told
        more = {
            name: count - before.get(name, 0) for name, count in new["drops"].items() if count > before.get(name, 0)
        }
        if more and new["monotonic"] - self.told_at >= DROPS_EVERY:
            events.emit("dropped", "WARNING", **more)
            self.told, self.told_at = dict(new["drops"]), new["monotonic"]
        # Counts start anew when the filter is loaded anew.
        self.told = {name: min(count, new["drops"].get(name, 0)) for name, count in self.told.items()}


def names(held: dict[str, Any]) -> list[str]:
    """The reasons of a verdict."""
    return sorted({reason["name"] for reason in held.get("reasons", [])})


def listen(family: int, groups: int) -> socket.socket | None:
    """A socket that gets the kernel's notes on changes; None where the kernel has none: the period finds them then."""
    try:
        channel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, family)
        channel.bind((0, groups))
        return channel
    except OSError:
        return None


def drain(channel: socket.socket | None) -> None:
    """Empties the socket: what happened is read from the kernel itself, the note only says that something did."""
    while channel is not None and receive(channel) is not None:
        pass


def tells_of_fixed(channel: socket.socket) -> bool:
    """Whether the waiting notes on neighbours, which are read, tell of an entry that the network cannot correct."""
    found = False
    while (notes := receive(channel)) is not None:
        # Notes were lost; or a header (length, kind), and in the neighbour's message after it its state.
        found |= not notes
        while len(notes) >= 26:
            length, kind = struct.unpack_from("=IH", notes)
            found |= kind == NEWNEIGH and bool(struct.unpack_from("=H", notes, 24)[0] & FIXED)
            notes = notes[max(16, (length + 3) & ~3) :]
    return found


def receive(channel: socket.socket) -> bytes | None:
    """What waits; nothing where notes were lost, and None when none wait."""
    try:
        return channel.recv(65536)
    except OSError as error:
        # ENOBUFS: the pass that follows sees their effect anyway.
        return b"" if error.errno == errno.ENOBUFS else None

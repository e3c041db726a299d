"""Fleets that serve, under traffic, and what a scenario can do to them and wait for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from multinic.lab.client import Lab
from multinic.lab.errors import LabError
from multinic.lab.scenarios import events
from multinic.lab.scenarios.deployed import DeployedStack
from multinic.lab.scenarios.fleet import RouterState, bytes_in, group_of, guests, routers, wait_until_serving
from multinic.lab.scenarios.flows import Flows
from multinic.lab.scenarios.program import Config, Say
from multinic.lab.scenarios.traffic import Guest, Stream

TIMEOUT_SECONDS = 400.0
"""Deadline for a step, plus the lab's boot delay; a step of the lab takes seconds, a rollout about a minute."""

SETTLE_SECONDS = 2.0
"""Streams are watched so much longer than the fleet needs to be whole."""


@dataclass
class Stage:
    """What a scenario runs on.

    Attributes:
        lab: Where it runs.
        stacks: What was brought up, by name, in that order.
        boot_delay: The lab's, in seconds.
        say: Gets a line for each step.
        zero: Moment of the event, of the monotonic clock.
        marks: What happened when, in seconds after `zero`, in order.
        load: A stream beside those that are watched, which keeps the routers busy; None while there is none.
    """

    lab: Lab
    stacks: dict[str, DeployedStack]
    boot_delay: float
    say: Say
    zero: float = 0.0
    marks: dict[str, float] = field(default_factory=dict)
    load: Stream | None = None
    _flows: Flows | None = None
    _began: int = 0
    _seen: int = 0

    @property
    def regions(self) -> list[str]:
        """Those that have routers."""
        return list(dict.fromkeys(str(stack.outputs["region"]) for stack in self._with_routers()))

    @property
    def fleet(self) -> DeployedStack:
        """The stack whose fleet a scenario changes: the first that has one."""
        return self._with_routers()[0]

    def _with_routers(self) -> list[DeployedStack]:
        return [stack for stack in self.stacks.values() if "instance_groups" in stack.outputs]

    @property
    def pairs(self) -> list[tuple[Guest, Guest]]:
        """A client and a server each; with two regions the server is in the other one."""
        clients, servers = self._ends("client"), self._ends("server")
        return list(zip(clients, reversed(servers), strict=True))

    def _ends(self, role: str) -> list[Guest]:
        return [guest for stack in self.stacks.values() for guest in guests(stack.outputs, role)]

    @property
    def client(self) -> Guest:
        """The first client, in the first network."""
        return self.pairs[0][0]

    @property
    def server(self) -> Guest:
        """The first client's server, in the second network."""
        return self.pairs[0][1]

    @property
    def flows(self) -> Flows:
        """The live connections."""
        assert self._flows is not None
        return self._flows

    @property
    def victim(self) -> RouterState:
        """The router that carries the first stream when the scenario begins."""
        return self.flows.router

    def before(self) -> None:
        """The event is yet to come: nothing is marked."""
        self._flows = None

    def begin(self, flows: Flows) -> None:
        """The event is now: marks are relative to this moment."""
        self._flows, self.marks = flows, {}
        self._began = self._seen = self.lab.last_event()
        self.zero = time.monotonic()

    def end_load(self) -> None:
        """Ends the load, if there is one."""
        if self.load:
            self.load.kill()
            self.load = None

    def mark(self, what: str, moment: float | None = None) -> None:
        """Notes that something happened now, or at a moment of the monotonic clock; before the event only says it."""
        if self._flows is None:
            self.say(what)
            return
        self.marks[what] = round((time.monotonic() if moment is None else moment) - self.zero, 3)
        self.say(f"{what}, {self.marks[what]:.1f} s after the event")

    def update(self, over: Config) -> None:
        """Runs the fleet's program again with something laid over its configuration."""
        self.fleet.update(over, self.say)

    def routers(self) -> list[RouterState]:
        """The fleets as the load balancers see them."""
        return routers(self.lab, self.regions)

    def routers_of(self, stack: DeployedStack) -> list[RouterState]:
        """Those in the groups of one stack."""
        names = {group.rpartition("/")[2] for group in stack.outputs["instance_groups"].values()}
        return [router for router in self.routers() if group_of(self.lab, router).rpartition("/")[2] in names]

    def router(self, key: str) -> RouterState | None:
        """One router as the load balancers see it; None while its group does not have it."""
        return next((router for router in self.routers() if router.key == key), None)

    def wait(self, until: Callable[[], bool], what: str) -> None:
        """Waits until something is so, says meanwhile what the routers do, and marks the moment.

        Raises:
            LabError: It never was.
        """
        self.wait_for(until, what)
        self.mark(what)

    def wait_for(self, until: Callable[[], bool], what: str) -> None:
        """Like `wait`, without a mark."""
        deadline = time.monotonic() + TIMEOUT_SECONDS + 4 * self.boot_delay
        while not until():
            self._tell()
            if time.monotonic() >= deadline:
                states = "; ".join(f"{router.name}: {router.health}" for router in self.routers())
                raise LabError(f"{what}: this never happened; the routers: {states}")
            time.sleep(0.1)
        self._tell()

    def identity(self, key: str) -> str | None:
        """Id of the VM that runs under a key now; None while none does."""
        path, _, name = key.split("/", 2)[2].rpartition("/")
        found = (one for one in self.lab.items(path) if one["name"] == name and one["status"] == "RUNNING")
        return next((str(one["id"]) for one in found), None)

    def wait_until_recreated(self, key: str, identity: str | None) -> None:
        """Waits until another VM than this one runs under a key."""
        self.wait(lambda: self.identity(key) not in (None, identity), "recreated")

    def wait_until_it_serves_not(self, key: str, what: str) -> None:
        """Waits until no load balancer sends a router new connections any more."""
        self.wait(lambda: (state := self.router(key)) is None or "HEALTHY" not in state.health.values(), what)

    def wait_until_dropped(self, router: RouterState) -> None:
        """Waits until nothing is sent to a router any more; marks when it was known and when the rules had changed."""
        found: list[float] = []

        def dropped() -> bool:
            seen = self.lab.events(self._began)
            known = events.known_down(seen, router)
            applied = None if known is None else events.rules_changed(seen, known)
            if known is None or applied is None:
                return False
            found[:] = [known, applied]
            return True

        self.wait_for(dropped, f"{router.name} out of its load balancers")
        self.mark("detected", found[0])
        self.mark("rules changed", found[1])

    def events_of(self, key: str) -> list[dict[str, Any]]:
        """What happened to a router since the event."""
        return [event for event in self.lab.events(self._began) if event["subject"] == key]

    def changes(self) -> list[float]:
        """When something changed since the event, it included: rules, VMs, health, groups."""
        return [self.zero, *(event["time"] for event in self.lab.events(self._began))]

    def wait_until_serving(self) -> list[RouterState]:
        """Waits until every router that the groups want serves, and returns them."""
        left = TIMEOUT_SECONDS + 4 * self.boot_delay
        return wait_until_serving(self.lab, self.regions, timeout=left, meanwhile=self._tell)

    def wait_until_whole(self) -> float:
        """Waits until every router serves and every stream flows; returns how long after the event that was."""
        self.wait_until_serving()
        self.mark("fleet whole")
        moment = time.monotonic()
        self.wait_for(lambda: self.flows.flow_since(moment), "streams flow")
        time.sleep(SETTLE_SECONDS)
        return self.marks["fleet whole"]

    def hold(self, seconds: float) -> None:
        """Lets things be as they are for a while."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._tell()
            time.sleep(0.1)

    @property
    def flows_move(self) -> bool:
        """Whether connections leave a router that is not healthy any more; else they stay as long as it forwards."""
        services = [one for region in self.regions for one in self.lab.items(f"regions/{region}/backendServices")]
        policies = [one.get("connectionTrackingPolicy") or {} for one in services]
        return all(one.get("connectionPersistenceOnUnhealthyBackends") == "NEVER_PERSIST" for one in policies)

    def require_no_traffic(self, router: RouterState, megabits: float = 1.0) -> None:
        """Raises `LabError` if a router still forwards more than `megabits` a second: probes and pings are less."""
        before, began = bytes_in(self.lab, router), time.monotonic()
        time.sleep(1.0)
        after, seconds = bytes_in(self.lab, router), time.monotonic() - began
        rate = (sum(after) - sum(before)) * 8 / 1e6 / seconds
        if rate > megabits:
            raise LabError(f"{router.name} still gets {rate:.1f} Mbit/s")

    def set_metadata(self, key: str, changes: Mapping[str, str | None]) -> None:
        """Sets keys of an instance's own metadata, and removes those whose value is None."""
        path = key.split("/", 2)[2]
        metadata = self.lab.compute("GET", path)["metadata"]
        items = {item["key"]: item["value"] for item in metadata.get("items", [])}
        for name, value in changes.items():
            if value is None:
                items.pop(name, None)
            else:
                items[name] = value
        listed = [{"key": name, "value": value} for name, value in items.items()]
        body = {"fingerprint": metadata["fingerprint"], "items": listed}
        self.lab.compute("POST", f"{path}/setMetadata", body)

    def metadata(self, key: str) -> dict[str, str]:
        """An instance's own metadata."""
        metadata = self.lab.compute("GET", key.split("/", 2)[2])["metadata"]
        return {item["key"]: item["value"] for item in metadata.get("items", [])}

    def _tell(self) -> None:
        for event in self.lab.events(self._seen):
            self._seen = event["number"]
            if "/instances/" in event["subject"] and "router" in event["subject"]:
                where = event["subject"].rpartition("/")[2]
                self.say(f"{where}: {events.told(event)}")

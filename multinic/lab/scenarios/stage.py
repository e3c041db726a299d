"""A serving fleet under traffic, and what a scenario can do to it and wait for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from multinic.lab.client import Lab
from multinic.lab.errors import LabError
from multinic.lab.pulumi.deployment import Deployment
from multinic.lab.scenarios.fleet import RouterState, bytes_in, first_guest, routers, wait_until_serving
from multinic.lab.scenarios.flows import Flows
from multinic.lab.scenarios.panic import told
from multinic.lab.scenarios.program import Program, Say
from multinic.lab.scenarios.traffic import Guest

TIMEOUT_SECONDS = 400.0
"""Deadline for a step, plus the lab's boot delay; a step of the lab takes seconds, a rollout about a minute."""

SETTLE_SECONDS = 2.0
"""Streams are watched so much longer than the fleet needs to be whole."""


@dataclass
class Stage:
    """One fleet.

    Attributes:
        lab: Where it runs.
        program: What declared it.
        deployment: What was made.
        config: The program's configuration now.
        boot_delay: The lab's, in seconds.
        say: Gets a line for each step.
        zero: Moment of the event, of the monotonic clock.
        marks: What happened when, in seconds after `zero`, in order.
    """

    lab: Lab
    program: Program
    deployment: Deployment
    config: Mapping[str, Any]
    boot_delay: float
    say: Say
    zero: float = 0.0
    marks: dict[str, float] = field(default_factory=dict)
    _flows: Flows | None = None
    _seen: int = 0

    @property
    def region(self) -> str:
        """The fleet's region."""
        return str(self.deployment.outputs["region"])

    @property
    def client(self) -> Guest:
        """In the first network."""
        return first_guest(self.deployment.outputs, "client")

    @property
    def server(self) -> Guest:
        """In the second network."""
        return first_guest(self.deployment.outputs, "server")

    @property
    def flows(self) -> Flows:
        """The live connections."""
        assert self._flows is not None
        return self._flows

    @property
    def victim(self) -> RouterState:
        """The router that carries both streams when the scenario begins."""
        return self.flows.router

    def begin(self, flows: Flows) -> None:
        """The event is now: marks are relative to this moment."""
        self._flows, self.marks = flows, {}
        self._seen = self.lab.last_event()
        self.zero = time.monotonic()

    def mark(self, what: str) -> None:
        """Notes that something happened now."""
        self.marks[what] = round(time.monotonic() - self.zero, 2)
        self.say(f"{what}, {self.marks[what]:.1f} s after the event")

    def routers(self) -> list[RouterState]:
        """The fleet as the load balancers see it."""
        return routers(self.lab, self.region)

    def router(self, key: str) -> RouterState | None:
        """One router as the load balancers see it; None while its group does not have it."""
        return next((router for router in self.routers() if router.key == key), None)

    def wait(self, until: Callable[[], bool], what: str) -> None:
        """Waits until something is so, says meanwhile what the routers do, and marks the moment.

        Raises:
            LabError: It never was.
        """
        deadline = time.monotonic() + TIMEOUT_SECONDS + 4 * self.boot_delay
        while not until():
            self._tell()
            if time.monotonic() >= deadline:
                states = "; ".join(f"{router.name}: {router.health}" for router in self.routers())
                raise LabError(f"{what}: this never happened; the routers: {states}")
            time.sleep(0.1)
        self._tell()
        self.mark(what)

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

    def wait_until_whole(self) -> float:
        """Waits until every router serves and every stream flows; returns how long after the event that was."""
        left = TIMEOUT_SECONDS + 4 * self.boot_delay
        wait_until_serving(self.lab, self.region, timeout=left, meanwhile=self._tell)
        self.mark("fleet whole")
        moment = time.monotonic()
        self.wait(lambda: self.flows.flow_since(moment), "streams flow")
        del self.marks["streams flow"]
        time.sleep(SETTLE_SECONDS)
        return self.marks["fleet whole"]

    def hold(self, seconds: float) -> None:
        """Lets things be as they are for a while."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._tell()
            time.sleep(0.1)

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

    def update(self, config: Mapping[str, Any]) -> None:
        """Runs the program again with another configuration, as `pulumi up` does."""
        self.config = config
        self.program.update(self.deployment, config, self.say)

    def _tell(self) -> None:
        for event in self.lab.events(self._seen):
            self._seen = event["number"]
            if "-router-" in event["subject"] or "/router-" in event["subject"]:
                where = event["subject"].rpartition("/")[2]
                self.say(f"{where}: {told(event)}")

"""What a trace finds: each direction of a flow, step by step, and what is in its way."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """Something that decides on the way."""

    what: str
    result: str


@dataclass(frozen=True)
class Problem:
    """Why the flow does not get through, or not well; `fatal` if it does not."""

    what: str
    cure: str
    fatal: bool = True


@dataclass(frozen=True)
class Way:
    """One direction of a flow.

    Attributes:
        title: For people.
        steps: In order.
        problems: In order.
        routers: Those that may get it; the load balancer picks one by a hash of the flow.
        nics: The NIC by which a router gets it, and the one by which it leaves.
    """

    title: str
    steps: tuple[Step, ...]
    problems: tuple[Problem, ...]
    routers: tuple[str, ...] = ()
    nics: tuple[str, ...] = ()


@dataclass(frozen=True)
class Flow:
    """Both directions.

    Attributes:
        forth: From the client.
        back: From the server.
        mtu: The narrowest network's MTU in bytes, 0 if unknown.
        notes: What concerns both.
    """

    forth: Way
    back: Way
    mtu: int
    notes: tuple[Problem, ...]

    @property
    def arrives(self) -> bool:
        """Whether nothing was found that keeps the flow from getting through."""
        return not any(problem.fatal for problem in (*self.forth.problems, *self.back.problems, *self.notes))

"""Who gets new connections and who keeps the ones he has, as Google documents it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multinic.lab.cloud.balancing import Candidate, Policy, backends

NEVER, ALWAYS = Policy(persistence="NEVER_PERSIST"), Policy(persistence="ALWAYS_PERSIST")
DEFAULT = Policy()
UP, DOWN = Candidate("a", True), Candidate("b", False)


def shown(policy: Policy, *candidates: Candidate) -> dict[str, str]:
    """machine → N (takes new flows), K (keeps TCP), U (keeps UDP), several of them or nothing."""
    return {
        b.machine: "N" * b.takes_new + "K" * b.keeps_existing + "U" * b.keeps_connectionless
        for b in backends(policy, candidates)
    }


@pytest.mark.parametrize(
    ("policy", "candidates", "expected"),
    [
        pytest.param(NEVER, [], {}, id="nobody"),
        pytest.param(NEVER, [UP, DOWN], {"a": "NKU", "b": ""}, id="never persist: flows leave an unhealthy router"),
        pytest.param(DEFAULT, [UP, DOWN], {"a": "NKU", "b": "K"}, id="default: TCP stays, UDP moves"),
        pytest.param(ALWAYS, [UP, DOWN], {"a": "NKU", "b": "KU"}, id="always"),
        pytest.param(
            Policy(tracking="PER_SESSION", affinity="CLIENT_IP"),
            [UP, DOWN],
            {"a": "NKU", "b": ""},
            id="default with sessions coarser than the 5-tuple: nothing stays",
        ),
        pytest.param(
            Policy(tracking="PER_SESSION", affinity="CLIENT_IP_PORT_PROTO"),
            [UP, DOWN],
            {"a": "NKU", "b": "K"},
            id="default with 5-tuple affinity: TCP stays, UDP moves",
        ),
        pytest.param(NEVER, [DOWN], {"b": "NKU"}, id="all unhealthy: all of them"),
        pytest.param(
            NEVER, [DOWN, Candidate("c", False)], {"b": "NKU", "c": "NKU"}, id="all unhealthy: all, none persisting"
        ),
        pytest.param(
            NEVER, [UP, Candidate("d", True, draining=True)], {"a": "NKU", "d": "KU"}, id="draining keeps what it has"
        ),
        pytest.param(
            NEVER,
            [UP, Candidate("d", False, draining=True)],
            {"a": "NKU", "d": ""},
            id="draining and dead: flows move",
        ),
        pytest.param(
            NEVER,
            [DOWN, Candidate("d", True, draining=True)],
            {"b": "NKU", "d": "KU"},
            id="a draining one never gets new connections",
        ),
        pytest.param(NEVER, [UP, Candidate("f", True, failover=True)], {"a": "NKU", "f": "KU"}, id="spares wait"),
        pytest.param(NEVER, [DOWN, Candidate("f", True, failover=True)], {"b": "", "f": "NKU"}, id="spares take over"),
        pytest.param(
            Policy("NEVER_PERSIST", failover_ratio=0.6),
            [UP, DOWN, Candidate("f", True, failover=True)],
            {"a": "KU", "b": "", "f": "NKU"},
            id="below the failover ratio",
        ),
        pytest.param(
            Policy("NEVER_PERSIST", failover_ratio=0.5),
            [UP, DOWN, Candidate("f", True, failover=True)],
            {"a": "NKU", "b": "", "f": "KU"},
            id="at the failover ratio",
        ),
        pytest.param(
            NEVER,
            [DOWN, Candidate("f", False, failover=True)],
            {"b": "NKU", "f": "KU"},
            id="all unhealthy with spares: the primaries",
        ),
        pytest.param(
            Policy("NEVER_PERSIST", drop_if_unhealthy=True),
            [DOWN, Candidate("f", False, failover=True)],
            {"b": "", "f": ""},
            id="drop if unhealthy",
        ),
    ],
)
def test_backends(policy: Policy, candidates: list[Candidate], expected: dict[str, str]) -> None:
    assert shown(policy, *candidates) == expected


CANDIDATES = st.lists(
    st.builds(Candidate, st.sampled_from("abcdefgh"), st.booleans(), st.booleans(), st.booleans()),
    unique_by=lambda c: c.machine,
)
POLICIES = st.builds(
    Policy,
    st.sampled_from(["DEFAULT_FOR_PROTOCOL", "NEVER_PERSIST", "ALWAYS_PERSIST"]),
    st.sampled_from(["PER_CONNECTION", "PER_SESSION"]),
    st.sampled_from(["NONE", "CLIENT_IP", "CLIENT_IP_PORT_PROTO"]),
    st.floats(0, 1),
)


@given(POLICIES, CANDIDATES)
def test_as_long_as_somebody_may_serve_somebody_does(policy: Policy, candidates: list[Candidate]) -> None:
    found = backends(policy, candidates)
    assert [b.machine for b in found] == sorted(c.machine for c in candidates)
    staying = [c for c in candidates if not c.draining]
    servers = [b for b in found if b.takes_new]
    if any(c.healthy for c in staying) or any(not c.failover for c in staying):
        assert servers
    healthy = {c.machine for c in staying if c.healthy}
    if healthy:
        assert {b.machine for b in servers} <= healthy
    assert all(b.keeps_existing and b.keeps_connectionless for b in servers)
    assert all(b.keeps_existing for b in found if b.keeps_connectionless)

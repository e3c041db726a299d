"""The pure parts of steering: hashing and the look-up of routes."""

from __future__ import annotations

import itertools
from ipaddress import IPv4Address, IPv4Network

from hypothesis import given
from hypothesis import strategies as st

from multinic.lab.fabric import hashing
from multinic.lab.fabric.steering import _disjoint, steering
from multinic.lab.substrate import Balancer, NetworkPlan, Route


def test_only_the_lost_backends_buckets_move() -> None:
    names = [f"projects/p/zones/z/instances/r{number}" for number in range(5)]
    before = hashing.owners(names)
    after = hashing.owners(names[:-1])
    assert set(before) == set(names)
    assert all(new == old for old, new in zip(before, after, strict=True) if old != names[-1])
    assert hashing.owners(reversed(names)) == before


networks = st.builds(
    lambda address, length: IPv4Network((address, length), strict=False),
    st.integers(0, 2**32 - 1),
    st.integers(0, 32),
)


@given(st.lists(networks, min_size=1, max_size=8), st.data())
def test_disjoint_ranges_are_the_longest_match(found: list[IPv4Network], data: st.DataObject) -> None:
    layers = [(network, str(network)) for network in sorted(set(found), key=lambda n: n.prefixlen)]
    ranges = _disjoint(layers)
    assert all(one[1] < two[0] for one, two in itertools.pairwise(ranges))
    edges = [int(a) for n in found for a in (n[0], n[-1])]
    address = data.draw(st.one_of(st.integers(0, 2**32 - 1), st.sampled_from(edges)))
    matching = [network for network, _ in layers if IPv4Address(address) in network]
    expected = str(max(matching, key=lambda n: n.prefixlen)) if matching else None
    assert next((verdict for first, last, verdict in ranges if first <= address <= last), None) == expected


def test_machines_with_the_same_routes_share_a_chain() -> None:
    lb = IPv4Address("10.0.0.100")
    plan = NetworkPlan(
        "projects/p/global/networks/n",
        1460,
        {"s": IPv4Network("10.0.0.0/24")},
        (Balancer(lb, ()),),
        (
            Route(IPv4Network("10.1.0.0/16"), lb, frozenset({"a", "b"})),
            Route(IPv4Network("10.2.0.0/16"), lb),
        ),
    )
    chains = steering(plan, []).chains
    assert [name for name in chains if name.startswith("routes")] == ["routes"]
    assert "10.2.0.0-10.2.255.255" in chains["routes"][0] and "10.1.0.0" not in chains["routes"][0]

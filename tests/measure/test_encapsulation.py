from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multinic.measure.errors import MeasureError
from multinic.measure.mtu import encapsulation
from multinic.measure.mtu.encapsulation import nest, parse

LAYERS = (
    *("vxlan", "docker", "geneve", "geneve:8", "gre", "gre:key", "gre:key:seq", "gretap", "ipip", "wireguard"),
    *("ipsec", "ipsec:aes-cbc-sha1", "ipsec:aes-cbc-sha256:nat", "ipsec:nat", "ipsec:transport"),
)


@pytest.mark.parametrize(
    ("layers", "mtu", "outer", "inside"),
    [
        # Published elsewhere: VXLAN 50 and 70, WireGuard 1440 and 1420 on 1500, GRE 24, IP in IP 20.
        (["vxlan"], 1500, 4, 1450),
        (["vxlan"], 9001, 4, 8951),
        (["vxlan"], 8896, 4, 8846),
        (["vxlan"], 1500, 6, 1430),
        (["geneve"], 1500, 4, 1450),
        (["geneve:8"], 1500, 4, 1442),
        (["wireguard"], 1500, 4, 1440),
        (["wireguard"], 1500, 6, 1420),
        (["gre"], 1500, 4, 1476),
        (["gre:key"], 1500, 4, 1472),
        (["gretap"], 1500, 4, 1462),
        (["ipip"], 1500, 4, 1480),
        (["ipsec"], 1500, 4, 1446),
        (["ipsec:aes-cbc-sha1"], 1500, 4, 1438),
        (["ipsec:aes-cbc-sha1:nat"], 1500, 4, 1422),
        (["ipsec:transport"], 1500, 4, 1466),
        (["wireguard", "docker"], 1460, 4, 1350),
        (["ipsec:transport", "vxlan"], 1500, 4, 1416),
    ],
)
def test_what_is_left(layers: list[str], mtu: int, outer: int, inside: int) -> None:
    assert nest(mtu, [parse(layer) for layer in layers], outer=outer)[-1].mtu == inside


def on_the_wire_esp(inner: int, version: int, cipher: str, nat: bool) -> int:
    """Size of the packet that tunnel-mode ESP makes of one of `inner` bytes, counted up field by field."""
    vector, alignment, check = encapsulation.CIPHERS[cipher]
    padding = -(inner + 2) % alignment
    return encapsulation.ip(version) + 8 * nat + 4 + 4 + vector + inner + padding + 1 + 1 + check


@given(st.integers(700, 9100), st.sampled_from([4, 6]), st.sampled_from(sorted(encapsulation.CIPHERS)), st.booleans())
def test_ipsec_fits_and_one_byte_more_does_not(mtu: int, version: int, cipher: str, nat: bool) -> None:
    inner = encapsulation.ipsec(cipher, nat=nat).inner(mtu, version)
    assert on_the_wire_esp(inner, version, cipher, nat) <= mtu < on_the_wire_esp(inner + 1, version, cipher, nat)


@given(st.lists(st.sampled_from(LAYERS), max_size=3), st.integers(1280, 9100), st.sampled_from([4, 6]))
def test_each_layer_takes_something_and_sums_up(layers: list[str], mtu: int, outer: int) -> None:
    steps = nest(mtu, [parse(layer) for layer in layers], outer=outer)
    assert all(inside.mtu < outside.mtu for outside, inside in pairwise(steps))
    assert steps[-1].mtu == mtu - sum(step.overhead for step in steps)
    assert nest(mtu + 1, [parse(layer) for layer in layers], outer=outer)[-1].mtu >= steps[-1].mtu


def test_too_deep_is_refused() -> None:
    with pytest.raises(MeasureError, match=r"bytes are left inside ipsec in ipsec"):
        nest(640, [parse("ipsec"), parse("ipsec")])


@pytest.mark.parametrize("text", ["", "vlxan", "geneve:7", "geneve:x", "ipsec:rot13", "gre:frames", "vxlan:8"])
def test_what_is_no_layer_is_refused(text: str) -> None:
    with pytest.raises(MeasureError):
        parse(text)


def test_share_of_payload_of_a_cap() -> None:
    # 1408 of 1474 bytes: Google Cloud's default network, timestamps on.
    assert encapsulation.tcp_share(1460) == pytest.approx(0.9552, abs=1e-4)
    assert encapsulation.tcp_share(8896) == pytest.approx(0.9926, abs=1e-4)

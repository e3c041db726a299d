from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multinic.measure.mtu.cures import OPTION, Severity
from multinic.measure.mtu.docker import Network, judge


def test_dockers_defaults_on_a_large_network_are_slow() -> None:
    """Reference 2's case: hosts at 9001, the overlay at Docker's 1500."""
    [overlay] = judge([Network("app", "overlay")], 9001)
    assert (overlay.severity, overlay.option) == (Severity.SLOW, 9001)
    assert f"docker network create --driver overlay --attachable --opt {OPTION}=9001 app" in overlay.cures[0]


def test_dockers_defaults_on_google_clouds_default_break_bridges() -> None:
    overlay, bridge = judge([Network("bridge", "bridge"), Network("app", "overlay")], 1460)
    assert (overlay.severity, overlay.option) == (Severity.BREAKS, 1460)
    assert (bridge.severity, bridge.option) == (Severity.BREAKS, 1460)
    assert 'daemon.json: {"mtu": 1460}' in bridge.cures[0]


@given(st.integers(1280, 9100), st.booleans())
def test_the_cure_cures(path: int, encrypted: bool) -> None:
    networks = [
        Network("app", "overlay", encrypted=encrypted),
        Network("ingress", "overlay", ingress=True),
        Network("docker_gwbridge", "bridge"),
        Network("bridge", "bridge"),
        Network("mine", "bridge"),
    ]
    for finding in judge(networks, path):
        name = finding.where.split()[-1]
        [network] = [one for one in networks if one.name == name]
        cured = Network(name, network.driver, finding.option, encrypted=network.encrypted, ingress=network.ingress)
        assert judge([cured], path) == []
        # What Docker makes of its option fits, and the option is the hosts' MTU, not the containers'.
        assert cured.mtu <= path - 50 * (network.driver == "overlay")


@pytest.mark.parametrize(("option", "mtu"), [(0, 1450), (1500, 1450), (8951, 8901), (9001, 8951), (9051, 9001)])
def test_docker_subtracts_fifty_itself(option: int, mtu: int) -> None:
    assert Network("app", "overlay", option).mtu == mtu


def test_each_kind_has_a_cure_of_its_own() -> None:
    networks = [
        Network("ingress", "overlay", ingress=True),
        Network("docker_gwbridge", "bridge"),
        Network("mine", "bridge"),
        Network("secret", "overlay", encrypted=True),
    ]
    cures = {finding.where.split()[-1]: finding.cures[0] for finding in judge(networks, 8896)}
    assert "--ingress" in cures["ingress"]
    assert "swarm leave" in cures["docker_gwbridge"]
    assert cures["mine"].startswith("docker network rm mine;")
    assert "--opt encrypted" in cures["secret"]
    # IPsec's transport mode takes its part before VXLAN does.
    assert f"{OPTION}=8862" in cures["secret"]


def test_what_containers_really_have_wins_over_the_option() -> None:
    assert judge([Network("app", "overlay", option=9001, seen=1450)], 9001)[0].severity is Severity.SLOW

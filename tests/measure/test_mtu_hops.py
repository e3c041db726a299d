"""What is concluded from what hosts say and probes find: no network needed."""

from __future__ import annotations

import pytest

from multinic.measure.errors import WordError
from multinic.measure.mtu.cures import Severity
from multinic.measure.mtu.host import Host, Link
from multinic.measure.mtu.path import End, hops, judge, walk
from multinic.measure.mtu.probe import Passed
from multinic.measure.shell import Shell


def host(title: str, *nics: tuple[str, int, str, int], route_mtu: int = 0) -> Host:
    links = {name: Link(name, mtu, "veth", vpc, vpc_mtu, ("10.0.0.1",)) for name, mtu, vpc, vpc_mtu in nics}
    return Host(title, links, nics[0][0], route_mtu, {})


def passed(largest: int, told: int | None = None) -> Passed:
    return Passed("a", "b", largest, told, "10.0.0.9" if told else None)


def test_hops_go_from_nic_to_vpc_to_router_to_vpc_to_nic() -> None:
    client = host("client", ("ens4", 8896, "left", 8896))
    router = host("router", ("ens5", 1460, "right", 1460), ("ens4", 8896, "left", 8896))
    server = host("server", ("ens4", 1460, "right", 1460))
    assert [(hop.kind, hop.name, hop.mtu) for hop in hops(client, [router], server)] == [
        ("NIC", "client ens4", 8896),
        ("VPC", "left", 8896),
        ("router NIC", "router ens4", 8896),
        ("router NIC", "router ens5", 1460),
        ("VPC", "right", 1460),
        ("NIC", "server ens4", 1460),
    ]


@pytest.mark.parametrize(
    ("nic", "vpc", "severity", "cure"),
    [
        (8896, 1460, Severity.HANGS, "ip link set dev ens4 mtu 1460"),
        (1460, 8896, Severity.SLOW, "ip link set dev ens4 mtu 8896"),
    ],
)
@pytest.mark.parametrize("which", ["client", "router", "server"])
def test_a_nic_that_is_not_as_its_network(nic: int, vpc: int, severity: Severity, cure: str, which: str) -> None:
    wrong = {name: (nic, vpc) if name == which else (vpc, vpc) for name in ("client", "router", "server")}
    client, router, server = (host(name, ("ens4", mine, "net", its)) for name, (mine, its) in wrong.items())
    small = min(nic, vpc)
    found = judge(client, [router], server, passed(small), passed(small))
    [finding] = [one for one in found if one.where == f"{which} ens4"]
    assert (finding.severity, finding.cures[0]) == (severity, cure)
    if severity is Severity.HANGS:
        assert any(f"networks update net --mtu={nic}" in one for one in finding.cures)


def test_the_first_mismatch_on_the_way_comes_first() -> None:
    client = host("client", ("ens4", 9000, "left", 8896))
    server = host("server", ("ens4", 1400, "right", 1460))
    first, *others = judge(client, [], server, passed(1400, 1400), passed(1400))
    assert first.where == "client ens4"
    assert others[0].where == "server ens4"


def test_a_route_of_its_own_counts_as_the_hosts_mtu() -> None:
    client = host("client", ("ens4", 8896, "", 0), route_mtu=1460)
    server = host("server", ("ens4", 1460, "", 0))
    assert judge(client, [], server, passed(1460), passed(1460)) == []


def test_a_path_from_a_place_to_itself_is_refused() -> None:
    here = End(Shell("here"), "10.0.0.1")
    for there in (End(Shell("here"), "10.0.0.2"), End(Shell("there", ("ssh", "there")), "10.0.0.1")):
        with pytest.raises(WordError, match="one place"):
            walk(here, there)

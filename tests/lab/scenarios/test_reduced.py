"""Where guests cannot run, the demo shows what the program makes and the way of a packet, and says what is missing."""

from __future__ import annotations

import pytest

from multinic.lab.scenarios import settings
from multinic.lab.scenarios.program import Program
from multinic.lab.scenarios.reduced import explain

from .conftest import ROOT


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    lines: list[str] = []
    program = Program(ROOT, "dev", None)
    folder = tmp_path_factory.mktemp("lab")
    explain(program, program.config(settings.OURS), folder, port, "Guests need root.", lines.append)
    assert not folder.exists()
    return lines


def test_every_kind_of_resource_of_reference_1_is_there(told: list[str]) -> None:
    counts = {words[1]: int(words[0]) for line in told if len(words := line.split()) > 2 and words[0].isdigit()}
    wanted = {
        "InstanceTemplate": 1,
        "InstanceGroupManager": 3,
        "Autoscaler": 3,
        "HealthCheck": 2,
        "Account": 1,
        "RegionBackendService": 2,
        "Address": 2,
        "ForwardingRule": 2,
        "Route": 2,
        "Instance": 2,
    }
    assert {kind: counts.get(kind) for kind in wanted} == wanted
    assert counts["Firewall"] >= 4


def test_routes_go_both_ways_by_the_load_balancers(told: list[str]) -> None:
    text = "\n".join(told)
    assert "10.20.0.0/24 → router-nic0-rule" in text
    assert "10.10.0.0/24 → router-nic1-rule" in text


def test_a_packet_goes_by_one_of_three_routers_to_the_server(told: list[str]) -> None:
    start = next(index for index, line in enumerate(told) if "The way of a packet" in line)
    way = told[start : start + 5]
    assert "next hop is the load balancer" in way[1]
    assert way[2].count("router-fleet-") == 3
    assert "to ends-server-0" in way[3]
    assert way[4].strip() == "delivered"


def test_what_was_not_run_is_said_last(told: list[str]) -> None:
    assert told[-1].strip() == ("Not run: guests, traffic and the kill, and so no table and no plot. Guests need root.")

"""More than two networks: by destination, never back, the unknown dropped and counted. And the model is right."""

import json
import random
from collections.abc import Callable, Iterator

import pytest
from model import parse
from rule_model import Kernel
from trees import tree
from wanted import wanted
from wire import Wire, wire

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    with wire(tmp_path_factory.mktemp("three"), nics=3) as made:
        made.serve_metadata()
        assert made.routing("start").returncode == 0
        yield made


def test_every_pair_of_networks(three: Wire) -> None:
    for source in range(3):
        for target in range(3):
            if source != target:
                assert three.ping(source, f"10.{target}.0.10")
                assert three.ping(source, f"172.{16 + target}.0.10")


def test_probes_in_each_network(three: Wire) -> None:
    three.start("policy-routing watch", "hc-traffic")
    three.wait_for(lambda: [three.probe(network, f"10.{network}.0.9")[0] for network in range(3)] == [200] * 3)


def count(wire: Wire, name: str) -> int:
    shown = wire.run("r", "nft", "list", "counter", "ip", "multinic", name).stdout
    return int(shown.split("packets ")[1].split()[0])


def test_unknown_destinations_are_dropped_and_counted(three: Wire) -> None:
    three.ip("0", "route replace 203.0.113.0/24 via 10.0.0.2 dev up0 onlink src 10.0.0.10")
    before = count(three, "no_route")
    assert not three.ping(0, "203.0.113.5")
    assert count(three, "no_route") == before + 1
    assert json.loads(three.routing("verify").stdout)["drops"]["no_route"] == before + 1


def test_the_kernel_agrees_with_the_model(three: Wire) -> None:
    """The property tests judge by a model of rule lookup: here the kernel is asked the same questions."""
    devices = {index: three.nic(index) for index in range(3)}
    model = Kernel(wanted(parse(tree(3)), devices))
    chance = random.Random(20260501)
    hosts = [f"10.{n}.0.{h}" for n in range(3) for h in (1, 2, 9, 10, 200)] + [f"172.{16 + n}.{n}.7" for n in range(3)]
    hosts += ["8.8.8.8", "198.51.100.7"]
    questions = [
        (chance.choice(hosts), chance.choice(hosts), chance.choice([*devices.values(), "lo"])) for _ in range(300)
    ]
    own = {f"10.{n}.0.{h}" for n in range(3) for h in (2, 9)}
    # Linux takes no packet from outside with a source of its own, and sends none with one that is not.
    questions = [(s, d, i) for s, d, i in questions if (s in own) == (i == "lo") and s != d]
    lines = [f"route get {d} from {s}" + (f" iif {i}" if i != "lo" else "") for s, d, i in questions]
    output = three.run(
        "r", "ip", "-N", "-d", "-json", "-force", "-batch", "-", text="\n".join(lines) + "\n", check=False
    ).stdout
    answers = {}
    for line in output.splitlines():
        for held in json.loads(line):
            local = held.get("type") == "2"
            answers[held["from"], held["dst"], held.get("iif", "lo")] = "local" if local else held["dev"]
    assert len(questions) > 50
    for question in questions:
        assert answers.get(question, "drop") == model.lookup(*question), question


@pytest.mark.slow
def test_changed_lists_take_effect(make_wire: Callable[..., Wire]) -> None:
    """A CIDR that is added to the metadata is routed within a moment, and one that is taken away is not."""
    made = make_wire(nics=3)
    made.serve_metadata()
    made.start("policy-routing watch")
    made.ip("2", "addr add 192.168.5.5/32 dev lo")
    made.ip("0", "route add 192.168.5.0/24 via 10.0.0.2 dev up0 onlink src 10.0.0.10")
    made.wait_for(lambda: made.ping(0, "10.2.0.10"))
    assert not made.ping(0, "192.168.5.5")
    lists = [{"cidrs": []}, {"cidrs": []}, {"cidrs": ["192.168.5.0/24"]}]
    made.set_metadata(tree(3, attributes={"multinic-networks": json.dumps(lists)}))
    made.wait_for(lambda: made.ping(0, "192.168.5.5"), "added")
    made.set_metadata(tree(3))
    made.wait_for(lambda: "192.168.5.0/24" not in made.state(), "taken away")


def test_nested_ranges_of_two_networks_do_not_bounce(make_wire: Callable[..., Wire]) -> None:
    """0.0.0.0/0 behind nic1 and 10.0.0.0/16 behind nic0: an unused address of the latter is not sent round."""
    made = make_wire()
    lists = [{"cidrs": ["10.0.0.0/16"]}, {"cidrs": ["0.0.0.0/0"]}]
    made.serve_metadata(tree(attributes={"multinic-networks": json.dumps(lists)}))
    assert made.routing("start").returncode == 0
    assert made.ping(0, "10.1.0.10")
    assert made.ping(1, "10.0.0.10")
    made.ip("0", "route replace 10.0.7.0/24 via 10.0.0.2 dev up0 onlink src 10.0.0.10")
    before = forwarded(made)
    assert not made.ping(0, "10.0.7.7")
    assert forwarded(made) == before
    assert made.ping(0, "10.1.0.10")
    assert forwarded(made) == before + 2, "the question and its answer"


def forwarded(wire: Wire) -> int:
    names, values = [
        line.split() for line in wire.run("r", "cat", "/proc/net/snmp").stdout.splitlines() if line.startswith("Ip:")
    ]
    return int(values[names.index("ForwDatagrams")])

"""A running router follows its metadata: forwarded addresses, drain requests, mistakes, and silence."""

import json
from collections.abc import Callable

import pytest
from trees import interface, tree
from wire import GUEST, PYTHON, Wire

pytestmark = pytest.mark.root


def test_forwarded_addresses_follow_the_metadata(router: Wire) -> None:
    """U18: a forwarding rule that is added after boot is answered, and one that is gone is forgotten."""
    router.ip("1", "route add 10.1.0.77 dev up1 src 10.1.0.10")
    assert router.probe(1, "10.1.0.77")[0] == 0
    router.set_metadata(tree(interfaces=[interface(0), interface(1, forwardedIps=["10.1.0.9", "10.1.0.77"])]))
    router.wait_for(lambda: router.probe(1, "10.1.0.77")[0] == 200, "answered")
    moved = [interface(0, forwardedIps=["10.0.0.9", "10.1.0.77"]), interface(1)]
    router.set_metadata(tree(interfaces=moved))
    router.wait_for(lambda: "local 10.1.0.77 dev ens4" in router.state(), "it is another NIC's now")
    router.wait_for(lambda: router.probe(1, "10.1.0.9")[0] == 200, "and nothing is left of where it was")
    router.set_metadata(tree())
    router.wait_for(lambda: "10.1.0.77" not in router.state(), "forgotten")
    assert router.probe(1, "10.1.0.9")[0] == 200


def test_the_guest_agents_local_route_is_enough_and_stays(router: Wire) -> None:
    """The agent owns `proto 66` entries: ours gives way to none and doubles none."""
    router.ip("r", "route del local 10.1.0.9 dev ens5 table local")
    router.wait_for(lambda: "local 10.1.0.9" in router.state())
    router.routing("stop")
    router.ip("r", "route add local 10.1.0.9 dev ens5 table local proto 66")
    assert router.routing("start").returncode == 0
    shown = [line for line in router.ip("r", "route show table local").splitlines() if "10.1.0.9" in line]
    assert [("66" in line, "213" in line) for line in shown] == [(True, False)]


def test_drain_by_metadata_and_back(router: Wire) -> None:
    """An operator drains without SSH; the heal check stays open and packets go on."""
    router.set_metadata(tree(attributes={"multinic-drain": "true"}))
    router.wait_for(lambda: router.reasons() == {"drained"}, "drained")
    assert router.probe(1, "10.1.0.9")[1]["status"] == "drained"
    assert router.probe(0, "10.0.0.2", 9000)[0] == 200
    assert router.ping(0, "10.1.0.10")
    router.set_metadata(tree())
    router.wait_for(lambda: router.probe(0, "10.0.0.9")[0] == 200, "undrained")


def test_drain_by_stopping_the_endpoint(router: Wire) -> None:
    """`systemctl stop hc-traffic` ends the process: the port closes at once, forwarding goes on."""
    endpoint = next(process for process in router.processes if "hc-traffic" in str(process.args))
    router.stop(endpoint)
    assert endpoint.returncode == 0
    assert router.probe(0, "10.0.0.9")[0] == 0
    assert router.ping(0, "10.1.0.10")
    assert router.probe(0, "10.0.0.2", 9000)[0] == 200


def test_bad_metadata_keeps_the_last_good_state(router: Wire) -> None:
    """A slip in the metadata of a whole fleet must not end its forwarding; it is told, and cured by the next answer."""
    before = router.state()
    router.set_metadata(tree(interfaces=[interface(0), interface(1, ip="")]))
    router.wait_for(lambda: any("metadata-invalid" in held for held in router.verdict()["warnings"]), "told")
    assert router.state() == before
    assert router.probe(0, "10.0.0.9")[0] == 200
    router.set_metadata(tree())
    router.wait_for(lambda: not router.verdict()["warnings"], "cured")


@pytest.mark.parametrize("trouble", ["metadata-invalid", "metadata-unavailable"])
def test_repair_by_hand_closes_nothing_whatever_the_metadata(router: Wire, trouble: str) -> None:
    """`policy-routing start` and `verify` go by the last good description, as the watcher does, and say so."""
    if trouble == "metadata-invalid":
        router.set_metadata(tree(interfaces=[interface(0), interface(1, ip="")]))
    else:
        router.stop(next(process for process in router.processes if "metadata_server" in str(process.args)))
    kept = router.folder / "run/metadata.json"
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "read": 0}))
    router.ip("r", "route flush table 1001")
    script = f"umask 077; exec {PYTHON} -IS {GUEST}/bin/policy-routing start"
    assert router.run("r", "bash", "-c", script, check=False).returncode == 0
    assert router.probe(0, "10.0.0.9")[0] == 200
    assert (router.folder / "run/verdict.json").stat().st_mode & 0o777 == 0o644, "the endpoints run as nobody"
    said = router.routing("verify")
    assert (said.returncode, trouble in json.loads(said.stdout)["warnings"][0]) == (0, True)


def test_without_metadata_nothing_opens_and_with_it_all_does(make_wire: Callable[..., Wire]) -> None:
    wire = make_wire()
    wire.start("policy-routing watch", "hc-traffic", "hc-health")
    wire.wait_for(lambda: "metadata-unavailable" in str(wire.probe(0, "10.0.0.2")[1]), "closed")
    assert wire.probe(0, "10.0.0.2", 9000)[0] == 503
    wire.serve_metadata()
    wire.wait_for(lambda: wire.probe(0, "10.0.0.9")[0] == 200, "open")


@pytest.mark.slow
def test_a_metadata_server_that_goes_away_closes_nothing(router: Wire) -> None:
    server = next(process for process in router.processes if "metadata_server" in str(process.args))
    router.stop(server)
    seen = router.verdict()["monotonic"]
    router.wait_for(lambda: router.verdict()["monotonic"] > seen)
    assert router.probe(0, "10.0.0.9")[0] == 200
    assert router.probe(0, "10.0.0.2", 9000)[0] == 200

"""The fault matrix: what each fault does to a running router and to TCP streams through it, in both directions.

`make faults` (as root) prints a table in Markdown and writes `out/faults.json`, rows: fault, outcome (repaired
by itself, drained, healed), seconds to repair, longest gap of both streams, lost streams. Network namespaces, no
systemd: what systemd does (it restarts a dead program) is shown by the lab's scenarios.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "guest" / "lib")]

from trees import interface, tree  # noqa: E402
from wire import GUEST, Wire, wire  # noqa: E402

Inject = Callable[[Wire], Any]


def ip(*commands: str) -> Inject:
    return lambda made: [made.ip("r", command) for command in commands]


def sysctl(setting: str) -> Inject:
    return lambda made: made.run("r", "sysctl", "-qw", setting)


def metadata(**options: Any) -> Inject:
    return lambda made: made.set_metadata(tree(**options))


def end(program: str) -> Inject:
    return lambda made: made.stop(next(p for p in made.processes if program in str(p.args) and p.poll() is None))


def rename(made: Wire) -> None:
    made.ip("r", "link set ens5 down")
    made.ip("r", "link set ens5 name eth1")


def renew(made: Wire) -> None:
    """A DHCP client drops the address and takes it anew, with its own routes."""
    made.ip("r", "addr del 10.1.0.2/32 dev ens5")
    made.ip("r", "addr add 10.1.0.2/32 dev ens5")
    made.ip("r", "route add 10.1.0.1 dev ens5 scope link")


def flap(made: Wire) -> None:
    for _ in range(3):
        made.ip("r", "link set ens5 down")
        made.ip("r", "link set ens5 up")


FAULTS: dict[str, Inject] = {
    "address of nic1 deleted": ip("addr del 10.1.0.2/32 dev ens5"),
    "addresses of nic0 flushed": ip("addr flush dev ens4"),
    "DHCP client renews nic1": renew,
    "another address on nic1": ip("addr add 10.1.0.55/32 dev ens5"),
    "link of nic0 down": ip("link set ens4 down"),
    "link of nic1 down": ip("link set ens5 down"),
    "link of nic1 flaps": flap,
    "nic1 renamed": rename,
    "MTU of nic1 lowered": ip("link set ens5 mtu 1300"),
    "table nic0 flushed": ip("route flush table 1000"),
    "table nic1 flushed": ip("route flush table 1001"),
    "gateway route of nic1 deleted": ip("route del 10.1.0.1 dev ens5 table 1001"),
    "table main flushed": ip("route flush table main"),
    "foreign default route in table nic1": ip("route replace default dev ens4 table 1001"),
    "all rules flushed": ip("rule flush"),
    "transit rule of nic0 deleted": ip("rule del pref 1000"),
    "source rules of nic1 deleted": ip("rule del pref 1101"),
    "base rule local deleted": ip("rule del pref 0"),
    "base rule main deleted": ip("rule del pref 32766"),
    "foreign rule before ours": ip("rule add pref 400 iif ens4 lookup main"),
    "agent's rule without a priority": ip(
        "route add default via 10.0.0.1 dev ens4 table 200", "rule add from 10.0.0.0/24 lookup 200"
    ),
    "route before ours in table nic1": ip("route prepend default via 10.0.0.1 dev ens4 table 1001"),
    "route with a metric in table nic1": ip("route add default via 10.0.0.1 dev ens4 table 1001 metric 500"),
    "nic1 a port of a bridge": ip("link add br0 type bridge", "link set ens5 master br0"),
    "wrong permanent neighbour": ip("neigh replace 10.1.0.1 lladdr 02:00:00:00:00:99 dev ens5 nud permanent"),
    "local route for a host behind nic1": ip("route add local 10.1.0.10 dev lo table local"),
    "blackhole rule at 0": ip("rule add pref 0 from 10.0.0.0/24 blackhole"),
    "multipath route in table nic1": ip(
        "route add 10.1.0.0/24 table 1001 nexthop via 10.0.0.1 dev ens4 onlink nexthop via 10.1.0.1 dev ens5 onlink"
    ),
    "table local flushed": ip("route flush table local"),
    "local route of nic0's rule deleted": ip("route del local 10.0.0.9 dev ens4 table local"),
    "local route of nic1's rule deleted": ip("route del local 10.1.0.9 dev ens5 table local"),
    "ip_forward off": sysctl("net.ipv4.ip_forward=0"),
    "forwarding of nic0 off": sysctl("net.ipv4.conf.ens4.forwarding=0"),
    "strict filter on nic1": sysctl("net.ipv4.conf.ens5.rp_filter=1"),
    "strict filter on all": sysctl("net.ipv4.conf.all.rp_filter=1"),
    "NICs answer no ARP request": sysctl("net.ipv4.conf.all.arp_ignore=8"),
    "ICMP source sysctl off": sysctl("net.ipv4.icmp_errors_use_inbound_ifaddr=0"),
    "packet filter deleted": lambda made: made.run("r", "nft", "delete", "table", "ip", "multinic"),
    "metadata server gone": end("metadata_server"),
    "metadata broken": metadata(interfaces=[interface(0), interface(1, ip="")]),
    "forwarded address added": metadata(interfaces=[interface(0), interface(1, forwardedIps=["10.1.0.9", "10.1.0.8"])]),
    "drain request in the metadata": metadata(attributes={"multinic-drain": "true"}),
    "hc-traffic stopped": end("hc-traffic"),
    "policy-routing watch dead": end("watch"),
    "nic1 gone": lambda made: made.ip("1", "link del up1"),
}

SETTLED = 1.5
"""Seconds after which the traffic check is looked at: a drain request has arrived by then."""

PATIENCE = 150.0
"""Seconds in which something must have come of a fault: a dead watcher is waited for longest."""


LINE = "| {:36} | {:18} | {:>8} | {:>7} | {:>5} |"


def open_for_traffic(made: Wire) -> bool:
    return all(made.probe(network, f"10.{network}.0.9")[0] == 200 for network in (0, 1))


def healthy(made: Wire) -> bool:
    return made.run("0", "true").returncode == 0 and made.probe(0, "10.0.0.2", 9000)[0] == 200


def streams(made: Wire) -> "list[subprocess.Popen[str]]":
    started = []
    for network in (0, 1):
        command = [sys.executable, str(HERE / "packets.py"), "stream", f"10.{network}.0.10", f"10.{1 - network}.0.10"]
        started.append(
            subprocess.Popen(
                ["ip", "netns", "exec", made.ns(str(network)), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    made.processes += started
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "connected\n"
    return started


def try_fault(name: str, inject: Inject, folder: Path) -> dict[str, Any]:
    """One router, one fault."""
    with wire(folder) as made:
        made.serve_metadata()
        assert made.routing("start").returncode == 0
        made.start("policy-routing watch", "hc-traffic", "hc-health")
        made.wait_for(lambda: open_for_traffic(made) and healthy(made))
        for network in (0, 1):
            made.serve_packets(network)
        running = streams(made)
        time.sleep(0.5)
        start = time.monotonic()
        inject(made)
        outcome, repaired = "", None
        # The kernel is as wanted all the time: only the traffic check can show what such a fault does.
        silent = "metadata" in name
        while not outcome:
            now = time.monotonic() - start
            if repaired is None and not silent and watched(made) and made.routing("verify").returncode == 0:
                repaired = round(time.monotonic() - start, 2)
            if not healthy(made):
                outcome = "healed"
            elif now > SETTLED and open_for_traffic(made) and (silent or repaired is not None):
                outcome = "goes on" if silent else "repaired by itself"
            elif now > SETTLED and not open_for_traffic(made) and not waits_for_healing(made):
                outcome = "drained"
            elif now > PATIENCE:
                outcome = "nothing happened"
            time.sleep(0.05)
        gaps, lost = [], 0
        for process in running:
            out, _ = process.communicate("end\n", timeout=60)
            words = out.split()
            lost += words[-1:] == ["lost"]
            gaps += [float(word) for word in words if word != "lost"]
        return {
            "fault": name,
            "outcome": outcome,
            "seconds_to_repair": repaired if outcome == "repaired by itself" else None,
            "longest_gap_s": max(gaps, default=None),
            "lost_streams": lost,
        }


def watched(made: Wire) -> bool:
    """Whether the watcher lives: without it nothing is repaired, and the verdict grows old."""
    return any("watch" in str(process.args) and process.poll() is None for process in made.processes)


def waits_for_healing(made: Wire) -> bool:
    """Whether the closed port is the first step to healing: repair keeps failing, or the verdict grows old."""
    reasons = {reason["name"] for reason in made.probe(0, "10.0.0.2")[1].get("reasons", [])}
    return bool(reasons - {"drained"}) or not watched(made)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/faults.json"), help="where the rows go")
    parser.add_argument("--only", default="", help="faults whose name contains this")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("faults: network namespaces need root: sudo make faults")
    rows = []
    print(LINE.format("Fault", "Outcome", "Repair s", "Gap s", "Lost"))
    print(LINE.format("-" * 36, "-" * 18, "-" * 7 + ":", "-" * 6 + ":", "-" * 4 + ":"), flush=True)
    with tempfile.TemporaryDirectory() as base:
        for number, (name, inject) in enumerate(FAULTS.items()):
            if arguments.only in name:
                folder = Path(base) / str(number)
                folder.mkdir()
                rows.append(row := try_fault(name, inject, folder))
                repair = "" if row["seconds_to_repair"] is None else f"{row['seconds_to_repair']:.2f}"
                gap = "" if row["longest_gap_s"] is None else f"{row['longest_gap_s']:.2f}"
                print(LINE.format(name, row["outcome"], repair, gap, row["lost_streams"]), flush=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    assert GUEST.exists()
    main()

"""Figures of the guest, as ratios of one run: `make guest-benchmark`, as root. Nothing here has a limit of time.

- apply: the wanted state by one reconcile pass, and by the whole program with Python's start and its question for the
  metadata, against one `ip`, `sysctl` or `nft` process per command;
- forwarding: packets per second with our rules, and without parts of them, against the same hops with plain routes,
  offloads off. Seconds of the sender's CPU time: each packet goes all the way inside the system call that sends it, so
  other work on the machine does not count, and with nothing else to do they are seconds of the clock;
- repair: milliseconds from a flushed table to the whole state;
- idle: CPU and memory of all programs of a VM together.
"""

import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "guest" / "lib")]

from differences import describe  # noqa: E402
from model import parse  # noqa: E402
from trees import tree  # noqa: E402
from wanted import wanted  # noqa: E402
from wire import GUEST, PYTHON, Wire, wire  # noqa: E402

ROUNDS = 7

RECONCILE = """
import sys, time
sys.path.insert(0, sys.argv[1])
import kernel, reconcile, routing
router, _ = routing.router_now(1e9)
start = time.monotonic()
outcome = reconcile.reconcile(router)
print(time.monotonic() - start, len(outcome.left))
"""

BLAST = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 0)); s.connect((sys.argv[2], 9))
start = time.process_time(); end = start + float(sys.argv[3])
while time.process_time() < end:
    for _ in range(200):
        try: s.send(b"x" * 18)
        except ConnectionRefusedError: pass
print(time.process_time() - start)
"""


def commands(router_wire: Wire) -> str:
    """The wanted state as a shell script of single commands, timed by itself."""
    target = wanted(parse(tree()), {0: router_wire.nic(0), 1: router_wire.nic(1)})
    lines = ["link set dev ens5 up", "addr add 10.1.0.2/32 dev ens5"]
    # The kernel's own entries are there already.
    own = {link.address for link in target.links}
    lines += [f"route replace {describe(route)}" for route in target.routes if route.destination not in own]
    lines += [f"rule add {describe(rule)}" for rule in target.rules]
    script = ["start=$(date +%s%N)", *(f"ip {line}" for line in lines)]
    script += [f"sysctl -qw {path.replace('/', '.')}={value}" for path, value in target.sysctls]
    script += [f"nft -f - <<'E'\n{target.nft}E", "echo $(( $(date +%s%N) - start ))"]
    return "\n".join(script)


def apply(folder: Path) -> dict[str, list[float]]:
    """Seconds for the whole state from nothing, in each way."""
    times: dict[str, list[float]] = {"one process per command": [], "one pass": [], "policy-routing start": []}
    for number in range(ROUNDS):
        for place, (which, held) in enumerate(times.items()):
            where = folder / f"{number}.{place}"
            where.mkdir()
            with wire(where) as made:
                made.serve_metadata()
                if which == "one process per command":
                    held.append(int(made.run("r", "bash", "-ec", commands(made)).stdout) / 1e9)
                    assert made.ping(0, "10.1.0.10")
                elif which == "one pass":
                    seconds, left = made.run("r", PYTHON, "-ISc", RECONCILE, str(GUEST / "lib")).stdout.split()
                    assert left == "0"
                    held.append(float(seconds))
                else:
                    start = time.monotonic()
                    assert made.routing("start").returncode == 0
                    held.append(time.monotonic() - start)
    return times


def ratio(above: list[float], below: list[float]) -> float:
    """Median of the rounds' ratios: other work on the machine then disturbs both sides of each."""
    return statistics.median(one / other for one, other in zip(above, below, strict=True))


def forwarded(made: Wire) -> int:
    names, values = [
        line.split() for line in made.run("r", "cat", "/proc/net/snmp").stdout.splitlines() if line.startswith("Ip:")
    ]
    return int(values[names.index("ForwDatagrams")])


def plain(made: Wire) -> None:
    """The same hops by the main table, without rules and filter."""
    made.ip("r", "link set ens5 up")
    made.ip("r", "addr add 10.1.0.2/32 dev ens5")
    made.ip("r", "route add 10.1.0.1 dev ens5 scope link")
    made.ip("r", "route add 10.1.0.0/24 via 10.1.0.1 dev ens5")
    made.run(
        "r", "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.ens5.rp_filter=0"
    )
    made.run("r", "sysctl", "-qw", "net.ipv4.conf.ens4.rp_filter=0")


def started(made: Wire) -> None:
    """A router as it should be."""
    made.serve_metadata()
    assert made.routing("start").returncode == 0


def sender_looked_up(made: Wire) -> None:
    """Each packet's sender is looked up, too."""
    started(made)
    for device in ("ens4", "ens5"):
        made.run("r", "sysctl", "-qw", f"net.ipv4.conf.{device}.accept_local=0")


def unfiltered(made: Wire) -> None:
    """There is no filter."""
    started(made)
    made.run("r", "nft", "delete", "table", "ip", "multinic")


VARIANTS = {
    "plain routes": plain,
    "our rules": started,
    "our rules, senders looked up": sender_looked_up,
    "our rules, no filter": unfiltered,
}


def forwarding(folder: Path) -> dict[str, list[float]]:
    """Packets a second by each variant, all in turns."""
    rates: dict[str, list[float]] = {name: [] for name in VARIANTS}
    with ExitStack() as stack:
        wires = []
        for number, (name, prepare) in enumerate(VARIANTS.items()):
            place = folder / str(number)
            place.mkdir()
            made = stack.enter_context(wire(place))
            prepare(made)
            for namespace, device in (("0", "up0"), ("r", "ens4"), ("r", "ens5"), ("1", "up1")):
                made.run(namespace, "ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off")
            wires.append((name, made))
        for _ in range(2 * ROUNDS):
            # In turns: whoever comes first is slower, also if all are the same.
            wires.append(wires.pop(0))
            wires.reverse()
            for name, made in wires:
                before = forwarded(made)
                sent = made.run("0", PYTHON, "-ISc", BLAST, "10.0.0.10", "10.1.0.10", "0.7")
                rates[name].append((forwarded(made) - before) / float(sent.stdout))
    return rates


def ticks(pid: int) -> int:
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))


def repair_and_idle(folder: Path) -> tuple[float, float, float]:
    times = []
    with wire(folder) as made:
        made.serve_metadata()
        assert made.routing("start").returncode == 0
        made.start("policy-routing watch", "hc-traffic", "hc-health")
        made.wait_for(lambda: made.probe(1, "10.1.0.9")[0] == 200)
        good = made.ip("r", "route show table 1001")
        for _ in range(ROUNDS):
            time.sleep(1.0)
            made.ip("r", "route flush table 1001")
            start = time.monotonic()
            made.wait_for(lambda: made.ip("r", "route show table 1001") == good)
            times.append(time.monotonic() - start)
        pids = [process.pid for process in made.processes[1:]]
        time.sleep(2.0)
        before = sum(map(ticks, pids))
        time.sleep(30.0)
        used = (sum(map(ticks, pids)) - before) / 100 / 30
        pss = 0
        for pid in pids:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            pss += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return statistics.median(times), used, pss / 1024


def main() -> None:
    if os.geteuid() != 0:
        sys.exit("guest-benchmark: network namespaces need root: sudo make guest-benchmark")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("apply", "forward", "idle"):
            (folder / part).mkdir()
        applied = apply(folder / "apply")
        single = applied["one process per command"]
        for what, held in applied.items():
            print(f"apply, {what}: {statistics.median(held) * 1e3:.0f} ms, {ratio(single, held):.1f} to 1")
        rates = forwarding(folder / "forward")
        for what, held in rates.items():
            shown = f"{statistics.median(held) / 1e3:.0f} k packets/s, ratio {ratio(held, rates['plain routes']):.2f}"
            print(f"forwarding, {what}: {shown}")
        repair, used, memory = repair_and_idle(folder / "idle")
        print(f"repair after a flushed table: {repair * 1e3:.0f} ms; idle: {used:.2%} of a core, {memory:.1f} MB PSS")


if __name__ == "__main__":
    main()

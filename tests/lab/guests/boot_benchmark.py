"""From the start of `startup.sh` to both ports 200, in a real guest: `make boot-benchmark`, as root.

A router without our files boots; then `startup.sh` runs as on its first boot, and the clock stops when 9000 and 9001
answer 200. Prints the phases, the metadata requests, and the processes that the guest has started meanwhile (by its
process numbers, so threads and systemd's own children count too). Beside it, in the same guest: the wanted state of
this very router by one `ip`, `sysctl` or `nft` process per command, and by one `policy-routing start`, from nothing.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[3]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "guest" / "lib")]

from differences import describe  # noqa: E402
from model import parse  # noqa: E402
from wanted import wanted  # noqa: E402

from multinic.lab.guests.linux import LinuxSubstrate  # noqa: E402
from tests.lab.guests.router_lab import MACHINES, RULES, RouterLab  # noqa: E402
from tests.lab.guests.router_metadata import attributes, tree  # noqa: E402
from tests.lab.inside import run_inside  # noqa: E402

ROUNDS = 7

BOOT = """
import json, os, socket, subprocess, sys, time
def last():
    return int(open("/proc/sys/kernel/ns_last_pid").read())
def answers(port):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as s:
            s.sendall(b"GET /status.json HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
            return s.recv(12).endswith(b"200")
    except OSError:
        return False
before, start = last(), time.monotonic()
script = subprocess.Popen(["bash", "/root/startup.sh"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
opened = {}
while len(opened) < 2 and time.monotonic() < start + 60:
    opened.update({port: time.monotonic() - start for port in (9000, 9001) if port not in opened and answers(port)})
    time.sleep(0.002)
said = script.communicate()[0]
seconds = max(opened.values(), default=0)
print(json.dumps({"opened": opened, "said": said, "seconds": seconds, "processes": last() - before}))
"""

RESET = (
    "systemctl stop policy-routing-watch policy-routing hc-traffic hc-health multinic-log.path multinic-log;"
    "systemctl disable --quiet policy-routing-watch policy-routing hc-traffic hc-health multinic-log.path;"
    "rm -rf /usr/bin/policy-routing /usr/bin/hc-* /usr/bin/multinic-log /usr/bin/kpanic /usr/lib/multinic /etc/multinic"
    " /etc/systemd/system/policy-routing* /etc/systemd/system/hc-* /etc/systemd/system/multinic-log*"
    " /etc/systemd/system/kpanic.service /etc/sysctl.d/zz-multinic.conf /run/multinic; systemctl daemon-reload;"
)
NOTHING = (
    "ip link set ens5 down; ip addr flush dev ens5; sysctl -qw net.ipv4.ip_forward=0 net.ipv4.conf.all.rp_filter=1;"
)


def single_commands(router: Any) -> str:
    """The wanted state, one process per command; prints the seconds that it took."""
    target = wanted(router, {0: "ens4", 1: "ens5"})
    lines = ["ip link set dev ens5 up mtu 1460", "ip addr add 10.1.0.2/32 dev ens5"]
    # The kernel's own entries are there already.
    own = {link.address for link in target.links}
    lines += [f"ip route replace {describe(route)}" for route in target.routes if route.destination not in own]
    lines += [f"ip rule add {describe(rule)}" for rule in target.rules]
    lines += [f"sysctl -qw {path.replace('/', '.')}={value}" for path, value in target.sysctls]
    lines += [f"nft -f - <<'E'\n{target.nft}E"]
    return "\n".join(["set -e", "start=$(date +%s%N)", *lines, "echo $(( $(date +%s%N) - start ))"])


async def measure(folder: Path) -> None:
    """All rounds, in one guest."""
    substrate = await LinuxSubstrate.create(folder)
    try:
        here = RouterLab(folder, substrate, {})
        await here.plan()
        held = attributes()
        metadata = tree(MACHINES["router"], held, RULES)
        asked = [0, 0]
        answer = substrate._metadata._answer

        async def counting(machine: str, request: Any, reader: Any) -> Any:
            asked["wait_for_change" in request.target] += 1
            return await answer(machine, request, reader)

        substrate._metadata._answer = counting  # type: ignore[method-assign]
        await substrate.start(MACHINES["router"])

        async def settled() -> bool:
            return (await here.run("sh", "-c", "systemctl is-system-running || true")).strip() == "running"

        await here.until(settled)
        substrate.serve_metadata(lambda _: metadata)
        await here.run("sh", "-c", f"cat >/root/startup.sh <<'SCRIPT'\n{held['startup-script']}\nSCRIPT\n")
        rounds: list[dict[str, Any]] = []
        passes: list[float] = []
        commands: list[float] = []
        one_by_one: list[float] = []
        for _ in range(ROUNDS):
            await here.run("sh", "-c", RESET + NOTHING)
            asked[:] = 0, 0
            done = json.loads(await here.run("python3", "-c", BOOT))
            assert len(done["opened"]) == 2, (done, await here.run("journalctl", "-n", "60", "--no-pager"))
            rounds.append(done | {"requests": asked[0]})
            # The same state once more, from nothing, in both ways.
            await here.run("sh", "-c", "systemctl stop policy-routing-watch; policy-routing stop;" + NOTHING)
            script = single_commands(parse(metadata))
            one_by_one.append(int(await here.run("bash", "-c", script)) / 1e9)
            assert not json.loads(await here.run("sh", "-c", "policy-routing verify || true"))["reasons"][1:]
            await here.run("sh", "-c", "policy-routing stop;" + NOTHING)
            timed = "start=$(date +%s%N); policy-routing start 2>&1; echo $(( $(date +%s%N) - start ))"
            said, nanoseconds = (await here.run("bash", "-c", timed)).splitlines()
            passes.append(float(said.partition("seconds=")[2].split()[0]))
            commands.append(int(nanoseconds) / 1e9)
        found = {"rounds": rounds, "passes": passes, "commands": commands, "one_by_one": one_by_one}
        (folder.parent / "found.json").write_text(json.dumps(found))
    finally:
        await substrate.close()


def main() -> None:
    if os.geteuid() != 0:
        sys.exit("boot-benchmark: guests need root: sudo make boot-benchmark")
    with tempfile.TemporaryDirectory() as name:
        run_inside(measure, Path(name), timeout=600)
        found = json.loads((Path(name) / "found.json").read_text())
    median = statistics.median
    said = found["rounds"][-1]["said"]
    print(said.strip())
    seconds = median(held["seconds"] for held in found["rounds"])
    processes = median(held["processes"] for held in found["rounds"])
    requests = max(held["requests"] for held in found["rounds"])
    print(
        f"startup.sh to both ports 200: {seconds * 1e3:.0f} ms, {processes:.0f} processes, {requests} metadata request"
    )
    single = found["one_by_one"]
    print(f"the same state by one process a command: {median(single) * 1e3:.0f} ms; beside it")
    for what, times in (("policy-routing's pass", found["passes"]), ("all of policy-routing start", found["commands"])):
        ratio = median(one / ours for ours, one in zip(times, single, strict=True))
        print(f"  {what}: {median(times) * 1e3:.0f} ms, {ratio:.1f} to 1")


if __name__ == "__main__":
    main()

"""From the start of `startup.sh` to both ports 200, in guests with 2, 3 and 8 NICs: `make boot-benchmark`, as root.

A router without our files boots; then `startup.sh` runs as on its first boot, and the clock stops when 9000 and 9001
answer 200. Prints the phases, the metadata requests, and the processes that the guest has started meanwhile (by its
process numbers, so threads and systemd's own children count too). Beside it, in the same guest and round: the wanted
state of this very router by one `ip`, `sysctl` or `nft` process per command, from nothing, and by one
`policy-routing start`; and what nobody could do without: bash, Python, and systemd starting the same units with
programs that do nothing. Fails on a second request, more than 20 processes, or less than 3 to 1: of the pass that
applies the state with any number of NICs, of the whole start with 8.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[3]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "guest" / "lib")]

from differences import describe  # noqa: E402
from model import parse  # noqa: E402
from wanted import wanted  # noqa: E402

from multinic.lab.guests.connections import Request  # noqa: E402
from multinic.lab.guests.exec import run_in_guest  # noqa: E402
from multinic.lab.guests.linux import LinuxSubstrate  # noqa: E402
from multinic.lab.guests.metadata import Answer  # noqa: E402
from multinic.lab.substrate import Machine, NetworkInterface, NetworkPlan  # noqa: E402
from tests.lab.guests.router_metadata import attributes, tree  # noqa: E402
from tests.lab.inside import run_inside  # noqa: E402

ROUNDS = 7
NICS = (2, 3, 8)
CIDRS = 5
"""Ranges behind each NIC. With two NICs the guest does not know them."""

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

IDLE = """
set -e
cd /run/systemd/system
for unit in policy-routing policy-routing-watch hc-traffic hc-health; do
  sed -E 's|^ExecStart=.*|ExecStart=/bin/true|; s|^Type=.*|Type=oneshot|
    /^(ExecStop|ExecReload|Restart|After|Wants|PartOf)/d' /etc/systemd/system/$unit.service >idle-$unit.service
done
systemctl daemon-reload
start=$(date +%s%N)
bash -c 'python3 -IS -c pass; systemctl start idle-policy-routing idle-policy-routing-watch \\
  idle-hc-traffic idle-hc-health'
echo $(( $(date +%s%N) - start ))
rm idle-*
"""

RESET = (
    "systemctl stop policy-routing-watch policy-routing hc-traffic hc-health multinic-log.path multinic-log;"
    "systemctl disable --quiet policy-routing-watch policy-routing hc-traffic hc-health multinic-log.path;"
    "rm -rf /usr/bin/policy-routing /usr/bin/hc-* /usr/bin/multinic-log /usr/bin/kpanic /usr/lib/multinic /etc/multinic"
    " /etc/systemd/system/policy-routing* /etc/systemd/system/hc-* /etc/systemd/system/multinic-log*"
    " /etc/systemd/system/kpanic.service /etc/sysctl.d/zz-multinic.conf /run/multinic; systemctl daemon-reload;"
)


def network(number: int) -> str:
    return f"projects/lab/global/networks/n{number}"


def router(nics: int) -> Machine:
    return Machine(
        "projects/lab/zones/z/instances/router",
        1,
        "router",
        tuple(
            NetworkInterface(
                network(number), f"s{number}", IPv4Address(f"10.{number}.0.2"), IPv4Address(f"10.{number}.0.1"), 1460
            )
            for number in range(nics)
        ),
        can_ip_forward=True,
    )


def behind(nics: int) -> dict[str, str]:
    """Metadata keys with the ranges behind each NIC."""
    networks = [{"mtu": None}] * nics
    config = json.loads(attributes()["multinic-config"]) | {"networks": networks}
    keys = {"multinic-config": json.dumps(config)}
    if nics > 2:
        lists = [{"cidrs": [f"172.{16 + number}.{block}.0/24" for block in range(CIDRS)]} for number in range(nics)]
        keys["multinic-networks"] = json.dumps(lists)
    return keys


def nothing(nics: int) -> str:
    """Takes away what `policy-routing stop` leaves: addresses and sysctls."""
    down = [f"ip link set ens{4 + number} down; ip addr flush dev ens{4 + number};" for number in range(1, nics)]
    return "".join(down) + "sysctl -qw net.ipv4.ip_forward=0 net.ipv4.conf.all.rp_filter=1;"


def single_commands(metadata: Any, nics: int) -> tuple[str, int]:
    """The wanted state, one process per command, as a script that prints the seconds; and how many commands."""
    target = wanted(parse(metadata), {number: f"ens{4 + number}" for number in range(nics)})
    lines = []
    for number in range(1, nics):
        lines += [f"ip link set dev ens{4 + number} up mtu 1460", f"ip addr add 10.{number}.0.2/32 dev ens{4 + number}"]
    # The kernel's own entries are there already.
    own = {link.address for link in target.links}
    lines += [f"ip route replace {describe(route)}" for route in target.routes if route.destination not in own]
    lines += [f"ip rule add {describe(rule)}" for rule in target.rules]
    lines += [f"sysctl -qw {path.replace('/', '.')}={value}" for path, value in target.sysctls]
    lines += [f"nft -f - <<'E'\n{target.nft}E"]
    return "\n".join(["set -e", "start=$(date +%s%N)", *lines, "echo $(( $(date +%s%N) - start ))"]), len(lines)


async def measure(folder: Path) -> None:
    """All rounds, one guest for each number of NICs."""
    found = {}
    for nics in NICS:
        lab = folder / str(nics)
        lab.mkdir()
        substrate = await LinuxSubstrate.create(lab)
        try:
            found[nics] = await rounds(lab, substrate, nics)
        finally:
            await substrate.close()
    (folder.parent / "found.json").write_text(json.dumps(found))


async def rounds(folder: Path, substrate: LinuxSubstrate, nics: int) -> dict[str, Any]:
    """Boots one router, and makes it one again and again."""
    for number in range(nics):
        subnets = {f"s{number}": IPv4Network(f"10.{number}.0.0/24")}
        await substrate.apply(NetworkPlan(network(number), 1460, subnets, (), (), ()))
    machine = router(nics)
    held = attributes() | behind(nics)
    metadata = tree(machine, held, {network(number): f"10.{number}.0.9" for number in range(nics)})
    asked = [0, 0]
    answer = substrate._metadata._answer

    async def counting(machine: str, request: Request, reader: asyncio.StreamReader) -> Answer | None:
        asked["wait_for_change" in request.target] += 1
        return await answer(machine, request, reader)

    async def run(*argv: str) -> str:
        return await asyncio.to_thread(run_in_guest, folder, "router", argv, timeout=90.0)

    substrate._metadata._answer = counting  # type: ignore[method-assign]
    substrate.serve_metadata(lambda _: tree(machine, {}, {}))
    await substrate.start(machine)
    await run("sh", "-c", "until systemctl is-system-running --wait; do sleep 0.2; done")
    substrate.serve_metadata(lambda _: metadata)
    await run("sh", "-c", f"cat >/root/startup.sh <<'SCRIPT'\n{held['startup-script']}\nSCRIPT\n")
    script, commands = single_commands(metadata, nics)
    boots: list[dict[str, Any]] = []
    seconds: dict[str, list[float]] = {"one_by_one": [], "idle": [], "start": [], "pass": []}
    for _ in range(ROUNDS):
        await run("sh", "-c", RESET + nothing(nics))
        asked[:] = 0, 0
        done = json.loads(await run("python3", "-c", BOOT))
        assert len(done["opened"]) == 2, (done, await run("journalctl", "-n", "60", "--no-pager"))
        boots.append(done | {"requests": asked[0]})
        # The same state once more, from nothing, in both ways.
        away = "systemctl stop policy-routing-watch; policy-routing stop;" + nothing(nics)
        await run("sh", "-c", away)
        seconds["one_by_one"].append(int(await run("bash", "-c", script)) / 1e9)
        left = json.loads(await run("sh", "-c", "policy-routing verify || true"))
        # The filter is the same, but whoever has loaded it did not note it as ours.
        assert {reason["name"] for reason in left["reasons"]} <= {"filter-missing"}, left
        await run("sh", "-c", away)
        timed = "start=$(date +%s%N); policy-routing start 2>&1; echo $(( $(date +%s%N) - start ))"
        said, nanoseconds = (await run("bash", "-c", timed)).splitlines()
        seconds["pass"].append(float(said.partition("seconds=")[2].split()[0]))
        seconds["start"].append(int(nanoseconds) / 1e9)
        seconds["idle"].append(int(await run("bash", "-c", IDLE)) / 1e9)
    return {"commands": commands, "boots": boots, "boot": [held["seconds"] for held in boots], **seconds}


def show(nics: str, found: dict[str, Any]) -> list[str]:
    """Prints one number of NICs as lines; returns what is not as it should be."""
    boots, single = found["boots"], found["one_by_one"]
    print(f"\n{nics} NICs; {boots[-1]['said'].strip()}")
    processes = statistics.median(held["processes"] for held in boots)
    requests = max(held["requests"] for held in boots)
    print(f"  {processes:.0f} processes and {requests} metadata request in startup.sh")
    print(f"  the same state by {found['commands']} commands: {statistics.median(single) * 1e3:.0f} ms; beside it")
    ratios = {}
    for key, what in (
        ("boot", "startup.sh to both ports 200"),
        ("idle", "bash, Python and systemd with units that do nothing"),
        ("start", "all of policy-routing start"),
        ("pass", "policy-routing's pass"),
    ):
        ratios[key] = statistics.median(one / ours for ours, one in zip(found[key], single, strict=True))
        print(f"  {what}: {statistics.median(found[key]) * 1e3:.0f} ms, {ratios[key]:.1f} to 1")
    wrong = []
    if requests != 1 or processes > 20:
        wrong.append(f"{nics} NICs: {requests} metadata requests, {processes:.0f} processes")
    judged = ("pass", "boot") if nics == "8" else ("pass",)
    return wrong + [f"{nics} NICs, {key}: {ratios[key]:.1f} to 1" for key in judged if ratios[key] < 3]


def main() -> None:
    if os.geteuid() != 0:
        sys.exit("boot-benchmark: guests need root: sudo make boot-benchmark")
    with tempfile.TemporaryDirectory() as name:
        run_inside(measure, Path(name), timeout=600)
        found = json.loads((Path(name) / "found.json").read_text())
    wrong = [problem for nics, held in found.items() for problem in show(nics, held)]
    if wrong:
        sys.exit("boot-benchmark: not as it should be: " + "; ".join(wrong))


if __name__ == "__main__":
    main()

"""Routers on each Debian release, beside each program that manages NICs: `make guest-matrix`, as root.

Debian 11 (systemd 247, Python 3.9), 12 and 13 (systemd 257), each with nothing else, with Google's guest agent (for
which Debian 11 has no package), with systemd-networkd and with NetworkManager. Each row is a whole life: first boot by
the start-up script, the other program started, restarted and made to set the NICs up anew under an open connection,
second boot by systemd alone, shutdown.
Prints a table and writes `out/guest-matrix.json`. An image takes about a minute to build, once.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.lab.guests.router_lab import MACHINES, RouterLab, router_lab
from tests.lab.inside import run_inside

RELEASES = {"bullseye": "Debian 11", "bookworm": "Debian 12", "trixie": "Debian 13"}
WITHOUT_AGENT = ("bullseye",)
PROFILES = "/etc/NetworkManager/system-connections"
OURS = "ip -4 -N rule show; for n in 1000 1001; do ip -4 -N route show table $n; done"
VERSIONS = "systemctl --version | sed -n '1s/systemd //p'; python3 -V; ip -V"

NETWORKD = """[Match]
MACAddress={mac}
[Link]
MTUBytes=1500
[Network]
LinkLocalAddressing=no
Address={address}/32
[Route]
Destination={gateway}/32
Scope=link
[Route]
Gateway={gateway}
GatewayOnLink=yes
Metric={metric}
"""
NETWORK_MANAGER = """[connection]
id=nic{number}
type=ethernet
[ethernet]
mac-address={mac}
[ipv4]
method=manual
address1={address}/32,{gateway}
route-metric={metric}
[ipv6]
method=disabled
"""

MANAGERS: dict[str, list[str]] = {
    "none": [],
    "guest agent": [
        "systemctl restart google-guest-agent",
        "systemctl stop google-guest-agent",
        "systemctl start google-guest-agent",
    ],
    "networkd": [
        # At its worst: not asked to leave others' rules and routes alone.
        "rm /etc/systemd/networkd.conf.d/multinic.conf; systemctl start systemd-networkd",
        "systemctl restart systemd-networkd",
        "networkctl reconfigure ens5",
        "ip link set ens4 down",
    ],
    "NetworkManager": [
        "systemctl start NetworkManager",
        "nmcli connection up nic1",
        "nmcli connection down nic1; nmcli connection up nic1",
        "nmcli networking off; nmcli networking on",
        "systemctl restart NetworkManager",
        "sysctl -qw net.ipv4.ip_forward=0 net.ipv4.conf.all.rp_filter=2 net.ipv4.conf.ens5.rp_filter=2",
    ],
}
"""Program → what is done to it, or what it does, one after the other."""

MANAGES = {
    "guest agent": "systemctl is-active --quiet google-guest-agent",
    "networkd": "networkctl --no-legend list ens5 | grep -q ' configured'",
    "NetworkManager": "nmcli -t -f DEVICE,STATE device | grep -q '^ens5:connected'",
}
"""Program → what shows that it has really taken nic1."""


async def configure(here: RouterLab, manager: str) -> None:
    """Has a program manage both NICs."""
    if manager not in ("networkd", "NetworkManager"):
        return
    for number, nic in enumerate(MACHINES["router"].interfaces):
        mac = (await here.run("cat", f"/sys/class/net/ens{4 + number}/address")).strip()
        values = {"number": number, "mac": mac, "address": nic.address, "gateway": nic.gateway, "metric": 100 + number}
        if manager == "networkd":
            place, text = f"/etc/systemd/network/{number}.network", NETWORKD.format(**values)
        else:
            place, text = f"{PROFILES}/nic{number}.nmconnection", NETWORK_MANAGER.format(**values)
        await here.run("sh", "-c", f"umask 077; printf %s '{text}' >{place}")
    if manager == "networkd":
        await here.run("sh", "-c", "chmod 644 /etc/systemd/network/*")


async def row(folder: Path) -> None:
    """One row, named by the variable MATRIX: release and manager."""
    release, manager = os.environ["MATRIX"].split("/")
    found: dict[str, Any] = {"release": RELEASES.get(release, "this host's"), "beside": manager}
    # One image has the agent and NetworkManager; Debian 11 has no package of the agent.
    agent = release not in WITHOUT_AGENT and manager in ("guest agent", "NetworkManager")
    packages = ("network-manager",) if manager == "NetworkManager" and not agent else ()
    began = time.monotonic()
    async with router_lab(folder, agent=agent, release=release, packages=packages) as here:
        found["seconds_to_serve"] = round(time.monotonic() - began, 1)
        connection = await here.connect()
        systemd, python, iproute = (await here.run("sh", "-c", VERSIONS)).splitlines()
        found |= {
            "systemd": systemd.split()[0],
            "python": python.split()[1],
            "iproute2": iproute.split("-")[1].split(",")[0],
        }

        await here.until(here.settled)
        ours = await here.run("sh", "-c", OURS)
        await configure(here, manager)

        async def as_before() -> bool:
            return await here.serves() and await here.run("sh", "-c", OURS) == ours

        for command in MANAGERS[manager]:
            await here.run("sh", "-c", command)
            # What it does comes a moment after the command has ended.
            await asyncio.sleep(2)
            await here.until(as_before)
            assert await connection.works(), command
        if manager in MANAGES:
            await here.run("sh", "-c", f"for n in $(seq 100); do {MANAGES[manager]} && exit; sleep 0.2; done; exit 1")
        verdict = json.loads(await here.run("cat", "/run/multinic/verdict.json"))
        found["repairs"] = verdict["repairs"]
        if manager in ("networkd", "NetworkManager"):
            unit = "systemd-networkd" if manager == "networkd" else manager
            await here.run("systemctl", "enable", "--quiet", unit)
        await here.reboot(as_before)
        assert await connection.works()
        await here.shut_down(connection)
    (folder.parent / "row.json").write_text(json.dumps(found))


def run_row(release: str, manager: str, folder: Path) -> dict[str, Any]:
    """One row, in namespaces of its own.

    Args:
        release: Code name, empty for the host's own.
        manager: One of `MANAGERS`.
        folder: For what it leaves behind.
    """
    os.environ["MATRIX"] = f"{release}/{manager}"
    run_inside(row, folder, timeout=600)
    found: dict[str, Any] = json.loads((folder / "row.json").read_text())
    return found


LINE = "| {release:9} | {systemd:7} | {python:6} | {iproute2:8} | {beside:14} | {repairs:>7} | {seconds_to_serve:>16} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/guest-matrix.json"), help="where the rows go")
    parser.add_argument("--only", default="", help="rows whose name (release/program) contains this")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("guest-matrix: guests need root: sudo make guest-matrix")
    rows = []
    titles = {
        "release": "Release",
        "systemd": "systemd",
        "python": "Python",
        "iproute2": "iproute2",
        "beside": "Beside",
    }
    print(LINE.format(**titles, repairs="Repairs", seconds_to_serve="Seconds to serve"))
    print(
        LINE.format(**{name: "-" * len(title) for name, title in titles.items()}, repairs="-:", seconds_to_serve="-:")
    )
    for release, manager in itertools.product(RELEASES, MANAGERS):
        if manager == "guest agent" and release in WITHOUT_AGENT:
            continue
        if arguments.only in f"{release}/{manager}":
            with tempfile.TemporaryDirectory() as folder:
                rows.append(found := run_row(release, manager, Path(folder)))
            print(LINE.format(**found), flush=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()

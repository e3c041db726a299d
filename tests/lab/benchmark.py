"""The lab's own figures, as ratios taken in one run: `make cloud-benchmark` (root). Nothing here has a limit of time.

- How long nftables takes to make a changed backend effective, with 3 and with 30 routers.
- A packet's way through the lab's load balancer against plain routes over the same hops, offloads on: one and the same
  fabric is switched between the two, again and again.
- `pulumi up` of the dev stack with guests, until all groups run what was asked for: less what the same takes without
  guests and waiting, over the slowest guest's boot plus min ready.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from multinic.lab.client import Lab, running
from multinic.lab.fabric.ruleset import hop_rules
from multinic.lab.process import run
from multinic.lab.scenarios.program import choose

REPOSITORY = Path(__file__).parents[2]
SECONDS = 3
"""Of one measurement with iperf3."""


async def change_of_a_backend(routers: int, times: int) -> None:
    """Prints how long the packets of one network take to follow a drained router."""
    from tests.lab.fabric.rig import Rig, backends

    rig = await Rig.routers(routers)
    names = [f"r{number}" for number in range(1, routers + 1)]
    seconds = []
    for number in range(times):
        drained = {names[number % routers]} if number % 2 else set()
        began = time.monotonic()
        await rig.networks[0].change(behind=backends(names, draining=drained))
        seconds.append(time.monotonic() - began)
    print(
        f"changed backend, {routers} routers: {1000 * statistics.median(seconds):.0f} ms "
        f"(median of {times}; {1000 * min(seconds):.0f} to {1000 * max(seconds):.0f})",
        flush=True,
    )
    await _clear(rig)


async def load_balancer_against_routes(rounds: int) -> None:
    """Prints what one stream gets by the load balancer, over what it gets by plain routes."""
    from tests.lab.fabric.rig import Rig

    rig = await Rig.routers(1)
    rates: dict[str, list[float]] = {"balancer": [], "routes": []}
    for _ in range(rounds):
        await _plain(rig)
        rates["routes"].append(await _iperf(rig))
        await _balanced(rig)
        rates["balancer"].append(await _iperf(rig))
    medians = {name: statistics.median(found) for name, found in rates.items()}
    pairs = [b / r for b, r in zip(rates["balancer"], rates["routes"], strict=True)]
    print(
        f"load balancer {medians['balancer'] / 1e9:.2f} Gbit/s, plain routes {medians['routes'] / 1e9:.2f} Gbit/s: "
        f"ratio {medians['balancer'] / medians['routes']:.2f} of medians, {statistics.median(pairs):.2f} median of "
        f"{rounds} ratios",
        flush=True,
    )
    await _clear(rig)


async def _plain(rig: object) -> None:
    """Routes to the router instead of all of nftables."""
    for network in rig.networks:  # type: ignore[attr-defined]
        (router,) = [port for port in network.vpc.ports.values() if port.machine == "r1"]
        await network.vpc.namespace.nft("flush ruleset\n")
        await network.vpc.namespace.ip(
            f"route replace 10.{1 - network.number}.0.0/16 via {router.address} dev {router.device} onlink"
        )


async def _balanced(rig: object) -> None:
    for network in rig.networks:  # type: ignore[attr-defined]
        await network.vpc.namespace.ip(f"route delete 10.{1 - network.number}.0.0/16")
        await network.vpc.namespace.nft(hop_rules())
        network.vpc._loaded = None
        await network.change()


async def _iperf(rig: object) -> float:
    """Bits per second of one TCP stream from `c` to `s`."""
    machines = rig.machines  # type: ignore[attr-defined]
    server = await asyncio.create_subprocess_exec(
        *("nsenter", f"--net={machines['s'].path}", "iperf3", "-s", "-1", "--forceflush"), stdout=subprocess.PIPE
    )
    assert server.stdout is not None
    while b"listening" not in await server.stdout.readline():
        pass
    said = await run(
        *("nsenter", f"--net={machines['c'].path}", "iperf3", "-J", "-c", "10.1.0.50", "-C", "cubic"),
        *("-t", str(SECONDS), "-O", "1"),
    )
    await server.communicate()
    return float(json.loads(said)["end"]["sum_received"]["bits_per_second"])


async def _clear(rig: object) -> None:
    for network in rig.networks:  # type: ignore[attr-defined]
        await network.vpc.remove()
    for machine in rig.machines.values():  # type: ignore[attr-defined]
        await machine.delete()


def up_against_boot(port: int) -> None:
    """Prints what `pulumi up` with guests costs beyond the engine, over the slowest boot plus min ready."""
    program = choose("auto", REPOSITORY)
    with_guests = program.config({})
    without = program.config({"updates": {"wait": False}})
    engine, _ = _up(program, without, port, guests=False)
    whole, boot = _up(program, with_guests, port, guests=True)
    ready = float(with_guests["multinic:router"].get("updates", {}).get("min_ready_sec", 10))
    print(
        f"pulumi up by {program.title}: {whole:.1f} s with guests, {engine:.1f} s without; slowest boot {boot:.1f} s, "
        f"min ready {ready:.0f} s: ratio {(whole - engine) / (boot + ready):.2f}",
        flush=True,
    )


def _up(program: object, config: dict[str, object], port: int, *, guests: bool) -> tuple[float, float]:
    """Seconds that `up` took, and that the slowest guest booted."""
    with (
        tempfile.TemporaryDirectory(prefix="multinic-benchmark-") as folder,
        running(Path(folder) / "lab", port=port, guests=guests) as lab,
    ):
        began = time.monotonic()
        program.up(lab, config, lambda _: None)  # type: ignore[attr-defined]
        seconds = time.monotonic() - began
        return seconds, _slowest_boot(lab) if guests else 0.0  # the lab's end takes with it what was made


def _slowest_boot(lab: Lab) -> float:
    """Seconds from the order to start until the guest's first process ran, of the slowest VM."""
    started: dict[str, float] = {}
    boots = [0.0]
    for event in lab.events():
        what, subject = event["detail"]["what"], event["subject"]
        if event["kind"] == "machine" and what == "starting":
            started[subject] = event["time"]
        elif event["kind"] == "machine" and what == "running":
            boots.append(event["time"] - started[subject])
    return max(boots)


def inside(rounds: int) -> None:
    """The part that needs the lab's own namespaces."""
    sys.path.insert(0, str(REPOSITORY))

    async def measure() -> None:
        for routers in (3, 30):
            await change_of_a_backend(routers, 4 * rounds)
        await load_balancer_against_routes(rounds)

    asyncio.run(measure())


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="of each comparison; medians are shown")
    parser.add_argument("--port", type=int, default=8470, help="of the lab's front door")
    parser.add_argument("--without-up", action="store_true", help="leave `pulumi up` out")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    # An end by signal clears up too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.inside:
        inside(options.rounds)
        return
    with tempfile.TemporaryDirectory(prefix="multinic-benchmark-") as folder:
        command = [sys.executable, __file__, "--inside", "--rounds", str(options.rounds)]
        supervisor = [sys.executable, "-m", "multinic.lab.supervisor", "--ephemeral", "--folder", f"{folder}/lab", "--"]
        with subprocess.Popen([*supervisor, *command], stdin=subprocess.PIPE, cwd=REPOSITORY) as process:
            process.wait()
        if process.returncode:
            sys.exit(process.returncode)
    if not options.without_up:
        up_against_boot(options.port)


if __name__ == "__main__":
    main()

"""The demo where guests cannot run: the program against the lab's control plane, and the way of a packet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from multinic.lab.client import Lab, running
from multinic.lab.pulumi.deployment import Made
from multinic.lab.scenarios.fleet import guests
from multinic.lab.scenarios.program import Program

Say = Callable[[str], None]


def explain(program: Program, config: Mapping[str, Any], folder: Path, port: int, missing: str, say: Say) -> None:
    """Brings the program up without guests and prints its resources, its routes and the way of a packet.

    Args:
        program: What to run.
        config: Its configuration.
        folder: The lab's folder while this runs.
        port: Of the lab's front door.
        missing: Why guests cannot run, as a sentence.
        say: Gets each line.
    """
    with running(folder, port=port, guests=False) as lab:
        deployment = program.up(lab, config, say)
        try:
            say("\nResources:")
            for line in resource_lines(deployment.resources):
                say(f"  {line}")
            say("\nRoutes:")
            for line in route_lines(lab):
                say(f"  {line}")
            source, destination = (guests(deployment.outputs, role)[0].address for role in ("client", "server"))
            say(f"\nThe way of a packet from {source} to {destination}:")
            for line in packet_lines(lab, source, destination):
                say(f"  {line}")
        finally:
            program.down(deployment, say)
    say(f"\nNot run: guests, traffic and the kill, and so no table and no plot. {missing}")


def resource_lines(resources: list[Made]) -> list[str]:
    """A line for each type, with how many there are and their names."""
    counts = Counter(made.type for made in resources)
    names = {kind: ", ".join(sorted(made.name for made in resources if made.type == kind)) for kind in counts}
    return [f"{counts[kind]:2} {kind.rpartition(':')[2]:22} {names[kind]}" for kind in sorted(counts)]


def route_lines(lab: Lab) -> list[str]:
    """A line for each static route."""
    lines = []
    for route in lab.items("global/routes"):
        hop = route.get("nextHopIlb") or route.get("nextHopGateway") or route.get("nextHopNetwork") or "?"
        network = route["network"].rpartition("/")[2]
        lines.append(f"{network}: {route['destRange']} → {hop.rpartition('/')[2]} (priority {route['priority']})")
    return sorted(lines)


def packet_lines(lab: Lab, source: str, destination: str) -> list[str]:
    """The way of a packet as the lab computes it from its objects: two lines for each network that it crosses."""
    answer = lab.request("GET", f"/lab/v1/packet?source={source}&destination={destination}")
    lines = []
    for step in answer["steps"]:
        network, machine = (step[key].rpartition("/")[2] for key in ("network", "from"))
        if "nextHop" in step:
            hop = f"route to {step['range']}, next hop is the load balancer {step['nextHop']}"
            routers = ", ".join(candidate["machine"].rpartition("/")[2] for candidate in step["candidates"])
            lines += [f"from {machine} in {network}: {hop}", f"  one of: {routers or 'no routers yet'}"]
        else:
            target = step.get("to", "nobody").rpartition("/")[2]
            lines.append(f"from {machine} in {network}: subnet {step.get('range', '?')}, to {target}")
    return [*lines, "delivered" if answer["delivered"] else f"not delivered: {answer['reason']}"]

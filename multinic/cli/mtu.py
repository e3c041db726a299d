"""`multinic mtu`: the MTU of hosts, paths and overlay networks, and a calculator."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from multinic.measure.mtu.check import Verdict

app = typer.Typer(no_args_is_help=True, help="MTU of hosts, paths and overlay networks; a calculator for tunnels.")

PLACES = "local, HOST or ssh:HOST, gcloud:ZONE/VM, guest:VM, netns:NAME, pid:NUMBER"
Docker = Annotated[bool, typer.Option("--docker", help="Look at Docker's networks too; needs root there.")]
Project = Annotated[str, typer.Option(help="Google Cloud project, for gcloud:ZONE/VM.")]
LabFolder = Annotated[Path | None, typer.Option("--lab", help="The lab's folder, for guest:VM.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")]


def _show(verdict: Verdict, as_json: bool) -> None:
    from multinic.lab.scenarios.report import text_table

    if as_json:
        print(json.dumps(verdict.as_json(), indent=2))
    else:
        print("\n".join(text_table(verdict.rows(), verdict.notes())))
    sys.exit(0 if verdict.sound else 5)


@app.command()
def check(
    hosts: Annotated[list[str] | None, typer.Argument(help=f"{PLACES}. Default: local.")] = None,
    docker: Docker = False,
    carries: Annotated[
        int, typer.Option(min=0, max=65535, help="What the network between hosts carries, if less than the NICs.")
    ] = 0,
    project: Project = "",
    lab: LabFolder = None,
    as_json: AsJson = False,
) -> None:
    """Hosts one by one: NICs against their networks, Docker against the NICs. Exit code 5 if something breaks."""
    from multinic.measure import shell
    from multinic.measure.mtu.check import check as check_hosts

    places = [shell.parse(host, project=project, lab=lab) for host in hosts or ["local"]]
    _show(check_hosts(places, with_docker=docker, carries=carries), as_json)


@app.command()
def path(
    first: Annotated[str, typer.Argument(metavar="A", help=f"PLACE or PLACE=ADDRESS; a place is {PLACES}.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Likewise.")],
    router: Annotated[list[str] | None, typer.Option(help="A router on the way, as a place; may be repeated.")] = None,
    docker: Docker = False,
    project: Project = "",
    lab: LabFolder = None,
    as_json: AsJson = False,
) -> None:
    """Hop by hop from A to B, with probes in both directions (UDP port 5299). Exit code 5 if something breaks."""
    from multinic.measure import shell
    from multinic.measure.mtu.check import between

    (one, _, address_one), (other, _, address_other) = first.partition("="), second.partition("=")
    places = [shell.parse(text, project=project, lab=lab) for text in (one, other, *(router or []))]
    verdict = between(places[0], places[1], places[2:], with_docker=docker, addresses=(address_one, address_other))
    _show(verdict, as_json)


@app.command()
def plan(
    layers: Annotated[
        list[str],
        typer.Argument(help="Outermost first: ipsec[:CIPHER][:nat][:transport], wireguard, gre, geneve:8, docker …"),
    ],
    mtu: Annotated[int, typer.Option(min=576, max=65535, help="MTU of the network that carries all.")] = 1460,
    ipv6: Annotated[bool, typer.Option("--ipv6", help="Outer headers are IPv6.")] = False,
    as_json: AsJson = False,
) -> None:
    """What nested encapsulations leave: MTU, TCP segment and the value of Docker's option."""
    from dataclasses import asdict

    from multinic.lab.scenarios.report import text_table
    from multinic.measure.mtu import cures, encapsulation

    steps = encapsulation.nest(mtu, [encapsulation.parse(layer) for layer in layers], outer=6 if ipv6 else 4)
    inside, outside = steps[-1], steps[-2]
    if as_json:
        print(
            json.dumps({"steps": [asdict(step) for step in steps], "mtu": inside.mtu, "mss": inside.mss(4)}, indent=2)
        )
        return
    rows = [("layer", "MTU inside", "takes", "TCP segment (IPv4)", "TCP segment (IPv6)", "made of")]
    rows += [(s.layer, str(s.mtu), str(s.overhead), str(s.mss(4)), str(s.mss(6)), s.title) for s in steps]
    notes = [f"Set MTU {inside.mtu} inside, or clamp TCP's segment size to {inside.mss(4)} (IPv6 {inside.mss(6)})."]
    if layers[-1] in ("docker", "vxlan"):
        option = inside.mtu + encapsulation.DOCKER_SUBTRACTS
        ipv6_takes = f" (VXLAN over IPv6 takes {outside.mtu - inside.mtu})" if option != outside.mtu else ""
        notes.append(f"For a Docker overlay set {cures.OPTION}={option}: Docker subtracts 50 from it{ipv6_takes}.")
    print("\n".join(text_table(rows, notes)))

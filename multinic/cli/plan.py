"""`multinic plan`: from Gbit/s, packets and availability to machines, zones and a price."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def plan(
    gbps: Annotated[float, typer.Option(help="TCP payload through the routers, both directions together, Gbit/s.")],
    packets: Annotated[float, typer.Option(help="Packets/s; 0: full packets of the MTU.")] = 0,
    availability: Annotated[float, typer.Option(help="Share of the time for which that must be possible.")] = 0.999,
    peak: Annotated[float, typer.Option(help="Gbit/s that autoscaling must reach; 0: twice --gbps.")] = 0,
    per_stream: Annotated[float, typer.Option(help="Gbit/s that one TCP stream must get; 0: no demand.")] = 0,
    streams: Annotated[int, typer.Option(help="Streams at the same time; 0: many.")] = 0,
    mtu: Annotated[int, typer.Option(help="MTU of the networks.")] = 1460,
    networks: Annotated[int, typer.Option(help="Number of networks, a NIC each.")] = 2,
    zones: Annotated[int, typer.Option(help="Zones of the region that may be used.")] = 3,
    machine: Annotated[str, typer.Option(help="Use this machine type.")] = "",
    tier_1: Annotated[bool, typer.Option("--tier-1", help="Tier_1 networking may be used.")] = False,
    check: Annotated[str, typer.Option(help="Traffic check: interval/timeout/failures.")] = "1/1/2",
    data: Annotated[Path | None, typer.Option(help="Another file of limits and prices.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Every limit with its source, and what else fits.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")] = False,
) -> None:
    """Machine type, routers a zone, autoscaler's target, bandwidth, pause and cost for what is asked for."""
    from multinic.lab.scenarios.report import text_table
    from multinic.measure.errors import WordError
    from multinic.measure.plan import limits as limit_file
    from multinic.measure.plan import text
    from multinic.measure.plan.planner import Demand
    from multinic.measure.plan.planner import plan as make

    try:
        interval, timeout, failures = check.split("/")
        checks = float(interval), float(timeout), int(failures)
    except ValueError:
        raise WordError(f"--check {check}: give interval/timeout/failures, such as 1/1/2") from None
    demand = Demand(
        gbps=gbps,
        packets=packets,
        availability=availability,
        peak=peak,
        per_stream=per_stream,
        streams=streams,
        mtu=mtu,
        networks=networks,
        zones=zones,
        machine=machine,
        tier_1=tier_1,
        interval=checks[0],
        timeout=checks[1],
        unhealthy=checks[2],
    )
    limits = limit_file.load(data or limit_file.FILE)
    found = make(demand, limits)
    if as_json:
        print(json.dumps([text.as_json(one) for one in found], indent=2))
        return
    print("\n".join(text_table(text.rows(found[0]), text.notes(found[0], limits))))
    if explain:
        print("\n".join(["", "Limits of one router, the one that binds first:", "", *text.explanation(found[0])]))
        print("\n".join(["", "What else fits:", "", *text_table(text.others(found[:8]), [])]).rstrip())

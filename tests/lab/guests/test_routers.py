"""A router as a real guest: its boots, its scripts by hand, and every way to drain it, with a connection through it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab.guests.router_lab import PATIENCE, RULES, RouterLab, key, router_lab
from tests.lab.inside import run_inside

SERVICES = ("policy-routing-watch", "hc-traffic", "hc-health")


async def routing(here: RouterLab) -> str:
    """Rules and all routes of the router."""
    return await here.run("sh", "-c", "ip -4 rule show; ip -4 route show table all | sort")


async def processes(here: RouterLab) -> str:
    return await here.run("systemctl", "show", "-P", "MainPID", *SERVICES)


async def boots(folder: Path) -> None:
    """A first boot by the start-up script; the second one by systemd alone (kind 18, G10)."""
    async with router_lab(folder) as here:
        connection = await here.connect()
        await here.until(here.settled)
        assert "startup-script exit status 0" in here.substrate.serial_output(key("router"))
        before = await routing(here)

        # From now on whoever runs start-up scripts has nothing for us.
        await here.set_metadata(startup_script="#!/bin/sh\nexit 0\n", multinic_files=None)
        await here.reboot(here.serves)
        assert await routing(here) == before
        await here.until(here.settled)
        # Routers keep no state: the connection goes on.
        assert await connection.works()
        await here.connect()


async def scripts(folder: Path) -> None:
    """Both scripts by hand, any number of times."""
    async with router_lab(folder, drain_seconds=0.5) as here:
        connection = await here.connect()
        await here.until(here.settled)
        before, running = await routing(here), await processes(here)
        for _ in range(2):
            said = await here.run("google_metadata_script_runner", "--script-type", "startup", "--debug")
            assert "startup-script exit status 0" in said
            assert (await routing(here), await processes(here)) == (before, running)
        for _ in range(2):
            assert "exit status 0" in await here.run("google_metadata_script_runner", "shutdown")
            assert await here.closed()
            assert await connection.works()
        await here.run("google_metadata_script_runner", "startup")
        await here.until(here.serves)
        assert await routing(here) == before
        assert await connection.works()


async def drains(folder: Path) -> None:
    """By the unit and by the metadata: new connections go elsewhere, those that are here go on, healing stays quiet."""
    async with router_lab(folder) as here:
        connection = await here.connect()

        await here.run("systemctl", "stop", "hc-traffic")
        assert [(await here.probe(number)).detail for number in (0, 1)] == ["refused", "refused"]
        await here.plan(takes_new=False)
        assert await connection.works()
        assert (await here.probe(0, 9000)).healthy
        # The watcher does not start what an operator has stopped.
        await here.run("policy-routing", "start")
        assert await here.closed()
        await here.run("systemctl", "start", "hc-traffic")
        await here.until(here.serves)
        await here.plan()

        async def drained() -> bool:
            answers = [await here.probe(number) for number in (0, 1)]
            return all(answer.detail == "http 503" for answer in answers)

        await here.set_metadata(multinic_drain="true")
        await here.until(drained)
        assert [reason["name"] for reason in json.loads((await here.probe(1)).body)["reasons"]] == ["drained"]
        assert await connection.works()
        assert (await here.probe(0, 9000)).healthy
        await here.set_metadata(multinic_drain=None)
        await here.until(here.serves)
        assert await connection.works()


async def shuts_down(folder: Path) -> None:
    """The port closes at once, transit goes on as long as the configuration says (S16, P23)."""
    drain_seconds = 4.0
    async with router_lab(folder, drain_seconds=drain_seconds) as here:
        connection = await here.connect()
        loop = asyncio.get_running_loop()
        asked = loop.time()
        stopping = asyncio.create_task(here.substrate.stop(key("router"), timeout=2 * PATIENCE))
        await here.until(here.closed)
        # Open for no one new, and yet a router.
        assert await connection.works()
        assert not stopping.done()
        last = loop.time()
        while not stopping.done():
            # One that is not answered in time may be the machine's doing; the router is off when it has stopped.
            if await connection.works(within=1.5):
                last = loop.time()
            await asyncio.sleep(0.05)
        assert last - asked >= drain_seconds
        await stopping
        assert "shutdown-script exit status 0" in here.substrate.serial_output(key("router"))


async def with_agent(folder: Path) -> None:
    """Google's agent beside us: the same routing as without it, also after it has come and gone (kind 2, U4, G8)."""

    async def without_local() -> list[str]:
        return [line for line in (await routing(here)).splitlines() if " table local " not in line]

    async def as_before() -> bool:
        return await here.serves() and await without_local() == before

    async with router_lab(folder, agent=True) as here:
        connection = await here.connect()
        await here.until(here.settled)
        before = await without_local()
        for number, command in enumerate(("restart", "stop", "start"), 1):
            await here.run("systemctl", command, "google-guest-agent")
            await here.until(as_before)
            assert await connection.works(), (number, command)

        async def repaired() -> bool:
            said = await here.run("journalctl", "-t", "policy-routing", "--no-pager", "-o", "cat")
            return "route-missing: default via 10.1.0.1 dev ens5 table 1001" in said

        # Its DHCP client takes nic1's address away and with it every route over that NIC: this was no idle test.
        await here.until(repaired)
        # Where the agent is first, the local routes of forwarding rules are its own, and ours give way to them.
        await here.run("systemctl", "stop", "policy-routing-watch", "policy-routing")
        await here.run("systemctl", "restart", "google-guest-agent")

        async def locals_of_agent() -> bool:
            shown = (await here.run("ip", "-4", "route", "show", "table", "local", "proto", "66")).splitlines()
            return [line.split()[1] for line in shown] == [*RULES.values()]

        await here.until(locals_of_agent)
        await here.run("systemctl", "start", "policy-routing", "policy-routing-watch")
        await here.until(as_before)
        assert await locals_of_agent()
        assert await connection.works()

        await here.reboot(as_before)
        assert await connection.works()
        await here.shut_down(connection)


@pytest.mark.guests
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_router_with_the_guest_agent(tmp_path: Path) -> None:
    run_inside(with_agent, tmp_path, timeout=500)


@pytest.mark.guests
@pytest.mark.parametrize("check", [boots, scripts, drains, shuts_down], ids=lambda check: check.__name__)
def test_routers(check: Any, tmp_path: Path) -> None:
    run_inside(check, tmp_path, timeout=280)

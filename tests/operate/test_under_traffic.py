"""The commands that change routers, with live TCP streams through a fleet of guests: no stream is lost."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from multinic import MultinicRouter, MultinicRouterArgs
from multinic.lab.client import Lab, running
from multinic.lab.pulumi import in_process
from multinic.lab.scenarios import flows
from multinic.lab.scenarios.fleet import guests, megabits_in, routers, wait_until_serving
from multinic.lab.scenarios.program import choose

from .conftest import ROOT, Command

SHORT = {
    "next_hop": {"draining_sec": 5},
    "health": {"heal": {"interval_sec": 3, "timeout_sec": 3}},
}
"""Draining and two heal checks are waited for with every VM; short ones show the same as the defaults."""
REGION = "us-central1"


def second_generation(lab: Lab, config: dict[str, Any]) -> MultinicRouterArgs:
    """The same router once more, whose routes wait behind the first one's."""
    links = {
        kind: {one["name"].removeprefix("dev-").split("-")[0]: one["selfLink"] for one in lab.items(path)}
        for kind, path in (("network", "global/networks"), ("subnetwork", f"regions/{REGION}/subnetworks"))
    }
    networks = [
        {kind: links[kind][one["name"]] for kind in links} | {"cidrs": [one["cidr"]]}
        for one in config["multinic:networks"]
    ]
    args = {
        **config["multinic:router"],
        "region": REGION,
        "zones": config["multinic:zones"],
        "networks": networks,
        "generation": "v2",
        "routes": {"priority": 901},
    }
    return cast(MultinicRouterArgs, args)


@pytest.mark.guests
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_no_stream_is_lost(
    tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    program = choose("in-process", ROOT)
    config = program.config(SHORT, zones=2)
    with running(tmp_path / "lab", port=free_port) as lab:
        deployment = program.up(lab, config, lambda line: None)
        fleet = wait_until_serving(lab, [REGION], timeout=400)
        monkeypatch.setenv("MULTINIC_LAB_ENDPOINT", lab.endpoint)
        monkeypatch.setenv("MULTINIC_LAB_TOKEN", lab.token)
        monkeypatch.setenv("MULTINIC_LAB_FOLDER", str(lab.folder))
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        command = Command(monkeypatch, capsys)

        def multinic(*words: str, **more: Any) -> Any:
            return command.json(*words, "--region", REGION, **more)

        client, server = (guests(deployment.outputs, role)[0] for role in ("client", "server"))
        with flows.opened(lab, fleet, [(client, server)]) as live:
            victim = live.router.name
            other = next(router.name for router in fleet if router.name != victim)
            time.sleep(flows.WARM_UP_SECONDS)
            zero = time.monotonic()

            def flow() -> None:
                """Waits until every stream has brought bytes after now."""
                moment = time.monotonic()
                while not live.flow_since(moment):
                    assert time.monotonic() < moment + 120, "a stream stands still"
                    time.sleep(0.1)

            assert multinic("drain", victim)["done"]
            flow()
            quiet = [router for router in routers(lab, [REGION]) if router.name == victim]
            # Probes and pings are less than that.
            assert sum(megabits_in(lab, quiet, 0) + megabits_in(lab, quiet, 1)) < 1
            # Drained in earnest: the other one may not go too.
            assert "last healthy router" in command.refuses("heal", other, "--region", REGION, code=3)
            assert multinic("undrain", victim)["done"]
            assert multinic("heal", victim)["done"]
            flow()
            assert multinic("rolling-update")["done"]
            flow()
            trace = multinic("trace", client.name, server.name)
            assert trace["arrives"]

            found = multinic("withdraw", "dev-left", "--yes", "--force")
            assert "would stop" in found["plan"]["refusal"]
            assert not multinic("trace", client.name, server.name, code=5)["arrives"]
            assert multinic("restore", "dev-left")["done"]
            flow()

            seconds = multinic("panic", victim, "--yes")["seconds"]
            assert 0 < seconds["detected"] < seconds["serves"]
            flow()
            logged = command("logs", victim, "--region", REGION, "--event", "routing-up", "--json")
            assert victim in logged

            # A second generation, and the cut-over to it: after that nothing passes the first one any more.
            second = partial(MultinicRouter, "second", second_generation(lab, config))
            in_process.up(
                second,
                project="multinic",
                stack="second",
                config={"gcp:project": "lab", "gcp:region": REGION},
                endpoint=lab.endpoint,
                token=lab.token,
            )
            wait_until_serving(lab, [REGION], timeout=400)
            deadline = time.monotonic() + 400
            while any(
                group["actions"] for group in multinic("status", "--fleet", "v2-second-fleet")["fleet"]["groups"]
            ):
                assert time.monotonic() < deadline, "the second fleet's groups do not come to rest"
                time.sleep(0.5)
            assert "carries the traffic" in command("upgrade", "--region", REGION, "--yes", "--watch", "1")
            flow()
            first = [router for router in routers(lab, [REGION]) if router.name.startswith("router-fleet")]
            assert len(first) == 2 and sum(megabits_in(lab, first, 0) + megabits_in(lab, first, 1)) < 1
            figures = live.finish(zero, time.monotonic(), [])
            assert figures["lost_streams"] == 0, figures["gaps_s"]
            assert figures["failed_connections"] == 0

"""A real Docker Engine: the mismatch that its defaults make, the cure, and that nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from multinic.lab.guests import image
from multinic.measure.engine import wire
from multinic.measure.engine.node import swarm
from multinic.measure.mtu import docker, probe
from multinic.measure.mtu.cures import OPTION
from tests import processes

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0 and not os.environ.get("CI"), reason="needs root: network namespaces"),
]
STAY = """
import time
from multinic.measure.engine import wire
from multinic.measure.engine.node import swarm
with wire.plain_link(9001) as places, swarm([(p.title, p.address, p.file) for p in places], print):
    print("up", flush=True)
    time.sleep(600)
"""


def test_the_mismatch_is_found_and_its_cure_cures() -> None:
    with wire.plain_link(9001) as places, swarm([(p.title, p.address, p.file) for p in places], print) as nodes:
        option = 0
        for wanted in (1450, 8951):
            more = ["--opt", f"{OPTION}={option}"] if option else []
            nodes[0].docker("network", "create", "--driver", "overlay", "--attachable", *more, "app")
            for node in nodes:
                node.run_container(f"on-{node.name}", "app")
            networks = {one.name: one for one in docker.networks(nodes[0].shell)}
            # What Docker makes of its option, seen in a container; and packets of that size pass, both ways.
            assert (networks["app"].option, networks["app"].seen) == (option, wanted)
            for sender, receiver in ((0, 1), (1, 0)):
                ends = [nodes[index].network_of(f"on-{nodes[index].name}") for index in (sender, receiver)]
                address = nodes[receiver].address_in(f"on-{nodes[receiver].name}", "app")
                assert probe.measure(ends[0], ends[1], address, wanted).largest == wanted
            findings = {one.where.split()[-1]: one for one in docker.judge(list(networks.values()), 9001)}
            # Docker's own networks stay as they were: each is cured by itself.
            assert {"ingress", "docker_gwbridge", "bridge"} <= findings.keys()
            assert ("app" in findings) == (not option)
            option = findings["app"].option if "app" in findings else option
            assert option == 9001
            for node in nodes:
                node.remove_container(f"on-{node.name}")
            nodes[0].docker("network", "rm", "app")


def test_nothing_is_left_when_it_is_killed() -> None:
    command, before = [sys.executable, "-c", STAY], set(image.cache_home().glob("engines-*"))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert any(line == "up\n" for line in process.stdout), "the swarm did not come up"
        ours = [one for one in processes.tree(process.pid) if processes.words(one)[:1] == ["dockerd"]]
        assert len(ours) == 2
        # Another engine may run beside ours.
        [folder] = set(image.cache_home().glob("engines-*")) - before
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        top, name = Path("/sys/fs/cgroup"), f"multinic-{folder.name}"
        left: list[object] = [path for path in (folder, *top.glob(name), *top.glob(f"*/{name}")) if path.exists()]
        left += [one for one in ours if processes.alive(one)]
        if not left:
            return
        time.sleep(0.2)
    pytest.fail(f"left: {left}")

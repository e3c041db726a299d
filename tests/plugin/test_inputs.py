"""Inputs that come from another language: renamed for the component, and judged by nobody else."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.plugin.host import PLUGIN
from tests.unit.shapes import IMAGE, REGION, network

# A process of its own: Pulumi's host and Google's client bring the same protobuf file.
PROGRAM = """
import json, runpy, sys
from multinic import parsing
from multinic.problems import Problems

plugin = runpy.run_path(sys.argv[1])
package = plugin["Package"](list(plugin["COMPONENTS"]), plugin["NAME"], None, "0.0.1")
mapped = package.map_inputs(json.load(sys.stdin), package._component_defs["MultinicRouter"])
parsing.router(mapped, problems := Problems())
print(json.dumps({"mapped": mapped, "problems": [str(one) for one in problems.found]}))
"""
GIVEN: dict[str, Any] = {"region": REGION, "networks": [network(0), network(1)], "machine": {"image": IMAGE}}


def judged(**inputs: Any) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(PLUGIN / "__main__.py")]
    given = json.dumps({key: value for key, value in {**GIVEN, **inputs}.items() if value is not None})
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_names_are_pythons_and_values_as_they_were() -> None:
    found = judged(
        networks=[network(0, nicType="VIRTIO_NET"), network(1)],
        machine={"image": IMAGE, "diskGb": 20.0, "metadata": {"fooBar": "1"}},
        health={"traffic": {"intervalSec": 2.0, "timeoutSec": 1}},
        autoscaler={"schedules": [{"name": "d", "schedule": "0 8 * * *", "durationSec": 300, "minReplicas": 2}]},
        labels={"costCentre": "net"},
    )
    mapped = found["mapped"]
    assert mapped["networks"][0]["nic_type"] == "VIRTIO_NET"
    assert mapped["machine"] == {"image": IMAGE, "disk_gb": 20.0, "metadata": {"fooBar": "1"}}
    assert mapped["health"] == {"traffic": {"interval_sec": 2.0, "timeout_sec": 1}}
    assert mapped["autoscaler"]["schedules"][0]["min_replicas"] == 2
    assert [problem.split(":")[0] for problem in found["problems"]] == ["labels.costCentre"]


def test_everything_that_is_wrong_is_told_at_once() -> None:
    found = judged(
        region=None,
        networks=[network(0, nicType="gvnic"), {"cidrs": ["10.1.0.0/16"]}],
        machine={"image": IMAGE, "tpye": "n2-highcpu-4"},
        routes=5,
        zone=["us-central1-a"],
    )
    heads = [problem.split(";")[0] for problem in found["problems"]]
    assert heads == [
        "routes: must be a mapping of names to values, not 5",
        "region: is required: give a string",
        "networks[0].nic_type: 'gvnic' is not one of GVNIC, VIRTIO_NET",
        "networks[1].network: is required",
        "networks[1].subnetwork: is required",
        "machine.tpye: no such input",
        "zone: no such input",
    ]

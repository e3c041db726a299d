"""A stack that an earlier version deployed, under this version: nothing of it may be renamed, replaced or lost.

`MULTINIC_RECORD_STATE=1 pytest tests/engine/test_recorded_state.py` records the state of a new version, named by its
version, and leaves those of earlier ones alone.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from multinic.lab.pulumi.engine import EngineDeployment
from tests.engine.conftest import REPOSITORY, Project, RunningLab

pytestmark = [pytest.mark.engine, pytest.mark.slow]

RECORDED = Path(__file__).parent / "recorded"
VERSION = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"
SECRET = "4dabf18193072939515e22adb298388d"
"""Key of the engine's wrapper around secrets: sdk/go/common/resource/properties.go, SigKey."""
GROUP = "gcp:compute/instanceGroupManager:InstanceGroupManager"

# What earlier versions were recorded with; a new input of the router needs no place in it.
PROGRAM = """
    from multinic import Endpoints, MultinicRouter, RoutedNetworks

    image = "projects/debian-cloud/global/images/debian-12-bookworm-v20260921"
    zones = ["us-central1-a", "us-central1-b"]
    networks = RoutedNetworks("net", {"region": "us-central1", "networks": [
        {"name": "left", "cidr": "10.1.0.0/24"}, {"name": "right", "cidr": "10.2.0.0/24"}]})
    MultinicRouter("router", {
        "region": "us-central1",
        "zones": zones,
        "networks": networks.router_networks,
        "machine": {"image": image},
        "labels": {"team": "net"},
    })
    left, right = networks.router_networks
    Endpoints("ends", {
        "zones": zones,
        "image": image,
        "clients": {"network": left["network"], "subnetwork": left["subnetwork"]},
        "servers": {"network": right["network"], "subnetwork": right["subnetwork"]},
        "cidrs": ["10.1.0.0/24", "10.2.0.0/24"],
    })
"""


def portable(value: Any) -> Any:
    """Returns a state that another stack can import, without what every version changes.

    That is the texts of the guest, which would be most of it. The CLI imports no secrets into a stack that has none
    yet; the only ones are the labels that the plugin computes.
    """
    if isinstance(value, dict):
        if SECRET in value:
            return json.loads(value["plaintext"])
        return {
            key: "an earlier version's" if key.startswith("multinic-file-") else portable(one)
            for key, one in value.items()
            if key not in ("created", "modified", "sourcePosition", "stackTrace")
        }
    return [portable(one) for one in value] if isinstance(value, list) else value


@pytest.fixture(scope="module", autouse=True)
def recorded() -> None:
    RECORDED.mkdir(exist_ok=True)


def test_state_of_this_version_is_recorded(project: Project, answering_lab: RunningLab) -> None:
    file = RECORDED / f"state-{VERSION}.json"
    if os.environ.get("MULTINIC_RECORD_STATE") == "1":
        project.write(PROGRAM)
        deployment = project.up(answering_lab)
        try:
            with deployment.stack.session() as run:
                state = json.loads(run("stack", "export", "--show-secrets", "--stack", "test"))
        finally:
            deployment.destroy()
        kept = {key: state["deployment"][key] for key in ("manifest", "resources")}
        kept["manifest"] = {"time": "0001-01-01T00:00:00Z", "magic": "", "version": ""}
        whole = {"version": state["version"], "deployment": portable(kept)}
        file.write_text(json.dumps(whole, indent=1, sort_keys=True) + "\n")
    assert file.is_file(), "record it: MULTINIC_RECORD_STATE=1 pytest tests/engine/test_recorded_state.py"


@pytest.fixture(params=sorted(RECORDED.glob("state-*.json")), ids=lambda file: file.stem)
def earlier(request: pytest.FixtureRequest, project: Project, lab: RunningLab) -> Iterator[EngineDeployment]:
    """The stack as a version left it; the lab has none of its objects, since only previews are asked for."""
    stack = project.stack(lab)
    stack.configure(project.config())
    with stack.session() as run:
        run("stack", "import", "--file", str(request.param), "--stack", "test")
    yield EngineDeployment(stack)


def steps(deployment: EngineDeployment) -> dict[str, set[str]]:
    """What a deployment would do: operation → types of the resources."""
    with deployment.stack.session() as run:
        shown = json.loads(run("preview", "--json", "--stack", "test"))
    found: dict[str, set[str]] = defaultdict(set)
    for step in shown["steps"]:
        found[step["op"]].add(step["urn"].split("::")[2].split("$")[-1])
    found.pop("same", None)
    return found


def test_an_upgrade_replaces_the_template_and_rolls_the_groups_and_nothing_else(
    project: Project, earlier: EngineDeployment
) -> None:
    project.write(PROGRAM)
    assert steps(earlier) == {"replace": {TEMPLATE}, "update": {GROUP}}


def test_canary_a_renamed_resource_is_seen(project: Project, earlier: EngineDeployment) -> None:
    project.write(PROGRAM.replace('MultinicRouter("router"', 'MultinicRouter("other"'))
    assert "create" in steps(earlier)
    assert "delete" in steps(earlier)

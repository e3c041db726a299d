"""All committed stacks one after the other with the real engine, each built on what the ones before it export."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from multinic.lab.pulumi.deployment import DeploymentError
from multinic.lab.pulumi.engine import EngineDeployment
from tests.engine.conftest import REPOSITORY, Project, RunningLab, items

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]

ORDER = ("project", "networks", "us-east1", "us-west1", "endpoints")
SHARED = {"shared_vpc_host": True, "service_projects": ["other"], "iap_members": ["group:network-team@example.com"]}


def config(name: str, **more: Any) -> dict[str, Any]:
    committed: dict[str, Any] = yaml.safe_load((REPOSITORY / f"Pulumi.{name}.yaml").read_text())["config"]
    return committed | {f"multinic:{key}": value for key, value in more.items()}


def test_every_stack_comes_up_stays_the_same_changes_and_goes(project: Project, lab: RunningLab) -> None:
    up: dict[str, EngineDeployment] = {}
    try:
        for name in ORDER:
            up[name] = EngineDeployment(project.stack(lab, name, REPOSITORY))
            given = config(name, **SHARED) if name == "project" else config(name)
            assert "create" in up[name].update(given, preview=False)
            assert up[name].preview() == {}, name
        for name in ("project", "us-west1", "endpoints"):
            assert up[name].refresh() == {}, name

        # What another region has claimed in a network at the same priority is refused before anything is changed.
        west = config("us-west1")
        networks = [
            one | {"cidrs": ["10.33.1.0/24"]} if one["name"] == "right" else one for one in west["multinic:networks"]
        ]
        routes = items(lab, "global/routes")
        with pytest.raises(DeploymentError, match=r"10\.33\.1\.0/24.*us-east1"):
            up["us-west1"].update(west | {"multinic:networks": networks}, preview=False)
        assert items(lab, "global/routes") == routes
        up["us-west1"].stack.configure(west)

        # A VM has to stop for another machine type, and goes on as the same one.
        before = {one["id"] for one in items(lab, "zones/us-west1-b/instances") if "client" in one["name"]}
        larger = config("endpoints")["multinic:endpoints"] | {"machine_type": "n2-highcpu-8"}
        assert up["endpoints"].update(config("endpoints", endpoints=larger), preview=False) == {"update": 2}
        clients = [one for one in items(lab, "zones/us-west1-b/instances") if "client" in one["name"]]
        assert {one["id"] for one in clients} == before
        assert {(one["status"], one["machineType"].rpartition("/")[2]) for one in clients} == {
            ("RUNNING", "n2-highcpu-8")
        }
    finally:
        for name in reversed(up):
            up[name].destroy()
    for path in ("global/networks", "global/firewalls", "global/instanceTemplates", "zones/us-west1-b/instances"):
        assert items(lab, path) == []

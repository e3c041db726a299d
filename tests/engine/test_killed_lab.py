"""A lab that is killed while the engine waits for it, and started again: refresh and up go on, and nothing is left."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from multinic.lab.pulumi.deployment import DeploymentError
from multinic.lab.pulumi.engine import EngineDeployment
from tests.engine.conftest import DEADLINE_S, Project, daemon, items

pytestmark = [pytest.mark.engine, pytest.mark.slow]

PROGRAM = """
    net = c.Network("net", auto_create_subnetworks=False)
    sub = c.Subnetwork("sub", network=net.id, region="us-central1", ip_cidr_range="10.0.0.0/24")
    heal = c.HealthCheck("heal", http_health_check={"port": 9000})
    image = "projects/debian-cloud/global/images/debian-12-bookworm-v20260921"
    template = c.InstanceTemplate("template", machine_type="e2-small",
        disks=[{"source_image": image, "boot": True, "auto_delete": True}], network_interfaces=[{"subnetwork": sub.id}])
    # Without guests no VM ever answers the heal check, so the group is waited for.
    group = c.InstanceGroupManager("group", base_instance_name="r", target_size=2, zone="us-central1-a",
        versions=[{"instance_template": template.self_link_unique}], wait_for_instances=config.get_bool("wait"),
        auto_healing_policies={"health_check": heal.id, "initial_delay_sec": 3600})
    c.Firewall("last", network=net.id, allows=[{"protocol": "tcp"}], source_ranges=["10.0.0.0/8"],
        opts=pulumi.ResourceOptions(depends_on=[group]))
"""


def test_up_goes_on_with_the_lab_that_comes_back(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    project.write(PROGRAM)

    with daemon(folder, "tests.engine.dying_daemon") as lab, pytest.raises(DeploymentError):
        EngineDeployment(project.stack(lab)).update(project.config(wait="true"), preview=False)
    assert any(line.startswith("creating InstanceGroupManager") for line in project.said)
    (group,) = folder.rglob("instanceGroupManagers/*.json")

    with daemon(folder) as lab:
        deployment = EngineDeployment(project.stack(lab))
        deployment.refresh()
        done = deployment.update(project.config(wait="false"), preview=False)
        assert done.get("create", 0) >= 1, done
        assert items(lab, "global/firewalls") != []
        # The group that was there is the one that is kept, with its VMs.
        (kept,) = items(lab, "zones/us-central1-a/instanceGroupManagers")
        assert kept["name"] == group.stem
        deadline = time.monotonic() + DEADLINE_S
        while len(items(lab, "zones/us-central1-a/instances")) != 2:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert deployment.update(preview=False) == {}
        deployment.destroy()
        for collection in ("global/networks", "global/instanceTemplates", "zones/us-central1-a/instances"):
            assert items(lab, collection) == []

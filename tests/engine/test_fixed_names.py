"""Why nothing that is replaced may have a fixed name, and what only the API refuses, with the real engine."""

from __future__ import annotations

import pytest

from multinic.lab.pulumi.deployment import DeploymentError
from multinic.lab.pulumi.engine import EngineDeployment
from tests.engine.conftest import Project, RunningLab, items

pytestmark = [pytest.mark.engine, pytest.mark.slow]

PROGRAM = """
    net = c.Network("net", auto_create_subnetworks=False)
    sub = c.Subnetwork("sub", network=net.id, ip_cidr_range="10.3.0.0/24")
    template = c.InstanceTemplate("router", name=config.get("fixed"), machine_type="n2-highcpu-4", can_ip_forward=True,
        disks=[{"source_image": "projects/debian-cloud/global/images/debian-12-bookworm-v20260921", "boot": True}],
        network_interfaces=[{"subnetwork": sub.id}], metadata={"version": config.get("version") or "1"})
    group = c.InstanceGroupManager("fleet", base_instance_name="router", target_size=1,
        versions=[{"instance_template": template.self_link_unique}])
    kind = config.get("check") or "one"
    check = c.RegionHealthCheck(kind, http_health_check={"port": 9001 if kind == "one" else 9101})
    mode = {"balancing_mode": config.get("mode")} if config.get("mode") else {}
    service = c.RegionBackendService("service", network=net.id, protocol="TCP", load_balancing_scheme="INTERNAL",
        health_checks=check.id, backends=[{"group": group.instance_group} | mode])
"""


def test_refused_by_the_api_then_in_use_then_right(project: Project, lab: RunningLab) -> None:
    project.write(PROGRAM)
    deployment = EngineDeployment(project.stack(lab))
    try:
        # The plugin's default balancing mode passes the preview; the API's words name the one that works.
        with pytest.raises(DeploymentError, match=r"RegionBackendService service: .*CONNECTION is the only one"):
            deployment.update(project.config(fixed="router"))
        again = deployment.update(project.config(fixed="router", mode="CONNECTION"), preview=False)
        assert again == {"create": 1}

        # A fixed name has to be free before the new template comes, but the group uses the old one.
        changed = {"mode": "CONNECTION", "version": "2"}
        with pytest.raises(DeploymentError, match=r"InstanceTemplate router: .*already being used by .*/fleet-"):
            deployment.update(project.config(fixed="router", **changed), preview=False)
        assert [one["name"] for one in items(lab, "global/instanceTemplates")] == ["router"]

        # With names of the engine's choice the new ones come first: template and check alike.
        project.said.clear()
        done = deployment.update(project.config(check="two", **changed), preview=False)
        assert done == {"create": 1, "replace": 1, "update": 2, "delete": 1}
        order = [
            project.said.index(line)
            for line in (
                "creating anew InstanceTemplate router",
                "updating InstanceGroupManager fleet",
                "deleting replaced InstanceTemplate router",
            )
        ]
        assert order == sorted(order)
        order = [
            project.said.index(line)
            for line in (
                "creating RegionHealthCheck two",
                "updating RegionBackendService service",
                "deleting RegionHealthCheck one",
            )
        ]
        assert order == sorted(order)
        assert deployment.preview() == {}
    finally:
        deployment.destroy()
    assert items(lab, "global/instanceTemplates") == []

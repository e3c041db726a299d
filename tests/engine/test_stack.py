"""The life of a stack with the real engine, against the lab's front door."""

from __future__ import annotations

import pytest

from multinic.lab.pulumi.deployment import DeploymentError
from multinic.lab.pulumi.rest import ApiError
from tests.engine.conftest import Project, RunningLab, items

pytestmark = pytest.mark.engine

FLEET = """
    net = c.Network("net", auto_create_subnetworks=False)
    sub = c.Subnetwork("sub", network=net.id, ip_cidr_range="10.3.0.0/24")
    template = c.InstanceTemplate("router", machine_type="n2-highcpu-4", can_ip_forward=True,
        disks=[{"source_image": "projects/debian-cloud/global/images/debian-12-bookworm-v20260921", "boot": True}],
        network_interfaces=[{"subnetwork": sub.id}], metadata={"version": config.get("version") or "1"})
    group = c.InstanceGroupManager("fleet", base_instance_name="router", target_size=1, wait_for_instances=True,
        wait_for_instances_status="UPDATED", versions=[{"instance_template": template.self_link_unique}],
        update_policy={"type": "PROACTIVE", "minimal_action": "REPLACE", "max_surge_fixed": 1,
                       "max_unavailable_fixed": 0})
    pulumi.export("template", template.name)
"""

FIREWALL = """
    net = c.Network("net", name="net", auto_create_subnetworks=False)
    rule = c.Firewall("rule", name="rule", network=net.id, source_ranges=["10.0.0.0/8"], allows=[{"protocol": "all"}],
        priority=config.get_int("priority") or 900)
    pulumi.export("priority", rule.priority)
"""


@pytest.mark.slow
def test_a_changed_template_is_made_first_rolled_out_and_then_the_old_one_goes(
    project: Project, lab: RunningLab
) -> None:
    project.write(FLEET)
    deployment = project.up(lab, version="1")
    try:
        first = deployment.outputs["template"]
        project.said.clear()

        done = deployment.update(project.config(version="2"), preview=False)

        assert done == {"replace": 1, "update": 1}
        order = [line for line in project.said if "InstanceTemplate" in line or "InstanceGroupManager" in line]
        assert order == [
            "creating anew InstanceTemplate router",
            "updating InstanceGroupManager fleet",
            "deleting replaced InstanceTemplate router",
        ]
        templates = [template["name"] for template in items(lab, "global/instanceTemplates")]
        assert templates == [deployment.outputs["template"]] != [first]
        assert deployment.update(preview=False) == {}
    finally:
        deployment.destroy()
    assert items(lab, "global/instanceTemplates") == []


@pytest.mark.slow
def test_refresh_sees_what_was_changed_by_hand_and_the_next_up_puts_it_right(project: Project, lab: RunningLab) -> None:
    project.write(FIREWALL)
    deployment = project.up(lab)
    try:
        assert deployment.refresh() == {}
        lab.rest.run("PATCH", "projects/lab/global/firewalls/rule", {"priority": 700}, float("inf"))

        assert deployment.refresh() == {"update": 1}
        assert deployment.outputs["priority"] == 900
        assert deployment.preview() == {"update": 1}
        assert deployment.update(preview=False) == {"update": 1}
        assert lab.rest.get("projects/lab/global/firewalls/rule")["priority"] == 900

        lab.rest.run("DELETE", "projects/lab/global/firewalls/rule", None, float("inf"))
        assert deployment.refresh() == {"delete": 1}
        assert deployment.update(preview=False) == {"create": 1}
    finally:
        deployment.destroy()


@pytest.mark.slow
def test_an_update_in_place_and_a_second_up_without_change(project: Project, lab: RunningLab) -> None:
    project.write(FIREWALL)
    deployment = project.up(lab)
    try:
        assert deployment.update(project.config(priority="800"), preview=False) == {"update": 1}
        assert deployment.outputs["priority"] == 800
        assert deployment.update(preview=False) == {}
    finally:
        deployment.destroy()


def test_what_is_in_use_is_not_deleted_and_destroy_can_be_tried_again(project: Project, lab: RunningLab) -> None:
    project.write('c.Network("net", name="net", auto_create_subnetworks=False)')
    deployment = project.up(lab)
    by_hand = "projects/lab/global/firewalls"
    body = {"name": "by-hand", "network": "global/networks/net", "sourceRanges": ["10.0.0.0/8"]}
    lab.rest.run("POST", by_hand, body | {"allowed": [{"IPProtocol": "all"}]}, float("inf"))

    with pytest.raises(DeploymentError, match=r"Network net: .*already being used by"):
        deployment.destroy()

    lab.rest.run("DELETE", f"{by_hand}/by-hand", None, float("inf"))
    deployment.destroy()
    with pytest.raises(ApiError):
        lab.rest.get("projects/lab/global/networks/net")

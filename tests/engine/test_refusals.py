"""What the engine reports when something is refused, and how it goes on."""

from __future__ import annotations

import pytest

from multinic.lab.pulumi.deployment import DeploymentError
from multinic.lab.pulumi.engine import EngineDeployment
from tests.engine.conftest import Project, RunningLab, items
from tests.lab.pulumi.fake_api import FakeApi

pytestmark = pytest.mark.engine


def test_refused_inputs_are_shown_before_anything_is_created(project: Project, lab: RunningLab) -> None:
    project.write("""
        net = c.Network("net", auto_create_subnetworks=False)
        c.Subnetwork("sub", network=net.id, ip_cidr_range="10.3.0.0")
    """)

    with pytest.raises(DeploymentError) as refused:
        project.up(lab)

    text = str(refused.value)
    assert '"10.3.0.0" is not a valid CIDR value' in text
    assert "Subnetwork sub" in text
    assert "Traceback" not in text
    assert [network for network in items(lab, "global/networks") if network["name"].startswith("net-")] == []
    assert refused.value.deployment is None


def test_an_output_that_is_no_full_link_is_told_as_an_input_in_the_preview(project: Project, lab: RunningLab) -> None:
    project.write("""
        from multinic import MultinicRouter

        def side(link, number):
            subnetwork = f"projects/lab/regions/us-central1/subnetworks/side{number}"
            return {"network": link, "subnetwork": subnetwork, "cidrs": [f"10.{number}.0.0/16"]}

        links = ["projects/lab/global/networks/side0", pulumi.Output.from_input("side1")]
        MultinicRouter("router", {
            "region": "us-central1", "zones": ["us-central1-a"],
            "machine": {"image": "projects/debian-cloud/global/images/debian-12-bookworm-v20260609"},
            "networks": [side(link, number) for number, link in enumerate(links)],
        })
    """)

    with pytest.raises(DeploymentError) as refused:
        EngineDeployment(project.stack(lab)).update(project.config(), preview=True)

    text = str(refused.value)
    assert "network: 'side1' does not say the project; give the network's self_link" in text
    assert "Traceback" not in text


def test_types_and_functions_that_are_not_served_are_named(project: Project, lab: RunningLab) -> None:
    project.write('gcp.storage.Bucket("b", location="EU")')
    with pytest.raises(DeploymentError, match="the lab does not serve the resource type gcp:storage/bucket:Bucket"):
        project.up(lab)

    project.write('pulumi.export("x", gcp.compute.get_snapshot(name="x").id)')
    with pytest.raises(DeploymentError, match="does not serve the function gcp:compute/getSnapshot") as refused:
        project.up(lab)
    assert "Traceback" not in str(refused.value)


@pytest.mark.slow
def test_after_a_partial_failure_a_second_try_makes_only_the_rest(project: Project, api: FakeApi) -> None:
    project.write("""
        net = c.Network("net", name="net", auto_create_subnetworks=False)
        c.Subnetwork("sub", name="sub", network=net.id, ip_cidr_range="10.3.0.0/24")
    """)
    api.refuse["/subnetworks"] = (403, "quotaExceeded", "Quota 'SUBNETWORKS' exceeded. Limit: 1.0 globally.")
    with pytest.raises(DeploymentError, match=r"Subnetwork sub: .*Quota 'SUBNETWORKS' exceeded") as failed:
        project.up(api)
    assert failed.value.deployment is not None
    assert [made.name for made in failed.value.deployment.resources if made.id and ":providers:" not in made.type] == [
        "net"
    ]

    api.refuse.clear()
    deployment = project.up(api)

    posted = [request["path"].rsplit("/", 1)[-1] for request in api.requests if request["method"] == "POST"]
    assert posted == ["networks", "subnetworks", "subnetworks"]
    deployment.destroy()
    assert api.objects == {}


def test_a_group_that_does_not_come_up_fails_with_its_own_error_and_stays_in_the_state(
    project: Project, api: FakeApi
) -> None:
    project.write("""
        c.InstanceGroupManager("fleet", name="fleet", base_instance_name="r", target_size=1, wait_for_instances=True,
            versions=[{"instance_template": "projects/lab/global/instanceTemplates/t"}],
            opts=pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(create="1s")))
    """)
    api.group_status = {"isStable": False}
    api.group_errors = [{"error": {"message": "ZONE_RESOURCE_POOL_EXHAUSTED"}}]

    with pytest.raises(DeploymentError, match="to be STABLE; last errors: ZONE_RESOURCE_POOL_EXHAUSTED") as failed:
        project.up(api)

    deployment = failed.value.deployment
    assert deployment is not None
    assert [made.name for made in deployment.resources if made.id and ":providers:" not in made.type] == ["fleet"]
    deployment.destroy()
    assert api.objects == {}

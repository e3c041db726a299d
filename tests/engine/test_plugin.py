"""A program that knows the router only as a package: the real engine constructs it in the plugin's own process."""

from __future__ import annotations

import pytest

from multinic.lab.pulumi.deployment import DeploymentError
from tests.engine.conftest import REPOSITORY, Project, RunningLab, items

pytestmark = [pytest.mark.engine, pytest.mark.slow]

PROGRAM = """
    class Router(pulumi.ComponentResource):
        addresses: pulumi.Output[list[str]]
        groups: pulumi.Output[dict[str, str]]

        def __init__(self, name, inputs):
            outputs = {"addresses": None, "groups": None}
            super().__init__("multinic:index:MultinicRouter", name, {**inputs, **outputs}, remote=True)

    networks = []
    for index in (1, 2):
        net = c.Network(f"net{index}", auto_create_subnetworks=False)
        sub = c.Subnetwork(f"sub{index}", network=net.id, ip_cidr_range=f"10.{index}.0.0/24")
        networks.append({"network": net.self_link, "subnetwork": sub.self_link, "cidrs": [f"10.{index}.0.0/24"]})
    image = "projects/debian-cloud/global/images/debian-12-bookworm-v20260921"
    router = Router("router", {
        "region": config.get("region") or "us-central1",
        "zones": ["us-central1-a"],
        "networks": networks,
        "machine": {"image": image, "diskGb": 20},
        "replicas": {"min": 1},
        "nextHop": {"sessionAffinity": "CLIENT_IP", "drainingSec": config.get_int("draining") or 5},
    })
    pulumi.export("addresses", router.addresses)
    pulumi.export("groups", router.groups)
"""


@pytest.mark.usefixtures("installed")
def test_another_program_constructs_a_router_through_the_plugin(project: Project, lab: RunningLab) -> None:
    project.write(PROGRAM)
    deployment = project.up(lab)
    try:
        assert [address.startswith("10.") for address in deployment.outputs["addresses"]] == [True, True]
        assert list(deployment.outputs["groups"]) == ["us-central1-a"]
        for service in items(lab, "regions/us-central1/backendServices"):
            assert service["sessionAffinity"] == "CLIENT_IP"
            assert service["connectionDraining"] == {"drainingTimeoutSec": 5}
        (template,) = items(lab, "global/instanceTemplates")
        assert template["properties"]["disks"][0]["initializeParams"]["diskSizeGb"] in (20, "20")
        assert deployment.update(preview=False) == {}
    finally:
        deployment.destroy()


@pytest.mark.usefixtures("installed")
def test_wrong_inputs_come_back_with_their_paths_before_anything_of_the_router_is_made(
    project: Project, lab: RunningLab
) -> None:
    project.write(PROGRAM)
    with pytest.raises(DeploymentError) as caught:
        project.up(lab, region="Mars", draining="9999")
    text = str(caught.value)
    assert "region: 'Mars' is not a region" in text
    assert "next_hop.draining_sec: 9999 is outside 0 to 3600" in text
    assert str(REPOSITORY / "multinic") not in text  # no traceback through the library
    assert items(lab, "regions/us-central1/backendServices") == []

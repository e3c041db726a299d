"""Changes of a router's size, address and zones with the real engine: what is changed, in which order, what stays."""

from __future__ import annotations

import json
from typing import Any

import pytest

from multinic.lab.pulumi.engine import EngineDeployment
from tests.engine.conftest import Project, RunningLab, items

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]

PROGRAM = """
    from multinic import MultinicRouter, RoutedNetworks

    networks = RoutedNetworks("net", {"region": "us-central1", "networks": [
        {"name": "left", "cidr": "10.1.0.0/24"}, {"name": "right", "cidr": "10.2.0.0/24"}]})
    left, right = networks.router_networks
    router = MultinicRouter("router", {
        "region": "us-central1",
        "zones": config.require_object("zones"),
        "networks": [left | ({"address": config.get("address")} if config.get("address") else {}), right],
        "machine": {"image": "projects/debian-cloud/global/images/debian-12-bookworm-v20260921"},
        "replicas": config.require_object("replicas"),
        "next_hop": {"draining_sec": 0, "global_access": config.get_bool("global_access") is not False},
    })
    pulumi.export("hops", router.next_hops)
"""
FIRST, SECOND = "us-central1-a", "us-central1-b"
GROUPS = "zones/{}/instanceGroupManagers"


def sizes(lab: RunningLab, *zones: str) -> list[tuple[int, int]]:
    """Target size of the group and number of VMs of each zone."""
    found = []
    for zone in zones:
        (group,) = items(lab, GROUPS.format(zone))
        found.append((group["targetSize"], len(items(lab, f"zones/{zone}/instances"))))
    return found


def autoscalers(lab: RunningLab) -> int:
    return sum(len(items(lab, f"zones/{zone}/autoscalers")) for zone in (FIRST, SECOND))


def test_size_address_and_zones_of_a_router_that_is_up(project: Project, answering_lab: RunningLab) -> None:
    lab = answering_lab
    project.write(PROGRAM)
    deployment = EngineDeployment(project.stack(lab))

    def change(replicas: dict[str, int], zones: tuple[str, ...] = (FIRST, SECOND), **more: str) -> dict[str, int]:
        project.said.clear()
        given: dict[str, Any] = {"replicas": json.dumps(replicas), "zones": json.dumps(zones)}
        return deployment.update(project.config(**given, **more), preview=False)

    try:
        change({"min": 1, "max": 3})
        assert (sizes(lab, FIRST, SECOND), autoscalers(lab)) == ([(1, 1), (1, 1)], 2)

        # What the autoscaler does to a group is no drift that a program would fight, and other drift is still seen.
        (group,) = items(lab, GROUPS.format(FIRST))
        path = f"projects/lab/{GROUPS.format(FIRST)}/{group['name']}"
        lab.rest.run("POST", f"{path}/resize", None, float("inf"), size="3")
        lab.rest.run("PATCH", path, {"updatePolicy": group["updatePolicy"] | {"minReadySec": 77}}, float("inf"))
        assert deployment.refresh() == {"update": 1}
        assert deployment.preview() == {"update": 1}

        # Fixed instead of autoscaled: the autoscalers go, the groups get the size; global access changes in place.
        # The engine deletes last, so an autoscaler still holds its group at its own greatest size: the next refresh
        # sees that, and the `up` after it gives the group what was asked for.
        assert change({"min": 4}, global_access="false") == {"update": 4, "delete": 2}
        assert (sizes(lab, FIRST, SECOND), autoscalers(lab)) == ([(3, 3), (3, 3)], 0)
        assert deployment.refresh() == {"update": 2}
        assert change({"min": 4}, global_access="false") == {"update": 2}
        assert (sizes(lab, FIRST, SECOND), autoscalers(lab)) == ([(4, 4), (4, 4)], 0)
        (group,) = items(lab, GROUPS.format(FIRST))
        assert group["updatePolicy"]["minReadySec"] != 77
        assert not any(one.get("allowGlobalAccess") for one in items(lab, "regions/us-central1/forwardingRules"))

        # Off, and another address: the rule of that network goes before its successor comes, its routes with it.
        subnetwork = next(one for one in items(lab, "regions/us-central1/subnetworks") if "left" in one["name"])
        reserved = {"name": "mine", "addressType": "INTERNAL", "subnetwork": subnetwork["selfLink"]}
        lab.rest.run("POST", "projects/lab/regions/us-central1/addresses", reserved, float("inf"))
        address = lab.rest.get("projects/lab/regions/us-central1/addresses/mine")["address"]
        services = {one["id"] for one in items(lab, "regions/us-central1/backendServices")}
        done = change({"min": 0}, address=address, global_access="false")
        assert done == {"update": 2, "replace": 2, "delete": 1}
        assert (sizes(lab, FIRST, SECOND), autoscalers(lab)) == ([(0, 0), (0, 0)], 0)
        order = [
            line for line in project.said if " ForwardingRule " in line or " Route " in line or " Address " in line
        ]
        kinds = [line.rpartition(" ")[0] for line in order]
        assert kinds.index("deleting replaced ForwardingRule") < kinds.index("creating anew ForwardingRule")
        assert kinds.index("creating anew ForwardingRule") < kinds.index("creating anew Route")
        assert kinds[-1] == "deleting Address"
        assert {one["id"] for one in items(lab, "regions/us-central1/backendServices")} == services
        (rule,) = [one for one in items(lab, "regions/us-central1/forwardingRules") if one["IPAddress"] == address]
        assert rule["selfLink"] in [one.get("nextHopIlb") for one in items(lab, "global/routes")]
        assert deployment.preview() == {}

        # Autoscaled again, in one zone: both load balancers let go of the other zone's group before it is deleted.
        done = change({"min": 1, "max": 2}, (FIRST,), address=address, global_access="false")
        assert done == {"create": 1, "update": 2, "delete": 1}
        assert (sizes(lab, FIRST), autoscalers(lab)) == ([(1, 1)], 1)
        assert items(lab, GROUPS.format(SECOND)) == []
        assert max(
            index for index, line in enumerate(project.said) if line.startswith("updating RegionBackendService")
        ) < project.said.index(f"deleting InstanceGroupManager router-fleet-group-{SECOND}")
        assert deployment.update(preview=False) == {}
    finally:
        if items(lab, "regions/us-central1/addresses"):
            _release(deployment, lab)
        deployment.destroy()
    assert items(lab, "global/instanceTemplates") == []


def _release(deployment: EngineDeployment, lab: RunningLab) -> None:
    """The address that was reserved by hand holds its subnetwork, and the rule holds the address."""
    with deployment.stack.session() as run:
        run(
            "destroy",
            "--yes",
            "--skip-preview",
            "--stack",
            deployment.stack.name,
            "--target-dependents",
            "--target",
            "**ForwardingRule**",
        )
    for one in items(lab, "regions/us-central1/addresses"):
        if one["name"] == "mine":
            lab.rest.run("DELETE", "projects/lab/regions/us-central1/addresses/mine", None, float("inf"))

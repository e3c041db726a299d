"""The router's fleet under changes of its template, with the real engine: quick ones, bad ones."""

from __future__ import annotations

from typing import Any

import pytest

from multinic.lab.pulumi.deployment import DeploymentError
from tests.engine.answering_daemon import BAD, SCRIPT_KEY
from tests.engine.conftest import Project, RunningLab, items

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]

PROGRAM = """
    from multinic import MultinicRouter, RoutedNetworks

    def hurry(args):
        # A group gets ten minutes and more to take a new template; tests of one that cannot take it wait less.
        if args.type_ == "gcp:compute/instanceGroupManager:InstanceGroupManager" and config.get("patience"):
            given = pulumi.CustomTimeouts(update=config.require("patience"))
            return pulumi.ResourceTransformationResult(
                args.props, pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(custom_timeouts=given)))

    pulumi.runtime.register_stack_transformation(hurry)
    networks = RoutedNetworks("net", {"region": "us-central1", "networks": [
        {"name": "left", "cidr": "10.1.0.0/24"}, {"name": "right", "cidr": "10.2.0.0/24"}]})
    router = MultinicRouter("router", {
        "region": "us-central1",
        "zones": ["us-central1-a"],
        "networks": networks.router_networks,
        "machine": {
            "image": "projects/debian-cloud/global/images/debian-12-bookworm-v20260921",
            "startup_script": config.get("script") or "",
        },
        "replicas": {"min": 2},
        "health": {"heal": {"interval_sec": 5, "healthy_threshold": 1, "initial_delay_sec": 600}},
        "updates": {"min_ready_sec": 0, "wait": config.get_bool("wait") is not False},
        "next_hop": {"draining_sec": 0},
    })
    pulumi.export("template", router.template)
"""
TEMPLATES = "global/instanceTemplates"
ROUTERS = "zones/us-central1-a/instances"


def scripts(lab: RunningLab) -> list[str]:
    """The startup script of every VM: says which template each has."""
    found = [{one["key"]: one["value"] for one in vm["metadata"]["items"]} for vm in items(lab, ROUTERS)]
    return sorted(one.get(SCRIPT_KEY, "") for one in found)


def test_two_quick_updates_in_a_row_end_with_the_last_template_and_no_other(
    project: Project, answering_lab: RunningLab
) -> None:
    lab = answering_lab
    project.write(PROGRAM)
    deployment = project.up(lab, script="one")
    try:
        assert scripts(lab) == ["one", "one"]
        deployment.update(project.config(script="two"), preview=False)
        deployment.update(project.config(script="three"), preview=False)
        assert scripts(lab) == ["three", "three"]
        assert len(items(lab, TEMPLATES)) == 1
        assert deployment.update(preview=False) == {}
    finally:
        deployment.destroy()
    assert items(lab, TEMPLATES) == []


def test_a_second_update_before_the_first_has_rolled_needs_no_template_that_is_gone(
    project: Project, answering_lab: RunningLab
) -> None:
    lab = answering_lab
    project.write(PROGRAM)
    deployment = project.up(lab, script="one", wait="false")
    try:
        for script in ("two", "three"):
            deployment.update(project.config(script=script, wait="false"), preview=False)
        # Nobody waited, so replaced templates stay: VMs may still run them.
        assert len(items(lab, TEMPLATES)) == 3
        # Waiting again: the group is at the newest template, and a later replacement deletes the one it replaces.
        deployment.update(project.config(script="three"), preview=False)
        deployment.update(project.config(script="four"), preview=False)
        assert scripts(lab) == ["four", "four"]
    finally:
        # Those that were left hold the subnetworks.
        for template in items(lab, TEMPLATES):
            if f"/{template['name']}" not in deployment.outputs["template"]:
                lab.rest.run("DELETE", f"projects/lab/{TEMPLATES}/{template['name']}", None, float("inf"))
        deployment.destroy()
    assert items(lab, TEMPLATES) == []


def test_a_bad_template_fails_the_update_stops_at_its_first_vm_and_the_next_good_one_goes_through(
    project: Project, answering_lab: RunningLab
) -> None:
    lab = answering_lab
    project.write(PROGRAM)
    deployment = project.up(lab, script="good")
    try:
        first: set[Any] = {vm["id"] for vm in items(lab, ROUTERS)}

        with pytest.raises(DeploymentError) as failed:
            deployment.update(project.config(script=BAD, patience="20s"), preview=False)

        assert "InstanceGroupManager router-fleet-group-us-central1-a" in str(failed.value)
        assert scripts(lab) == [BAD, "good", "good"]
        assert first < {vm["id"] for vm in items(lab, ROUTERS)}
        assert len(items(lab, TEMPLATES)) == 2

        deployment.update(project.config(script="better"), preview=False)

        assert scripts(lab) == ["better", "better"]
        assert len(items(lab, TEMPLATES)) == 1
        assert deployment.update(preview=False) == {}
    finally:
        deployment.destroy()
    assert items(lab, TEMPLATES) == []

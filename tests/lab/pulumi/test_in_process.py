"""Programs run without the CLI: order, errors, and what is left after them."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pulumi_random
import pytest
from pulumi.runtime import settings as sdk_settings

from multinic.lab.pulumi import in_process
from multinic.lab.pulumi.deployment import DeploymentError, InterruptedUpError
from tests.lab.pulumi.fake_api import FakeApi

CONFIG = {"gcp:project": "lab", "gcp:region": "us-central1", "gcp:zone": "us-central1-a"}


def up(api: FakeApi, program: Callable[[], Any], progress: Callable[[str], None] | None = None) -> Any:
    return in_process.up(
        program,
        project="trial",
        stack="test",
        config=CONFIG | {"size": "3"},
        endpoint=api.endpoint,
        token="t",
        progress=progress,
    )


class Pair(pulumi.ComponentResource):
    def __init__(self, name: str) -> None:
        super().__init__("trial:index:Pair", name)
        opts = pulumi.ResourceOptions(parent=self)
        self.network = gcp.compute.Network(f"{name}-net", auto_create_subnetworks=False, opts=opts)
        self.subnetwork = gcp.compute.Subnetwork(
            f"{name}-sub", network=self.network.id, ip_cidr_range="10.3.0.0/24", opts=opts
        )
        self.register_outputs({})


def test_a_component_comes_up_in_order_and_goes_in_reverse(api: FakeApi) -> None:
    def program() -> None:
        pair = Pair("pair")
        gcp.compute.Firewall(
            "last",
            network=pair.network.id,
            source_ranges=["10.0.0.0/8"],
            allows=[{"protocol": "all"}],
            opts=pulumi.ResourceOptions(depends_on=[pair]),
        )
        pulumi.export("network", pair.network.self_link)
        pulumi.export("size", pulumi.Config().require_int("size"))

    lines: list[str] = []
    deployment = up(api, program, lines.append)

    assert [made.name for made in deployment.resources] == ["pair", "pair-net", "pair-sub", "last"]
    name = deployment.resources[1].inputs["name"]
    assert name.startswith("pair-net-") and len(name) == len("pair-net-") + 7
    assert deployment.outputs == {
        "network": f"https://www.googleapis.com/compute/v1/projects/lab/global/networks/{name}",
        "size": 3,
    }
    assert lines[-1] == "created Firewall last"
    deployment.destroy()
    deletes = [request["path"].split("/")[-2] for request in api.requests if request["method"] == "DELETE"]
    assert deletes[-1] == "networks" and set(deletes) == {"firewalls", "subnetworks", "networks"}
    assert api.objects == {} and deployment.resources == []


def test_all_refused_inputs_are_told_and_nothing_is_created(api: FakeApi) -> None:
    def program() -> None:
        network = gcp.compute.Network("Good", auto_create_subnetworks=False)
        gcp.compute.Subnetwork("bad", network=network.id, ip_cidr_range="10.3.0.0")
        gcp.compute.Firewall("worse", network=network.id, source_ranges=["10.0.0.0/8"])

    with pytest.raises(DeploymentError) as refused:
        up(api, program)

    assert sorted(str(refused.value).splitlines()) == [
        "Firewall worse: exactly one of allows, denies must be given, got none of them (input 'allows')",
        "Subnetwork bad: \"10.3.0.0\" is not a valid CIDR value: invalid CIDR address: 10.3.0.0 (input 'ipCidrRange')",
    ]
    assert api.requests == [] and refused.value.deployment is None


def test_an_error_of_the_program_is_told_in_its_own_words(api: FakeApi) -> None:
    def program() -> None:
        gcp.compute.Network("net")
        raise ValueError("zones[0]: 'us-central1-q' is no zone")

    with pytest.raises(DeploymentError) as failed:
        up(api, program)
    assert str(failed.value) == "zones[0]: 'us-central1-q' is no zone"
    assert api.requests == []


def test_after_a_refusal_by_the_api_what_was_made_can_be_destroyed(api: FakeApi) -> None:
    def program() -> None:
        network = gcp.compute.Network("net", name="net")
        gcp.compute.Subnetwork("sub", network=network.id, ip_cidr_range="10.3.0.0/24")
        route = gcp.compute.Router("router", network=network.id)
        gcp.compute.RouterNat("nat", router=route.name, source_subnetwork_ip_ranges_to_nat="ALL")
        pulumi.export("router", route.self_link)

    api.refuse["/routers"] = (403, "quotaExceeded", "Quota 'ROUTERS' exceeded.")
    with pytest.raises(DeploymentError) as failed:
        up(api, program)

    assert str(failed.value) == "Router router: googleapi: Error 403: Quota 'ROUTERS' exceeded., quotaExceeded"
    deployment = failed.value.deployment
    assert deployment is not None
    assert sorted(made.name for made in deployment.resources) == ["net", "sub"]
    deployment.destroy()
    assert api.objects == {}


def test_what_cannot_be_deleted_is_told_and_stays_known(api: FakeApi) -> None:
    def program() -> None:
        first = gcp.compute.Network("a", name="a")
        gcp.compute.Network("b", name="b", opts=pulumi.ResourceOptions(depends_on=[first]))

    deployment = up(api, program)
    api.refuse["/networks/b"] = (
        400,
        "resourceInUseByAnotherResource",
        "The network resource 'b' is already being used",
    )

    with pytest.raises(DeploymentError, match=r"Network b: .*already being used"):
        deployment.destroy()

    # What 'b' was made from has to wait for it.
    assert [made.name for made in deployment.resources] == ["a", "b"]
    api.refuse.clear()
    deployment.destroy()
    assert api.objects == {}


def test_types_functions_and_inputs_that_are_not_served_are_named(api: FakeApi) -> None:
    def declare_bucket() -> None:
        gcp.storage.Bucket("b", location="EU")

    def call() -> None:
        gcp.compute.get_snapshot(name="x")

    def declare_input() -> None:
        gcp.compute.Network("net", bgp_best_path_selection_mode="STANDARD")

    for program, text in (
        (declare_bucket, "the lab does not serve the resource type gcp:storage/bucket:Bucket"),
        (call, "the lab does not serve the function gcp:compute/getSnapshot:getSnapshot"),
        (declare_input, 'the lab does not know the input "bgpBestPathSelectionMode"'),
    ):
        with pytest.raises(DeploymentError) as refused:
            up(api, program)
        assert text in str(refused.value)
    assert api.objects == {}


def test_an_explicit_provider_has_its_own_project_and_a_random_id_is_drawn_once(api: FakeApi) -> None:
    def program() -> None:
        drawn = pulumi_random.RandomId("suffix", byte_length=2)
        other = gcp.Provider("other", project="other-project")
        network = gcp.compute.Network(
            "net", name=drawn.hex.apply("net-{}".format), opts=pulumi.ResourceOptions(provider=other)
        )
        pulumi.export("id", network.id)
        pulumi.export("hex", drawn.hex)

    deployment = up(api, program)

    assert deployment.outputs["id"] == f"projects/other-project/global/networks/net-{deployment.outputs['hex']}"
    deployment.destroy()
    assert api.objects == {}


def test_functions_answer_from_the_lab(api: FakeApi) -> None:
    def program() -> None:
        pulumi.export("zones", gcp.compute.get_zones(region="us-central1").names)
        pulumi.export("image", gcp.compute.get_image(family="debian-12", project="debian-cloud").name)
        pulumi.export("probes", gcp.compute.get_netblock_ip_ranges(range_type="health-checkers").cidr_blocks_ipv4s)
        pulumi.export("project", gcp.organizations.get_client_config().project)

    assert up(api, program).outputs == {
        "zones": ["us-central1-a", "us-central1-b"],
        "image": "debian-12-bookworm-v1",
        "probes": ["35.191.0.0/16", "130.211.0.0/22"],
        "project": "lab",
    }


def test_a_retained_resource_stays(api: FakeApi) -> None:
    def program() -> None:
        gcp.compute.Network("net", name="kept", opts=pulumi.ResourceOptions(retain_on_delete=True))

    up(api, program).destroy()
    assert list(api.objects) == ["projects/lab/global/networks/kept"]


def test_ctrl_c_ends_a_wait_and_keeps_what_was_made(api: FakeApi) -> None:
    def program() -> None:
        network = gcp.compute.Network("net", name="net")
        gcp.compute.InstanceGroupManager(
            "fleet",
            name="fleet",
            base_instance_name="r",
            target_size=1,
            wait_for_instances=True,
            versions=[{"instance_template": "projects/lab/global/instanceTemplates/t"}],
            opts=pulumi.ResourceOptions(depends_on=[network]),
        )

    def interrupt(line: str) -> None:
        if line == "creating InstanceGroupManager fleet":
            os.kill(os.getpid(), signal.SIGINT)

    api.group_status = {"isStable": False}
    with pytest.raises(InterruptedUpError) as interrupted:
        up(api, program, interrupt)

    deployment = interrupted.value.deployment
    assert "net" in [made.name for made in deployment.resources]
    deployment.destroy()
    assert [key for key in api.objects if "networks" in key] == []


def test_what_an_interrupted_run_left_does_not_reach_the_next_one(api: FakeApi) -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    loop = asyncio.new_event_loop()
    left = loop.create_task(never())
    left.cancel()
    loop.run_until_complete(asyncio.wait([left]))
    loop.close()
    sdk_settings.SETTINGS.outputs.add(left)
    try:
        up(api, lambda: pulumi.export("id", gcp.compute.Network("net", name="net").id))
        assert sdk_settings.SETTINGS.outputs == {left}
    finally:
        sdk_settings.SETTINGS.outputs.discard(left)


def test_check_needs_no_lab() -> None:
    def bad() -> None:
        gcp.compute.Address("a", address_type="SIDEWAYS")

    def asks() -> None:
        gcp.compute.get_zones()
        raise AssertionError("not reached: there is no lab to answer")

    with pytest.raises(DeploymentError, match="expected to be one of"):
        in_process.check(bad, project="trial", stack="test", config=CONFIG)
    in_process.check(asks, project="trial", stack="test", config=CONFIG)


def test_without_a_lab_the_error_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MULTINIC_LAB_ENDPOINT", raising=False)
    with pytest.raises(DeploymentError, match="MULTINIC_LAB_ENDPOINT is not set"):
        in_process.up(lambda: None, project="trial", stack="test", config=CONFIG)


def test_a_lab_that_does_not_answer_is_named() -> None:
    with pytest.raises(DeploymentError, match=r"the lab does not answer at http://127\.0\.0\.1:9 "):
        in_process.up(
            lambda: gcp.compute.Network("net") and None,
            project="trial",
            stack="test",
            config=CONFIG,
            endpoint="http://127.0.0.1:9",
            token="t",
        )

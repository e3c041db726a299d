"""The stacks of several regions: each with its committed configuration, together, and with what can be wrong in it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import pulumi
import pytest
import yaml
from pulumi.runtime import config as runtime_config

import stacks
from multinic import naming, testing
from multinic.lab.cloud import catalog
from stacks import links
from stacks.config import DEFAULTS
from tests.unit.conftest import REPOSITORY

FULL = "organization/multinic/{}"
Outputs = Mapping[str, Mapping[str, Any]]


def config(stack: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((REPOSITORY / f"Pulumi.{stack}.yaml").read_text())["config"]
    return found


def run(stack: str, known: Outputs, given: dict[str, Any] | None = None, *, preview: bool = False) -> testing.Declared:
    mocks = testing.Mocks(stacks={FULL.format(name): outputs for name, outputs in known.items()})
    return testing.run(stacks.run, config=given or config(stack), given=mocks, stack=stack, preview=preview)


@pytest.fixture
def networks() -> Outputs:
    return {"networks": run("networks", {}).outputs, "us-east1": {}}


def test_every_committed_stack_has_a_program() -> None:
    committed = {file.name.split(".")[1] for file in REPOSITORY.glob("Pulumi.*.yaml")}
    assert {config(stack).get("multinic:program", "dev") for stack in committed} == set(stacks.PROGRAMS)


def test_pulumi_yaml_declares_what_the_programs_read() -> None:
    declared = yaml.safe_load((REPOSITORY / "Pulumi.yaml").read_text())["config"]
    assert {key.removeprefix("multinic:"): one["default"] for key, one in declared.items()} == DEFAULTS
    read = {key for name in stacks.PROGRAMS for key in import_module(f"stacks.{name}").KEYS}
    assert read | {"program"} == set(DEFAULTS)
    assert all(one["description"] for one in declared.values())


def test_the_defaults_that_pulumi_gives_to_every_stack_change_nothing(networks: Outputs) -> None:
    defaults = {f"multinic:{key}": default for key, default in DEFAULTS.items()}
    for file in REPOSITORY.glob("Pulumi.*.yaml"):
        stack = file.name.split(".")[1]
        known = {**networks, "us-east1": run("us-east1", networks).outputs}
        plain, given = run(stack, known), run(stack, known, {**defaults, **config(stack)})
        assert [(one.urn, one.inputs) for one in given.resources] == [(one.urn, one.inputs) for one in plain.resources]
        assert given.outputs == plain.outputs


def test_the_lab_has_every_zone_that_a_committed_stack_names() -> None:
    for file in REPOSITORY.glob("Pulumi.*.yaml"):
        given = config(file.name.split(".")[1])
        named = {*given.get("multinic:zones", []), *given.get("multinic:endpoints", {}).get("zones", [])}
        assert named <= set(catalog.ZONES), file.name
        assert given.get("gcp:region", "us-central1") in catalog.REGIONS


def test_networks_export_every_link_by_name_and_region(networks: Outputs) -> None:
    assert networks["networks"].keys() == {
        "network_left",
        "network_right",
        "subnetwork_left_us-west1",
        "subnetwork_left_us-east1",
        "subnetwork_right_us-west1",
        "subnetwork_right_us-east1",
    }
    assert all(isinstance(value, str) for value in networks["networks"].values())


def test_regions_route_between_the_networks_of_another_stack(networks: Outputs, preview: bool) -> None:
    east = run("us-east1", networks, preview=preview)
    west = run("us-west1", {**networks, "us-east1": east.outputs}, preview=preview)
    for declared, region in ((east, "us-east1"), (west, "us-west1")):
        template = declared.one("InstanceTemplate")
        assert [nic["subnetwork"] for nic in template["networkInterfaces"]] == [
            networks["networks"][links.subnetwork_key(name, region)] for name in ("left", "right")
        ]
        assert {group["zone"][: len(region)] for group in declared.all("InstanceGroupManager")} == {region}
        assert {route["project"] for route in declared.all("Route")} == {"lab"}
    partial = [naming.partial(networks["networks"][links.network_key(name)]) for name in ("left", "right")]
    assert east.outputs["claims"] == [f"{partial[0]}|10.33.1.0/24|900", f"{partial[1]}|10.32.1.0/24|900"]
    names = [one.name for one in (*east.resources, *west.resources) if one.custom and "Reference" not in one.type]
    assert len(names) == len(set(names))


def test_region_has_a_page(networks: Outputs) -> None:
    page = run("us-east1", networks).outputs["readme"]
    assert "| left | 10.32.1.0/24 | 10." in page
    assert "Zones: us-east1-b, us-east1-c, us-east1-d" in page


def test_clash_of_two_regions_is_refused_with_both_names(networks: Outputs, preview: bool) -> None:
    given = config("us-west1")
    given["multinic:networks"][1]["cidrs"] = ["10.33.1.0/24"]
    known = {**networks, "us-east1": run("us-east1", networks).outputs}
    network = naming.partial(networks["networks"]["network_left"])
    message = (
        f"network {network}, 10.33.1.0/24, priority 900: claimed by us-west1 and by organization/multinic/us-east1"
    )
    with pytest.raises(pulumi.RunError, match="routes of two regions clash") as caught:
        run("us-west1", known, given, preview=preview)
    assert message in str(caught.value)
    given["multinic:router"]["routes"] = {"priority": 910}
    assert run("us-west1", known, given, preview=preview).all("Route")


def test_claims_are_of_networks_and_tags_and_not_of_names(networks: Outputs) -> None:
    given = config("us-west1")
    given["multinic:networks"][1]["cidrs"] = ["10.33.1.0/24"]
    elsewhere = {key: value.replace("/lab/", "/other/") for key, value in networks["networks"].items()}
    east = run("us-east1", networks).outputs
    # Networks of the same name in another project are other networks.
    other = run("us-east1", {**networks, "networks": elsewhere}).outputs
    assert run("us-west1", {**networks, "us-east1": other}, given).all("Route")
    # The same network by the name that another stack has for it.
    renamed = {key.replace("left", "inside"): value for key, value in networks["networks"].items()}
    given["multinic:networks"][0]["name"] = "inside"
    with pytest.raises(pulumi.RunError, match="routes of two regions clash"):
        run("us-west1", {"networks": renamed, "us-east1": east}, given)
    # Routes with tags of their own are for other VMs.
    given["multinic:router"]["routes"] = {"tags": ["west"]}
    assert run("us-west1", {"networks": renamed, "us-east1": east}, given).all("Route")
    tagged = config("us-east1")
    tagged["multinic:router"]["routes"] = {"tags": ["east", "west"]}
    known = {"networks": renamed, "us-east1": run("us-east1", networks, tagged).outputs}
    with pytest.raises(pulumi.RunError, match=r"10\.33\.1\.0/24, priority 900, tag west: claimed by"):
        run("us-west1", known, given)


def test_a_stack_that_claims_nothing_is_named(networks: Outputs, preview: bool) -> None:
    said = run("us-west1", networks, preview=preview).messages
    assert any("stack organization/multinic/us-east1 says nothing of its routes" in one for one in said)


def test_networks_of_a_region_take_what_a_router_takes(networks: Outputs) -> None:
    given = config("us-west1")
    given["multinic:networks"][0] |= {"address": "10.32.0.9", "nic_type": "VIRTIO_NET", "mtu": 1500}
    known = {**networks, "us-east1": run("us-east1", networks).outputs}
    declared = run("us-west1", known, given)
    assert declared.one("ForwardingRule", "nic0")["ipAddress"] == "10.32.0.9"
    assert declared.one("InstanceTemplate")["networkInterfaces"][0]["nicType"] == "VIRTIO_NET"


def test_network_that_the_other_stack_has_not_is_named(networks: Outputs, preview: bool) -> None:
    given = config("us-west1")
    given["multinic:networks"][1]["name"] = "middle"
    with pytest.raises(pulumi.RunError, match=r"networks has no output (sub)?network_middle"):
        run("us-west1", networks, given, preview=preview)


def test_endpoints_stand_in_two_networks(networks: Outputs, preview: bool) -> None:
    declared = run("endpoints", networks, preview=preview)
    assert declared.one("Instance", "client")["networkInterfaces"][0]["network"] == networks["networks"]["network_left"]
    assert (
        declared.one("Instance", "server")["networkInterfaces"][0]["network"] == networks["networks"]["network_right"]
    )


def test_project_enables_apis_and_shared_vpc(preview: bool) -> None:
    given = config("project") | {
        "multinic:shared_vpc_host": True,
        "multinic:service_projects": ["service-a"],
        "multinic:iap_members": ["group:net@example.com"],
    }
    declared = run("project", {}, given, preview=preview)
    assert {"compute.googleapis.com", "iap.googleapis.com"} <= {one["service"] for one in declared.all("Service")}
    assert {one["disableOnDestroy"] for one in declared.all("Service")} == {False}
    assert declared.one("SharedVPCServiceProject")["serviceProject"] == "service-a"
    assert declared.one("IAMMember")["member"] == "group:net@example.com"


def test_secret_configuration_is_refused() -> None:
    # It would end as instance metadata and as plain outputs, readable for everybody who may see the VMs.
    def program() -> None:
        runtime_config.set_all_config(config("dev"), ["multinic:router"])
        stacks.run()

    with pytest.raises(pulumi.RunError, match="multinic:router: is a secret, and would be readable as metadata"):
        testing.run(program)


@pytest.mark.parametrize(
    ("stack", "change", "message"),
    [
        ("networks", {"multinic:networks": None}, "multinic:networks: is required: give a list"),
        ("networks", {"gcp:region": None}, "gcp:region: is required"),
        (
            "us-west1",
            {"multinic:networks_stack": "networks"},
            "multinic:networks_stack: 'networks' is not ORGANIZ",
        ),
        ("us-west1", {"multinic:zones": []}, "multinic:zones: is empty; give at least one zone"),
        (
            "us-west1",
            {
                "multinic:networks": [
                    {"name": "left", "cidrs": ["10.0.0.1/8"]},
                    {"name": "right", "cidrs": ["10.1.0.0/16"]},
                ]
            },
            "multinic:networks[0].cidrs[0]: 10.0.0.1/8 has host bits set; did you mean 10.0.0.0/8?",
        ),
        (
            "us-west1",
            {"multinic:networks": [{"name": "a", "cidrs": ["10.0.0.0/16"]}, {"name": "a", "cidrs": ["10.1.0.0/16"]}]},
            "multinic:networks[1].name: a is given twice",
        ),
        (
            "us-west1",
            {"multinic:networks": [{"name": "Left", "cidrs": []}, {"nmae": "a", "network": "x", "cidrs": []}]},
            "multinic:networks[0].name: 'Left' is not a name of lower-case letters",
        ),
        (
            "us-west1",
            {"multinic:networks": [{"nmae": "a"}]},
            "multinic:networks[0].nmae: no such input; did you mean name",
        ),
        (
            "us-west1",
            {"multinic:networks": [{"name": "a", "network": "x"}]},
            "multinic:networks[0].network: no such input",
        ),
        (
            "us-west1",
            {"multinic:networks": [{"name": "a", "mtu": 9}]},
            "multinic:networks[0].mtu: 9 is outside 1300 to",
        ),
        *(
            ("us-west1", {"multinic:other_regions": others}, f"multinic:other_regions[{len(others) - 1}]: {message}")
            for others, message in (
                (["us-east1"], "'us-east1' is not ORGANIZATION/PROJECT/STACK"),
                ([FULL.format("us-west1")], "organization/multinic/us-west1 is this stack itself; leave it out"),
                ([FULL.format("networks")], "organization/multinic/networks is the networks stack; give region stacks"),
                ([FULL.format("us-east1")] * 2, "organization/multinic/us-east1 is given twice"),
            )
        ),
        ("us-west1", {"multinic:router": {"zones": []}}, "multinic:router.zones: the zones of a stack are given as"),
        ("us-west1", {"multinic:router": []}, "multinic:router: must be a mapping of names to values, not []"),
        ("endpoints", {"multinic:client_network": None}, "multinic:client_network: is required"),
        ("endpoints", {"multinic:endpoints": {"zones": []}}, "multinic:endpoints.cidrs: is required"),
        ("project", {"multinic:service_projects": ["a"]}, "multinic:service_projects: needs shared_vpc_host: true"),
        (
            "endpoints",
            {
                "multinic:endpoints": {
                    **config("endpoints")["multinic:endpoints"],
                    "zones": ["us-west1-a", "us-east1-b"],
                }
            },
            "multinic:endpoints.zones[1]: us-east1-b is not in gcp:region, us-west1",
        ),
        ("project", {"multinic:iap_members": ["user:a@b.c"] * 2}, "multinic:iap_members[1]: user:a@b.c is given twice"),
        (
            "project",
            {"multinic:service_projects": ["A_B"], "multinic:shared_vpc_host": True},
            "multinic:service_projects[0]: 'A_B' is not a project id",
        ),
        ("project", {"multinic:iap_members": ["me"]}, "multinic:iap_members[0]: 'me' is not a member such as"),
        ("project", {"multinic:iap_member": []}, "multinic:iap_member: no such setting; did you mean iap_members?"),
    ],
)
def test_wrong_configuration(stack: str, change: dict[str, Any], message: str, networks: Outputs) -> None:
    given = {key: value for key, value in {**config(stack), **change}.items() if value is not None}
    mocks = testing.Mocks(stacks={FULL.format(name): outputs for name, outputs in networks.items()})
    with pytest.raises(pulumi.RunError) as caught:
        testing.run(stacks.run, config=given, given=mocks, stack=stack)
    assert message in str(caught.value)
    assert mocks.declared.resources == []

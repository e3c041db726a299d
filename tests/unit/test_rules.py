"""Every rule between inputs, and every kind of wrong single value: its path, and what would be right."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_gcp as gcp
import pytest

from multinic import InputError, InputTypeError, MultinicRouter, parsing, rules, testing
from multinic.problems import Problems
from tests.unit.shapes import IMAGE, changed, router_args
from tests.unit.values import RIGHT, WRONG
from tests.unit.wrong_combinations import BREACHES


def problems_of(args: Any) -> list[str]:
    found = Problems()
    parsing.router(args, found)
    return [str(problem) for problem in found.found]


@pytest.mark.parametrize(("change", "rule", "message"), BREACHES, ids=[f"{b[1]}-{i}" for i, b in enumerate(BREACHES)])
def test_rule_is_judged(change: dict[str, Any], rule: str, message: str) -> None:
    found = Problems()
    parsing.router(changed(change), found)
    assert next((p.rule, str(p)[: len(message)]) for p in found.found if p.rule == rule) == (rule, message)


def test_every_rule_is_broken_by_some_test() -> None:
    assert {rule.id for rule in rules.RULES} == {rule for _, rule, _ in BREACHES}


def test_every_rule_says_where_it_comes_from() -> None:
    assert len({rule.id for rule in rules.RULES}) == len(rules.RULES)
    for rule in rules.RULES:
        assert rule.source
        assert rule.demands.endswith(".")


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[" ".join(w[0]) + f"-{i}" for i, w in enumerate(WRONG)])
def test_wrong_value_is_refused_by_path(change: dict[str, Any], message: str) -> None:
    assert [one for one in problems_of(changed(change)) if one.startswith(message)]


def test_one_wrong_value_is_one_problem() -> None:
    # A rule that needs a value which could not be read says nothing about a stand-in.
    for change, _ in WRONG:
        assert len(problems_of(changed(change))) == 1, change


def test_right_inputs_have_no_problem() -> None:
    for count in range(2, 9):
        assert problems_of(router_args(count)) == []


@pytest.mark.parametrize("change", RIGHT, ids=[" ".join(change) + f"-{i}" for i, change in enumerate(RIGHT)])
def test_inputs_at_the_edge_are_accepted(change: dict[str, Any]) -> None:
    assert problems_of(changed(change)) == []


def test_boot_disk_is_as_large_as_the_image() -> None:
    image = "projects/rocky-linux-cloud/global/images/rocky-linux-9-v20260921"
    assert parsing.router(router_args(), Problems()).fleet.machine.disk_gb == 10
    assert parsing.router(changed({"machine.image": image}), Problems()).fleet.machine.disk_gb == 20


def test_resource_in_place_of_its_link_is_told_what_to_give() -> None:
    def program() -> None:
        net = gcp.compute.Network("net")
        assert problems_of(changed({"networks.0.network": net})) == [
            "networks[0].network: is a Network; give an output of it, such as its self_link"
        ]

    testing.run(program)


def test_nested_ranges_can_be_allowed() -> None:
    args = changed({"networks.1.cidrs": ["0.0.0.0/0"], "routes.allow_nested_cidrs": True})
    assert problems_of(args) == []


def test_a_wrong_range_hides_no_wrong_link() -> None:
    args = changed({"region": "us-central", "networks.0.cidrs": ["10.10.0.0/33"], "networks.0.subnetwork": "x"})
    told = "\n".join(problems_of(args))
    for path in ("region: ", "networks[0].cidrs[0]: ", "networks[0].subnetwork: "):
        assert path in told


def test_all_problems_come_in_one_error() -> None:
    found = Problems()
    parsing.router(changed({"zones": [], "networks.1.cidrs": ["10.1.0.5/16"], "machine.imgae": IMAGE}), found)
    with pytest.raises(InputError) as caught:
        found.raise_if_any()
    # The one for the engine, when a package reports it; the other has Pulumi show no traceback.
    assert isinstance(caught.value, pulumi.InputPropertiesError)
    assert isinstance(caught.value, pulumi.RunError)
    assert not isinstance(caught.value, TypeError)
    assert str(caught.value).splitlines() == [
        "3 inputs cannot be used:",
        "  networks[1].cidrs[0]: 10.1.0.5/16 has host bits set; did you mean 10.1.0.0/16?",
        "  machine.imgae: no such input; did you mean image?",
        "  zones: is empty; give at least one zone such as us-central1-b, or leave it out to use all of us-central1",
    ]
    assert caught.value.errors
    assert [error["property_path"] for error in caught.value.errors] == [
        "networks[1].cidrs[0]",
        "machine.imgae",
        "zones",
    ]


@pytest.mark.parametrize("path", ["region", "zones", "networks", "networks.0.cidrs", "replicas.min", "machine.image"])
def test_output_in_place_of_a_plain_value_is_a_type_error(path: str) -> None:
    with pytest.raises(InputTypeError, match="is an Output, whose value is known only after deployment") as caught:
        testing.run(lambda: MultinicRouter("router", changed({path: pulumi.Output.from_input("x")})))
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, InputError)


def test_outputs_are_welcome_where_they_are_links() -> None:
    def program() -> None:
        link = pulumi.Output.from_input("projects/host/global/networks/n")
        args = router_args()
        args["networks"][0].update({"network": link, "subnetwork": link, "address": link})
        args["access"] = {"service_account": link}
        found = Problems()
        parsing.router(args, found)
        assert found.found == []

    testing.run(program)

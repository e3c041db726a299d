"""MultinicRouter by what it declares: routes, access, names, outputs. As a deployment and as a preview."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pytest

from multinic import InputError, MultinicRouter, RouterFleet, testing
from tests.unit.declaring import declare
from tests.unit.shapes import REGION, network, router_args


def test_routes_lead_to_every_other_network() -> None:
    declared = declare(router_args(3))
    routes = {(r["network"].rsplit("-", 1)[-1], r["destRange"]): r["nextHopIlb"] for r in declared.all("Route")}
    wanted = {(str(i), f"10.{j}.0.0/16") for i, j in itertools.permutations(range(3), 2)}
    assert routes.keys() == wanted
    for (index, _), hop in routes.items():
        assert f"-nic{index}-rule-" in hop


def test_routes_have_priority_and_tags() -> None:
    declared = declare(router_args(routes={"priority": 901, "tags": ["client"]}))
    for route in declared.all("Route"):
        assert (route["priority"], route["tags"]) == (901, ["client"])


def test_default_route_without_tags_is_warned_about() -> None:
    args = router_args(routes={"allow_nested_cidrs": True})
    args["networks"][1]["cidrs"] = ["0.0.0.0/0"]
    assert any("0.0.0.0/0 without routes.tags" in message for message in declare(args).messages)
    args["routes"]["tags"] = ["client"]
    assert not declare(args).messages


def test_only_these_have_a_name_of_their_own(preview: bool) -> None:
    # Whatever has a fixed name is deleted before it is replaced.
    for declared in (declare(preview=preview), declare(router_args(8, generation="v2"), preview=preview)):
        assert [one.name for one in declared.resources if {"name", "namePrefix"} & one.inputs.keys()] == []


def test_probes_reach_every_port_that_a_check_uses() -> None:
    declared = declare(router_args(3, health={"traffic": {"port": 8001}, "heal": {"port": 8000}}))
    for index, ports in enumerate((["8000", "8001"], ["8001"], ["8001"])):
        rule = declared.one("Firewall", f"probes-nic{index}")
        assert rule["sourceRanges"] == ["35.191.0.0/16", "130.211.0.0/22"]
        assert rule["allows"] == [{"protocol": "tcp", "ports": ports}]
        routed = declared.one("Firewall", f"routed-nic{index}")
        assert routed["sourceRanges"] == ["10.0.0.0/16", "10.1.0.0/16", "10.2.0.0/16"]
        assert routed["allows"] == [{"protocol": "all"}]
    assert declared.one("HealthCheck", "heal")["httpHealthCheck"] == {"port": 8000, "requestPath": "/status.json"}
    assert declared.one("HealthCheck", "traffic")["httpHealthCheck"]["port"] == 8001


def test_service_account_may_write_logs_and_nothing_else() -> None:
    declared = declare()
    email = declared.one("Account").inputs["accountId"] + "@lab.iam.gserviceaccount.com"
    assert [member["role"] for member in declared.all("IAMMember")] == ["roles/logging.logWriter"]
    assert declared.one("InstanceTemplate")["serviceAccount"] == {
        "email": email,
        "scopes": ["https://www.googleapis.com/auth/logging.write"],
    }
    for rule in declared.all("Firewall"):
        assert rule["targetServiceAccounts"] == [email]


def test_names_of_any_length_become_names_that_google_cloud_takes(preview: bool) -> None:
    for name in ("a" * 300, "Ä" * 63, "x y", "9", "-"):
        declared = testing.run(partial(MultinicRouter, name, router_args(generation="v2")), preview=preview)
        for one in declared.resources:
            if one.custom:
                assert re.fullmatch(r"[a-z]([-a-z0-9]{0,53}[a-z0-9])?", one.name), one
        assert len(declared.one("Account")["displayName"]) <= 100
        names = [group["baseInstanceName"] for group in declared.all("InstanceGroupManager")]
        assert len(set(names)) == 3 and max(map(len, names)) <= 58


def test_given_service_account_is_used_as_it_is() -> None:
    email = "robot@lab.iam.gserviceaccount.com"
    declared = declare(router_args(access={"service_account": email, "iap_ssh": True}))
    assert not declared.all("Account")
    assert not declared.all("IAMMember")
    assert declared.one("InstanceTemplate")["serviceAccount"]["email"] == email
    assert declared.one("Firewall", "iap-ssh")["sourceRanges"] == ["35.235.240.0/20"]


def test_packets_of_more_ranges_are_let_in_and_given_no_routes() -> None:
    plain, more = declare(), declare(router_args(access={"source_cidrs": ["10.32.0.0/23"]}))
    for nic in ("nic0", "nic1"):
        before = plain.one("Firewall", f"routed-{nic}")["sourceRanges"]
        assert more.one("Firewall", f"routed-{nic}")["sourceRanges"] == sorted([*before, "10.32.0.0/23"])
    assert [one["destRange"] for one in more.all("Route")] == [one["destRange"] for one in plain.all("Route")]
    probes = [declared.one("Firewall", "probes-nic0")["sourceRanges"] for declared in (plain, more)]
    assert probes[0] == probes[1]


@pytest.mark.parametrize("link", [str, pulumi.Output.from_input], ids=["text", "output"])
def test_shared_vpc_puts_each_resource_into_its_project(link: Callable[[str], pulumi.Input[str]]) -> None:
    def host(index: int, place: str, kind: str) -> str:
        return f"projects/host-{index}/{place}/{kind}s/n"

    def program() -> None:
        args = router_args(project="service")
        for i, one in enumerate(args["networks"]):
            one["network"] = link(host(i, "global", "network"))
            one["subnetwork"] = host(i, f"regions/{REGION}", "subnetwork")
        MultinicRouter("router", args)

    declared = testing.run(program)
    for kind in ("Route", "Firewall"):
        for one in declared.all(kind):
            assert one["project"] == one["network"].split("/")[1], one.name
    in_service = "Account Address Autoscaler ForwardingRule HealthCheck InstanceGroupManager InstanceTemplate"
    for kind in [*in_service.split(), "RegionBackendService"]:
        assert {one["project"] for one in declared.all(kind)} == {"service"}, kind
    assert [one["project"] for one in declared.all("IAMMember")] == ["service"]


def test_an_output_that_names_no_project_is_refused_as_a_link(preview: bool) -> None:
    def program() -> None:
        args = router_args()
        args["networks"][1]["network"] = pulumi.Output.from_input("net")
        MultinicRouter("router", args)

    with pytest.raises(InputError, match="network: 'net' does not say the project; give the network's self_link"):
        testing.run(program, preview=preview)


def test_zones_are_looked_up_when_they_are_not_given(preview: bool) -> None:
    args = router_args()
    del args["zones"]
    declared = declare(args, preview=preview, zones=["us-central1-f", "us-central1-ai1a", "us-central1-b"])
    groups = declared.all("InstanceGroupManager")
    assert sorted(group["zone"] for group in groups) == ["us-central1-b", "us-central1-f"]
    assert declared.calls == [("gcp:compute/getZones:getZones", {"region": REGION, "status": "UP"})]
    assert any("us-central1-b, us-central1-f" in message for message in declared.messages)
    with pytest.raises(InputError, match="region: no ordinary zone of us-central1 is up"):
        declare(args, zones=["us-central1-ai1a"])


def two_routers(**second: Any) -> testing.Declared:
    def program() -> None:
        MultinicRouter("first", router_args())
        MultinicRouter("second", router_args(**second))

    return testing.run(program)


def test_two_routers_of_a_program_with_the_same_routes_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        two_routers()
    for index, other in ((0, 1), (1, 0)):
        assert (
            f"networks[{other}].cidrs[0]: router 'first' of this program has a route for 10.{other}.0.0/16 with "
            f"priority 900 in the network of networks[{index}] as well; give one of the two another routes.priority"
        ) in str(caught.value)
    assert len(two_routers(routes={"priority": 901}).all("Route")) == 4
    assert len(two_routers(routes={"tags": ["client"]}).all("Route")) == 4
    narrower = [network(0, cidrs=["10.0.0.0/17"]), network(1, cidrs=["10.1.0.0/17"])]
    assert len(two_routers(networks=narrower).all("Route")) == 4


def test_the_same_output_is_known_as_the_same_network() -> None:
    def program(count: int) -> None:
        made = gcp.compute.Network("net")
        for name in ("first", "second")[:count]:
            args = router_args()
            args["networks"][0]["network"] = made.self_link
            if count == 1:
                args["networks"][1]["network"] = made.self_link
            MultinicRouter(name, args)

    with pytest.raises(InputError, match=r"networks\[1\]\.network: is the same as networks\[0\]\.network"):
        testing.run(partial(program, 1))
    with pytest.raises(InputError, match=r"networks\[1\]\.cidrs\[0\]: router 'first' of this program has a route"):
        testing.run(partial(program, 2))


PLAIN_MOCKS = """
import sys, pulumi
class Mocks(pulumi.runtime.Mocks):
    def new_resource(self, args): return args.name, args.inputs
    def call(self, args): return {}, []
pulumi.runtime.set_mocks(Mocks())
from multinic import MultinicRouter
routers = [MultinicRouter(name, eval(sys.argv[1])) for name in ("one", "two")]
@pulumi.runtime.test
def test(router):
    return router.routes.apply(lambda routes: print(len(routes)))
for router in routers:
    test(router)
"""


def test_tests_that_only_set_pulumis_mocks_are_not_taken_for_one_program() -> None:
    command = [sys.executable, "-W", "ignore", "-c", PLAIN_MOCKS, repr(router_args())]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == ["2", "2"]


def test_two_generations_share_no_name() -> None:
    def program() -> None:
        MultinicRouter("router", router_args(generation="v1"))
        MultinicRouter("router-next", router_args(generation="v2", routes={"priority": 890}))

    declared = testing.run(program)
    names = [one.name for one in declared.resources if one.custom]
    assert len(names) == len(set(names))
    assert all(name.startswith(("v1-", "v2-")) for name in names if "account-id" not in name)


def test_every_component_registers_its_declared_outputs() -> None:
    declared = declare()
    for component in (one for one in declared.resources if not one.custom):
        kind = {"MultinicRouter": MultinicRouter, "RouterFleet": RouterFleet}.get(component.type.rsplit(":", 1)[-1])
        outputs = declared.component_outputs[component.urn]
        assert outputs
        if kind:
            assert outputs.keys() == {name for name in kind.__annotations__ if not name.startswith("_")}


def test_wrong_inputs_declare_nothing() -> None:
    mocks = testing.Mocks()
    with pytest.raises(InputError):
        testing.run(lambda: MultinicRouter("router", router_args(zones=[])), given=mocks)
    assert mocks.declared.resources == []

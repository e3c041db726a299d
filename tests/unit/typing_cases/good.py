"""Uses that type checkers must accept. Never run: `test_typing` hands it to them."""

import pulumi

from multinic import (
    Endpoints,
    InputError,
    MultinicRouter,
    MultinicRouterArgs,
    NetworkArgs,
    NextHop,
    NicType,
    RoutedNetworks,
    RouterFleet,
    SessionAffinity,
    testing,
)

IMAGE = "projects/debian-cloud/global/images/debian-12-bookworm-v20260921"


def links_may_be_outputs(network: pulumi.Output[str], subnetwork: pulumi.Output[str]) -> pulumi.Output[list[str]]:
    left: NetworkArgs = {"network": network, "subnetwork": subnetwork, "cidrs": ["10.1.0.0/16"]}
    right = NetworkArgs(network="n", subnetwork="s", cidrs=["10.2.0.0/16"], nic_type=NicType.GVNIC, mtu=8896)
    router = MultinicRouter(
        "router",
        {
            "region": "us-central1",
            "networks": [left, right],
            "machine": {"image": IMAGE, "shielded": {"secure_boot": False}},
            "replicas": {"min": 1, "max": 4},
            "next_hop": {"session_affinity": SessionAffinity.CLIENT_IP},
            "access": {"service_account": network},
        },
        pulumi.ResourceOptions(protect=True),
    )
    zones: list[str] = list(router.zones)
    assert zones
    return router.addresses


def args_can_be_built_apart(args: MultinicRouterArgs) -> MultinicRouter:
    args["routes"] = {"priority": 901}
    return MultinicRouter("router", args)


def parts_can_be_used_alone(email: pulumi.Output[str], group: pulumi.Output[str]) -> None:
    networks = RoutedNetworks("n", {"region": "us-central1", "networks": [{"name": "left", "cidr": "10.0.0.0/24"}]})
    joined: list[NetworkArgs] = networks.router_networks
    RouterFleet(
        "fleet",
        {"region": "us-central1", "networks": joined, "machine": {"image": IMAGE}, "service_account": email},
    )
    NextHop(
        "hop",
        {
            "region": "us-central1",
            "network": "n",
            "subnetwork": "s",
            "groups": {"us-central1-a": group},
            "health_check": "c",
        },
    )
    side = joined[0]
    Endpoints(
        "ends",
        {
            "zones": ["us-central1-a"],
            "image": IMAGE,
            "clients": {"network": side["network"], "subnetwork": side["subnetwork"]},
            "servers": {"network": side["network"], "subnetwork": side["subnetwork"], "count": 2},
            "cidrs": ["10.0.0.0/24"],
        },
    )


def tests_of_programs() -> None:
    declared = testing.run(lambda: None, preview=True)
    assert declared.one("compute.Route", "left")["priority"] == 900
    try:
        testing.run(lambda: None)
    except InputError as wrong:
        for problem in wrong.problems:
            print(problem.path, problem.message)

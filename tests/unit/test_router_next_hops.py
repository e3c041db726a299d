"""The load balancers that MultinicRouter declares, one in each network, all alike."""

from __future__ import annotations

from tests.unit.declaring import declare
from tests.unit.shapes import REGION, ZONES, network, router_args


def test_every_zone_is_in_every_load_balancer(preview: bool) -> None:
    declared = declare(router_args(3), preview=preview)
    services = declared.all("RegionBackendService")
    assert len(services) == 3
    for service in services:
        assert len(service["backends"]) == 3
        assert {backend["balancingMode"] for backend in service["backends"]} == {"CONNECTION"}
        for backend in service["backends"]:
            assert not [key for key in backend if key.startswith("max") or key == "capacityScaler"]
        assert service["loadBalancingScheme"] == "INTERNAL"
        assert service["protocol"] == "TCP"


def test_hashing_is_alike_in_all_networks() -> None:
    declared = declare(router_args(4, next_hop={"session_affinity": "CLIENT_IP", "tracking_mode": "PER_SESSION"}))
    same = [
        (s["sessionAffinity"], s["connectionTrackingPolicy"], s["backends"]) for s in declared.all("BackendService")
    ]
    same += [
        (s["sessionAffinity"], s["connectionTrackingPolicy"], s["backends"])
        for s in declared.all("RegionBackendService")
    ]
    assert len(same) == 4
    assert all(one == same[0] for one in same)
    assert same[0][1]["trackingMode"] == "PER_SESSION"


def test_forwarding_rules_can_be_next_hops() -> None:
    declared = declare()
    for index in (0, 1):
        rule = declared.one("ForwardingRule", f"nic{index}")
        assert rule["loadBalancingScheme"] == "INTERNAL"
        assert rule["ipProtocol"] == "TCP"
        assert rule["allPorts"] is True
        assert rule["allowGlobalAccess"] is True
        assert rule["network"] == network(index)["network"]
        assert rule["subnetwork"] == network(index)["subnetwork"]
        assert rule.delete_before_replace
        address = declared.one("Address", f"nic{index}")
        assert address["subnetwork"] == network(index)["subnetwork"]
        assert address.urn in rule.depends_on


def test_zonal_affinity_and_the_drop_switch_are_alike_in_all_networks() -> None:
    policy = {
        "zonal_affinity": "ZONAL_AFFINITY_SPILL_CROSS_ZONE",
        "spillover_ratio": 0.5,
        "failover_zones": [ZONES[0]],
        "drop_if_unhealthy": True,
    }
    for service in declare(router_args(3, next_hop=policy)).all("RegionBackendService"):
        assert service["networkPassThroughLbTrafficPolicy"] == {
            "zonalAffinity": {"spillover": "ZONAL_AFFINITY_SPILL_CROSS_ZONE", "spilloverRatio": 0.5}
        }
        assert service["failoverPolicy"] == {"failoverRatio": 0, "dropTrafficIfUnhealthy": True}
    for service in declare().all("RegionBackendService"):
        assert "networkPassThroughLbTrafficPolicy" not in service.inputs


def test_existing_address_is_used() -> None:
    args = router_args()
    args["networks"][1]["address"] = "10.1.0.9"
    declared = declare(args)
    assert declared.one("ForwardingRule", "nic1")["ipAddress"] == "10.1.0.9"
    assert [one.name for one in declared.all("Address")] == ["router-nic0-address"]


def test_failover_zones_serve_second() -> None:
    declared = declare(router_args(next_hop={"failover_zones": [ZONES[2]], "failover_ratio": 0.3}))
    for service in declared.all("RegionBackendService"):
        assert [backend["failover"] for backend in service["backends"]] == [False, False, True]
        assert service["failoverPolicy"] == {"failoverRatio": 0.3}


def test_regional_traffic_check() -> None:
    declared = declare(router_args(health={"regional": True}))
    assert declared.one("RegionHealthCheck", "traffic")["region"] == REGION
    assert [one.name for one in declared.all("HealthCheck")] == ["router-fleet-heal"]

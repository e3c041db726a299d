"""The objects as the packets see them."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest

from multinic.lab.cloud.errors import ApiError
from multinic.lab.cloud.packet import trace
from multinic.lab.cloud.plans import network_plan
from multinic.lab.substrate import NetworkPlan
from tests.lab.cloud.world import OpenWorld, Run, World

NETWORK = "projects/lab/global/networks/{}"


def plan(w: World, name: str = "a") -> NetworkPlan:
    return network_plan(w.cloud.store, NETWORK.format(name), w.cloud.fabric.situation())


async def fleet(w: World, **group: Any) -> str:
    await w.networks()
    await w.checks()
    await w.template("t1")
    key = await w.group(**group)
    await w.balancers([key])
    await w.stable(key)
    await w.serving("fr-a")
    await w.serving("fr-b")
    return key


async def host(w: World, name: str, net: str = "a", **more: Any) -> str:
    body = {
        "name": name,
        "machineType": "zones/us-central1-a/machineTypes/e2-small",
        "disks": [
            {
                "boot": True,
                "autoDelete": True,
                "initializeParams": {"sourceImage": "projects/debian-cloud/global/images/family/debian-12"},
            }
        ],
        "networkInterfaces": [{"subnetwork": f"regions/us-central1/subnetworks/sub-{net}"}],
    } | more
    await w.do("instances.insert", body, zone="us-central1-a")
    return f"projects/lab/zones/us-central1-a/instances/{name}"


async def route(w: World, name: str, dest: str, net: str = "a", **more: Any) -> None:
    body = {
        "name": name,
        "network": f"global/networks/{net}",
        "destRange": dest,
        "priority": 900,
        "nextHopIlb": f"regions/us-central1/forwardingRules/fr-{net}",
    } | more
    await w.do("routes.insert", body)


async def allow(w: World, name: str, net: str = "a", **more: Any) -> None:
    body = {"name": name, "network": f"global/networks/{net}", "allowed": [{"IPProtocol": "all"}]} | more
    await w.do("firewalls.insert", {name: value for name, value in body.items() if value is not None})


def test_a_network_in_full(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await fleet(w)
            await route(w, "to-b", "10.1.0.0/16")
            (vm,) = w.members(key)
            made = plan(w)
            rule = w.cloud.store.require("projects/lab/regions/us-central1/forwardingRules/fr-a")
            assert made.mtu == 1460
            assert made.subnetworks == {
                "projects/lab/regions/us-central1/subnetworks/sub-a": IPv4Network("10.0.0.0/24")
            }
            (balancer,) = made.balancers
            assert (balancer.address, balancer.affinity) == (IPv4Address(rule["IPAddress"]), "CLIENT_IP_PORT_PROTO")
            assert [(b.machine, b.takes_new, b.keeps_existing) for b in balancer.backends] == [(vm, True, True)]
            default, ours = sorted(made.routes, key=lambda r: r.priority, reverse=True)
            assert (default.destination, default.balancer) == (IPv4Network("0.0.0.0/0"), None)
            assert (ours.destination, ours.balancer, ours.sources) == (
                IPv4Network("10.1.0.0/16"),
                balancer.address,
                None,
            )
            await w.cloud.fabric.settled()
            assert w.substrate.plans[NETWORK.format("a")] == made

    run(check())


def test_tags_decide_who_uses_a_route(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            await fleet(w)
            client = await host(w, "client", tags={"items": ["client"]})
            await host(w, "other")
            await route(w, "tagged", "10.1.0.0/16", tags=["client"])
            (tagged,) = [r for r in plan(w).routes if r.priority == 900]
            assert tagged.sources == frozenset({client})
            fingerprint = w.cloud.store.require(client)["tags"]["fingerprint"]
            await w.do("instances.setTags", {"fingerprint": fingerprint}, zone="us-central1-a", instance="client")
            (tagged,) = [r for r in plan(w).routes if r.priority == 900]
            assert tagged.sources == frozenset()

    run(check())


def test_firewall_rules_are_resolved_to_machines(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await fleet(w)
            (vm,) = w.members(key)
            client = await host(w, "client", tags={"items": ["client"]})
            await allow(w, "probes", sourceRanges=["35.191.0.0/16"], targetTags=["router"])
            await allow(
                w, "clients", sourceTags=["client"], allowed=[{"IPProtocol": "tcp", "ports": ["80", "443-445"]}]
            )
            await allow(w, "off", disabled=True)
            await allow(w, "out", direction="EGRESS", priority=5, allowed=None, denied=[{"IPProtocol": "icmp"}])
            rules = {rule.name: rule for rule in plan(w).firewall}
            assert set(rules) == {"probes", "clients", "out"}
            assert rules["probes"].targets == frozenset({vm})
            assert rules["probes"].ranges == (IPv4Network("35.191.0.0/16"),)
            assert rules["clients"].targets is None
            assert rules["clients"].sources == frozenset({client})
            assert rules["clients"].ranges == ()
            assert rules["clients"].protocols == (("tcp", ("80", "443-445")),)
            out = rules["out"]
            assert (out.allow, out.ingress, out.priority, out.protocols) == (False, False, 5, (("icmp", ()),))

    run(check())


def test_a_route_whose_rule_is_l3_default_drops(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            await w.networks()
            await w.checks()
            await w.template("t1")
            key = await w.group()
            await w.balancers([key], protocol="UNSPECIFIED")
            body = {
                "name": "l3",
                "loadBalancingScheme": "INTERNAL",
                "backendService": "regions/us-central1/backendServices/bs-a",
                "subnetwork": "regions/us-central1/subnetworks/sub-a",
                "allPorts": True,
                "IPProtocol": "L3_DEFAULT",
            }
            await w.do("forwardingRules.insert", body, region="us-central1")
            await route(w, "l3", "10.1.0.0/16", nextHopIlb="regions/us-central1/forwardingRules/l3")
            (made,) = [r for r in plan(w).routes if r.priority == 900]
            assert made.balancer is None

    run(check())


def test_forwarded_addresses_reach_the_guests_metadata(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await fleet(w)
            (vm,) = w.members(key)
            tree = w.metadata(vm)
            rules = [w.cloud.store.require(f"projects/lab/regions/us-central1/forwardingRules/fr-{n}") for n in "ab"]
            nics = tree["instance"]["networkInterfaces"]
            assert [nic["forwardedIps"] for nic in nics] == [[rule["IPAddress"]] for rule in rules]
            first = nics[0]
            octets = [int(part) for part in first["ip"].split(".")]
            assert first["mac"] == "42:01:" + ":".join(f"{octet:02x}" for octet in octets)
            assert (first["gateway"], first["subnetmask"], first["mtu"]) == ("10.0.0.1", "255.255.255.0", 1460)
            assert first["network"].endswith("/networks/a")
            assert tree["instance"]["name"] == vm.rpartition("/")[2]
            assert tree["instance"]["id"] == int(w.cloud.store.require(vm)["id"])
            assert tree["instance"]["zone"].endswith("/zones/us-central1-a")
            attributes = tree["instance"]["attributes"]
            assert attributes["startup-script"] == "true"
            assert attributes["created-by"].endswith("/instanceGroupManagers/fleet")
            # A rule that goes is told to those who wait.
            w.substrate.told.clear()
            await w.do("forwardingRules.delete", region="us-central1", forwardingRule="fr-a")
            await w.until(lambda: vm in w.substrate.told, "the guest is woken")
            assert w.metadata(vm)["instance"]["networkInterfaces"][0]["forwardedIps"] == []
            assert w.cloud.metadata("projects/lab/zones/us-central1-a/instances/nobody") is None

    run(check())


def test_metadata_changes_live(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            await w.networks()
            vm = await host(w, "client", metadata={"items": [{"key": "a", "value": "1"}]})
            stale = w.cloud.store.require(vm)["metadata"]["fingerprint"]
            where = {"zone": "us-central1-a", "instance": "client"}
            body = {"fingerprint": stale, "items": [{"key": "multinic-drain", "value": "true"}]}
            await w.do("instances.setMetadata", body, **where)
            assert vm in w.substrate.told
            assert w.metadata(vm)["instance"]["attributes"] == {"multinic-drain": "true"}
            with pytest.raises(ApiError, match="fingerprint") as refused:
                await w.do("instances.setMetadata", {"fingerprint": stale, "items": []}, **where)
            assert refused.value.code == 412
            with pytest.raises(ApiError):
                await w.do("instances.setMetadata", {"items": []}, **where)

    run(check())


def test_the_way_of_a_packet(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await fleet(w)
            (vm,) = w.members(key)
            client, server = await host(w, "client"), await host(w, "server", net="b")
            address = {k: w.cloud.store.require(k)["networkInterfaces"][0]["networkIP"] for k in (client, server)}

            def way(source: str, destination: str) -> dict[str, Any]:
                return trace(w.cloud, address[source], address[destination], "tcp", "80")

            # The default route leads to the internet, which the lab has not.
            assert not way(client, server)["delivered"]
            await route(w, "to-b", "10.1.0.0/16")
            lost = way(client, server)
            assert (lost["delivered"], "no firewall rule" in lost["reason"]) == (False, True)
            await allow(w, "from-a", net="b", sourceRanges=["10.0.0.0/8"])
            found = way(client, server)
            assert found["delivered"], found
            first, second = found["steps"]
            assert first["route"] == "projects/lab/global/routes/to-b"
            (candidate,) = first["candidates"]
            assert (candidate["machine"], candidate["healthy"], len(candidate["nics"])) == (vm, True, 2)
            assert second["to"] == server
            assert w.cloud.store.require(client)["status"] == "RUNNING"
            with pytest.raises(ApiError):
                trace(w.cloud, "10.0.0.999", "10.0.0.1", "tcp", None)
            with pytest.raises(ApiError):
                trace(w.cloud, "192.0.2.1", "10.0.0.1", "tcp", None)

    run(check())


def test_health_as_a_client_sees_it(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            key = await fleet(w)
            (vm,) = w.members(key)
            body = {"group": key.replace("Managers", "s")}

            async def state() -> str:
                where = {"region": "us-central1", "backendService": "bs-a"}
                (row,) = (await w.do("regionBackendServices.getHealth", dict(body), **where))["healthStatus"]
                assert row["instance"].endswith(vm)
                assert row["forwardingRule"].endswith("/fr-a")
                health: str = row["healthState"]
                return health

            assert await state() == "HEALTHY"
            w.substrate.failing[9001].add(vm)
            rule = "projects/lab/regions/us-central1/forwardingRules/fr-a"

            def ill() -> bool:
                found = w.cloud.health.traffic_state(rule, vm)
                assert found is not None
                return not found.healthy

            await w.until(ill, "the traffic check fails")
            assert await state() == "UNHEALTHY"
            with pytest.raises(ApiError, match="not a backend"):
                await w.group("elsewhere", size=0)
                other = {"group": "zones/us-central1-a/instanceGroups/elsewhere"}
                await w.do("regionBackendServices.getHealth", other, region="us-central1", backendService="bs-a")

    run(check())


def test_global_access_decides_about_clients_of_other_regions(world: OpenWorld, run: Run) -> None:
    async def check() -> None:
        async with world() as w:
            await fleet(w)
            subnet = {"name": "far", "network": "global/networks/a", "ipCidrRange": "10.9.0.0/24"}
            await w.do("subnetworks.insert", subnet, region="us-east1")
            disks = [
                {
                    "boot": True,
                    "initializeParams": {"sourceImage": "projects/debian-cloud/global/images/family/debian-12"},
                }
            ]
            body = {"name": "far", "machineType": "zones/us-east1-b/machineTypes/n2-highcpu-4", "disks": disks}
            body["networkInterfaces"] = [{"subnetwork": "regions/us-east1/subnetworks/far"}]
            await w.do("instances.insert", body, zone="us-east1-b")
            await route(w, "r", "10.1.0.0/24")
            far = "projects/lab/zones/us-east1-b/instances/far"
            own = w.cloud.store.require(far)["networkInterfaces"][0]["networkIP"]

            def clients() -> frozenset[str] | None:
                return w.substrate.plans["projects/lab/global/networks/a"].balancers[0].clients

            def dropped() -> bool:
                served = clients()
                return served is not None and far not in served

            await w.until(dropped, "dropped")
            said = trace(w.cloud, own, "10.1.0.2", "tcp", "80")
            assert "no global access" in said["reason"]
            where = {"region": "us-central1", "forwardingRule": "fr-a"}
            await w.do("forwardingRules.patch", {"allowGlobalAccess": True}, **where)
            await w.until(lambda: clients() is None, "all are served")
            assert "no global access" not in trace(w.cloud, own, "10.1.0.2", "tcp", "80")["reason"]

    run(check())

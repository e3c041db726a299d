"""Google's own client library, unchanged, against the front door on a real socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import pytest
from google.api_core import exceptions
from google.api_core.extended_operation import ExtendedOperation
from google.auth.exceptions import RefreshError
from google.cloud import compute_v1 as gce
from google.oauth2.credentials import Credentials

PROJECT, REGION, ZONE = "lab", "us-central1", "us-central1-a"
PATIENCE = 60
Client = TypeVar("Client")


class Clients(Protocol):
    """Makes clients: ``client(gce.NetworksClient)``."""

    def __call__(self, kind: Callable[..., Client], /) -> Client: ...


@pytest.fixture
def client(endpoint: str, token: str) -> Iterator[Clients]:
    made: list[Any] = []

    def make(kind: Callable[..., Client]) -> Client:
        one = kind(client_options={"api_endpoint": endpoint}, credentials=Credentials(token))
        made.append(one)
        return one

    yield make
    for one in made:
        one.transport.close()


def done(operation: ExtendedOperation) -> None:
    operation.result(timeout=PATIENCE)
    assert operation.done()


def test_a_fleet_from_nothing_to_nothing(client: Clients) -> None:
    networks, subnetworks = client(gce.NetworksClient), client(gce.SubnetworksClient)
    firewalls, routes = client(gce.FirewallsClient), client(gce.RoutesClient)
    checks, region_checks = client(gce.HealthChecksClient), client(gce.RegionHealthChecksClient)
    templates, groups = client(gce.InstanceTemplatesClient), client(gce.InstanceGroupManagersClient)
    autoscalers, services = client(gce.AutoscalersClient), client(gce.RegionBackendServicesClient)
    rules, addresses = client(gce.ForwardingRulesClient), client(gce.AddressesClient)
    instances = client(gce.InstancesClient)
    here: dict[str, Any] = {"project": PROJECT}
    for name, cidr in (("a", "10.0.0.0/24"), ("b", "10.1.0.0/24")):
        network = gce.Network(name=name, auto_create_subnetworks=False, mtu=8896)
        done(networks.insert(**here, network_resource=network))
        got = networks.get(**here, network=name)
        assert (got.mtu, got.auto_create_subnetworks) == (8896, False)
        subnet = gce.Subnetwork(name=f"sub-{name}", network=got.self_link, ip_cidr_range=cidr)
        done(subnetworks.insert(**here, region=REGION, subnetwork_resource=subnet))
        allowed = [gce.Allowed(I_p_protocol="tcp", ports=["9000-9001"])]
        rule = gce.Firewall(name=f"fw-{name}", network=got.self_link, allowed=allowed, source_ranges=["35.191.0.0/16"])
        done(firewalls.insert(**here, firewall_resource=rule))
    assert subnetworks.get(**here, region=REGION, subnetwork="sub-a").gateway_address == "10.0.0.1"
    http = gce.HTTPHealthCheck(port=9000, request_path="/")
    done(
        checks.insert(**here, health_check_resource=gce.HealthCheck(name="heal", type_="HTTP", http_health_check=http))
    )
    traffic = gce.HealthCheck(name="traffic", type_="HTTP", http_health_check=http, check_interval_sec=1, timeout_sec=1)
    done(region_checks.insert(**here, region=REGION, health_check_resource=traffic))
    image = "projects/debian-cloud/global/images/debian-12-bookworm-v20260801"
    disk = gce.AttachedDisk(boot=True, auto_delete=True)
    disk.initialize_params = gce.AttachedDiskInitializeParams(source_image=image, disk_size_gb=10)
    nics = [
        gce.NetworkInterface(subnetwork=subnetworks.get(**here, region=REGION, subnetwork=f"sub-{n}").self_link)
        for n in "ab"
    ]
    properties = gce.InstanceProperties(
        machine_type="n2-highcpu-4", can_ip_forward=True, disks=[disk], network_interfaces=nics
    )
    template = gce.InstanceTemplate(name="t1", properties=properties)
    done(templates.insert(**here, instance_template_resource=template))
    link = templates.get(**here, instance_template="t1").self_link
    group = gce.InstanceGroupManager(name="fleet", base_instance_name="r", instance_template=link, target_size=0)
    done(groups.insert(**here, zone=ZONE, instance_group_manager_resource=group))
    policy = gce.AutoscalingPolicy(min_num_replicas=2, max_num_replicas=3)
    scaler = gce.Autoscaler(
        name="as",
        target=groups.get(**here, zone=ZONE, instance_group_manager="fleet").self_link,
        autoscaling_policy=policy,
    )
    done(autoscalers.insert(**here, zone=ZONE, autoscaler_resource=scaler))
    assert groups.get(**here, zone=ZONE, instance_group_manager="fleet").target_size == 2
    managed = list(groups.list_managed_instances(project=PROJECT, zone=ZONE, instance_group_manager="fleet"))
    assert len(managed) == 2
    backend = gce.Backend(
        group=groups.get(**here, zone=ZONE, instance_group_manager="fleet").instance_group, balancing_mode="CONNECTION"
    )
    service = gce.BackendService(
        name="bs",
        load_balancing_scheme="INTERNAL",
        protocol="TCP",
        backends=[backend],
        health_checks=[region_checks.get(**here, region=REGION, health_check="traffic").self_link],
        network=networks.get(**here, network="a").self_link,
    )
    done(services.insert(**here, region=REGION, backend_service_resource=service))
    address = gce.Address(name="ilb", address_type="INTERNAL", subnetwork=nics[0].subnetwork)
    done(addresses.insert(**here, region=REGION, address_resource=address))
    reserved = addresses.get(**here, region=REGION, address="ilb")
    assert reserved.status == "RESERVED"
    rule = gce.ForwardingRule(
        name="fr",
        load_balancing_scheme="INTERNAL",
        I_p_protocol="TCP",
        all_ports=True,
        I_p_address=reserved.address,
        backend_service=services.get(**here, region=REGION, backend_service="bs").self_link,
        subnetwork=nics[0].subnetwork,
    )
    done(rules.insert(**here, region=REGION, forwarding_rule_resource=rule))
    assert addresses.get(**here, region=REGION, address="ilb").status == "IN_USE"
    route = gce.Route(
        name="to-b",
        network=networks.get(**here, network="a").self_link,
        dest_range="10.1.0.0/16",
        priority=900,
        next_hop_ilb=rules.get(**here, region=REGION, forwarding_rule="fr").self_link,
    )
    done(routes.insert(**here, route_resource=route))
    group_ref = gce.ResourceGroupReference(group=backend.group)
    health = services.get_health(
        **here, region=REGION, backend_service="bs", resource_group_reference_resource=group_ref
    )
    assert health.kind == "compute#backendServiceGroupHealth"

    # In use, in Google's words.
    with pytest.raises(exceptions.BadRequest, match="is already being used by"):
        templates.delete(**here, instance_template="t1")
    with pytest.raises(exceptions.NotFound):
        networks.get(**here, network="nobody")
    with pytest.raises(exceptions.Conflict):
        networks.insert(**here, network_resource=gce.Network(name="a", auto_create_subnetworks=False))

    done(routes.delete(**here, route="to-b"))
    done(rules.delete(**here, region=REGION, forwarding_rule="fr"))
    done(services.delete(**here, region=REGION, backend_service="bs"))
    done(addresses.delete(**here, region=REGION, address="ilb"))
    done(autoscalers.delete(**here, zone=ZONE, autoscaler="as"))
    done(groups.delete(**here, zone=ZONE, instance_group_manager="fleet"))
    done(templates.delete(**here, instance_template="t1"))
    assert list(instances.list(project=PROJECT, zone=ZONE)) == []
    for name in "ab":
        done(firewalls.delete(**here, firewall=f"fw-{name}"))
        done(subnetworks.delete(**here, region=REGION, subnetwork=f"sub-{name}"))
        done(networks.delete(**here, network=name))


def test_an_instance_by_hand(client: Clients) -> None:
    networks, instances = client(gce.NetworksClient), client(gce.InstancesClient)
    done(networks.insert(project=PROJECT, network_resource=gce.Network(name="auto", auto_create_subnetworks=True)))
    disk = gce.AttachedDisk(boot=True, auto_delete=True)
    disk.initialize_params = gce.AttachedDiskInitializeParams(
        source_image="projects/debian-cloud/global/images/family/debian-12"
    )
    body = gce.Instance(
        name="vm",
        machine_type=f"zones/{ZONE}/machineTypes/e2-small",
        disks=[disk],
        network_interfaces=[gce.NetworkInterface(network="global/networks/auto")],
        labels={"a": "b"},
    )
    where: dict[str, Any] = {"project": PROJECT, "zone": ZONE}
    done(instances.insert(**where, instance_resource=body))
    got = instances.get(**where, instance="vm")
    assert got.status == "RUNNING"
    assert got.network_interfaces[0].network_i_p == "10.128.0.2"
    metadata = gce.Metadata(fingerprint=got.metadata.fingerprint, items=[gce.Items(key="k", value="v")])
    done(instances.set_metadata(**where, instance="vm", metadata_resource=metadata))
    tags = gce.Tags(fingerprint=got.tags.fingerprint, items=["client"])
    done(instances.set_tags(**where, instance="vm", tags_resource=tags))
    labels = gce.InstancesSetLabelsRequest(label_fingerprint=got.label_fingerprint, labels={"a": "c"})
    done(instances.set_labels(**where, instance="vm", instances_set_labels_request_resource=labels))
    changed = instances.get(**where, instance="vm")
    assert {item.key: item.value for item in changed.metadata.items} == {"k": "v"}
    assert list(changed.tags.items) == ["client"]
    assert dict(changed.labels) == {"a": "c"}
    with pytest.raises(exceptions.PreconditionFailed):
        instances.set_tags(**where, instance="vm", tags_resource=tags)
    done(instances.stop(**where, instance="vm"))
    assert instances.get(**where, instance="vm").status == "TERMINATED"
    done(instances.start(**where, instance="vm"))
    done(instances.reset(**where, instance="vm"))
    assert instances.get_serial_port_output(**where, instance="vm").next_ == 0
    found = dict(instances.aggregated_list(project=PROJECT))
    assert [i.name for i in found[f"zones/{ZONE}"].instances] == ["vm"]
    assert [i.name for i in instances.list(request={**where, "filter": "labels.a = c AND status = RUNNING"})] == ["vm"]
    assert list(instances.list(request={**where, "filter": "labels.a = b"})) == []
    done(instances.delete(**where, instance="vm"))
    assert list(instances.list(**where)) == []


def test_lists_come_in_pages(client: Clients) -> None:
    networks = client(gce.NetworksClient)
    names = [f"net-{index}" for index in range(7)]
    for name in names:
        done(networks.insert(project=PROJECT, network_resource=gce.Network(name=name, auto_create_subnetworks=False)))
    pager = networks.list(request={"project": PROJECT, "max_results": 3})
    assert [len(page.items) for page in pager.pages] == [3, 3, 1]
    assert [one.name for one in networks.list(request={"project": PROJECT, "max_results": 2})] == names


def test_what_google_cloud_has_by_itself(client: Clients) -> None:
    zones = [zone.name for zone in client(gce.ZonesClient).list(project=PROJECT)]
    assert {"us-central1-a", "us-central1-ai1a", "europe-west1-d"} <= set(zones)
    assert client(gce.RegionsClient).get(project=PROJECT, region=REGION).status == "UP"
    images = client(gce.ImagesClient)
    newest = images.get_from_family(project="debian-cloud", family="debian-12")
    assert images.get(project="debian-cloud", image=newest.name).self_link == newest.self_link
    assert client(gce.MachineTypesClient).get(project=PROJECT, zone=ZONE, machine_type="n2-highcpu-4").guest_cpus == 4
    assert client(gce.ProjectsClient).get(project=PROJECT).name == PROJECT
    with pytest.raises(exceptions.NotFound):
        client(gce.NetworksClient).list(project="another").items  # noqa: B018 - the request is the point


def test_the_token_is_needed(endpoint: str) -> None:
    stranger = gce.NetworksClient(client_options={"api_endpoint": endpoint}, credentials=Credentials("guessed"))
    # Refused with 401, upon which the library tries to get a new token.
    with pytest.raises(RefreshError):
        stranger.get(project=PROJECT, network="a")
    stranger.transport.close()


def test_what_is_not_served_says_so(client: Clients) -> None:
    with pytest.raises(exceptions.GoogleAPICallError, match=r"does not serve compute\.snapshots\.list"):
        list(client(gce.SnapshotsClient).list(project=PROJECT))

"""Each resource type of the table with the real engine against the lab's front door: made, unchanged, read, deleted."""

from __future__ import annotations

import pytest

from multinic.lab.pulumi.types import TABLE
from tests.engine.conftest import Project, RunningLab

pytestmark = [pytest.mark.engine, pytest.mark.slow]

PROGRAM = """
    IMAGE = "projects/debian-cloud/global/images/debian-12-bookworm-v20260921"
    gcp.projects.Service("service", service="compute.googleapis.com")
    account = gcp.serviceaccount.Account("account", account_id="routers", display_name="Routers")
    gcp.projects.IAMMember("member", project="lab", role="roles/logging.logWriter", member=account.member)
    host = c.SharedVPCHostProject("host", project="lab")
    c.SharedVPCServiceProject("guest", host_project=host.project, service_project="other")
    net = c.Network("net", auto_create_subnetworks=False, mtu=8896, routing_mode="GLOBAL")
    sub = c.Subnetwork("sub", network=net.id, ip_cidr_range="10.3.0.0/24", private_ip_google_access=True,
        log_config={"aggregation_interval": "INTERVAL_30_SEC", "metadata": "INCLUDE_ALL_METADATA"})
    c.Firewall("rule", network=net.id, direction="INGRESS", source_ranges=["35.191.0.0/16", "130.211.0.0/22"],
        allows=[{"protocol": "tcp", "ports": ["9000", "9001"]}], target_service_accounts=[account.email],
        log_config={"metadata": "EXCLUDE_ALL_METADATA"})
    http = {"port": 9000, "request_path": "/status.json"}
    heal = c.HealthCheck("heal", http_health_check=http, log_config={"enable": True})
    traffic = c.RegionHealthCheck("traffic", http_health_check=http)
    c.ResourcePolicy("spread", group_placement_policy={"availability_domain_count": 2})
    router = c.Router("router", network=net.id)
    c.RouterNat("nat", router=router.name, nat_ip_allocate_option="AUTO_ONLY",
        source_subnetwork_ip_ranges_to_nat="ALL_SUBNETWORKS_ALL_IP_RANGES")
    machine = dict(machine_type="n2-highcpu-4", can_ip_forward=True, disks=[{"source_image": IMAGE, "boot": True}],
        network_interfaces=[{"subnetwork": sub.id}], labels={"role": "router"}, tags=["router"],
        metadata={"a": "b"}, metadata_startup_script="#!/bin/sh",
        shielded_instance_config={"enable_secure_boot": True},
        service_account={"email": account.email, "scopes": ["cloud-platform"]},
        scheduling={"provisioning_model": "SPOT", "preemptible": True, "automatic_restart": False,
                    "on_host_maintenance": "TERMINATE", "instance_termination_action": "STOP"})
    template = c.InstanceTemplate("template", **machine)
    regional = c.RegionInstanceTemplate("regional", region="us-central1", **machine)
    update = {"type": "PROACTIVE", "minimal_action": "REPLACE", "max_surge_fixed": 1, "max_unavailable_fixed": 0,
              "min_ready_sec": 0}
    group = c.InstanceGroupManager("group", base_instance_name="r", update_policy=update,
        named_ports=[{"name": "traffic", "port": 9001}], versions=[{"instance_template": template.self_link_unique}],
        auto_healing_policies={"health_check": heal.id, "initial_delay_sec": 60},
        instance_lifecycle_policy={"force_update_on_repair": "YES"})
    policy = {"min_replicas": 1, "max_replicas": 2, "cooldown_period": 45, "cpu_utilization": {"target": 0.2},
              "scale_in_control": {"max_scaled_in_replicas": {"fixed": 1}, "time_window_sec": 600},
              "scaling_schedules": [{"name": "day", "schedule": "0 8 * * MON-FRI", "duration_sec": 36000,
                                     "min_required_replicas": 1}]}
    c.Autoscaler("autoscaler", target=group.id, autoscaling_policy=policy)
    address = c.Address("address", subnetwork=sub.id, address_type="INTERNAL", labels={"a": "b"})
    service = c.RegionBackendService("backend", network=net.id, protocol="TCP", load_balancing_scheme="INTERNAL",
        health_checks=traffic.id, session_affinity="CLIENT_IP_PORT_PROTO", connection_draining_timeout_sec=0,
        backends=[{"group": group.instance_group, "balancing_mode": "CONNECTION"}],
        connection_tracking_policy={"connection_persistence_on_unhealthy_backends": "NEVER_PERSIST"})
    rule = c.ForwardingRule("hop", load_balancing_scheme="INTERNAL", backend_service=service.self_link, all_ports=True,
        allow_global_access=True, ip_protocol="TCP", ip_address=address.address, network=net.id, subnetwork=sub.id,
        labels={"a": "b"})
    c.Route("route", network=net.id, dest_range="10.9.0.0/16", priority=900, next_hop_ilb=rule.self_link)
    c.Instance("client", machine_type="n2-standard-2", boot_disk={"initialize_params": {"image": IMAGE, "size": 10}},
        network_interfaces=[{"subnetwork": sub.self_link}], metadata={"a": "b"}, tags=["client"], labels={"x": "y"})
    other = c.RegionInstanceGroupManager("regional-group", region="us-central1", base_instance_name="s",
        distribution_policy_zones=["us-central1-a", "us-central1-b"], update_policy=dict(update, max_surge_fixed=2),
        versions=[{"instance_template": template.self_link_unique}])
    c.RegionAutoscaler("regional-autoscaler", region="us-central1", target=other.id,
        autoscaling_policy={"min_replicas": 1, "max_replicas": 2, "cpu_utilization": {"target": 0.2}})
"""


def test_every_type_is_made_stays_the_same_and_is_deleted(project: Project, lab: RunningLab) -> None:
    project.write(PROGRAM)
    deployment = project.up(lab)
    try:
        assert set(TABLE) <= {made.type for made in deployment.resources}
        assert deployment.refresh() == {}
        assert deployment.preview() == {}
    finally:
        deployment.destroy()

"""The instance template: what every router VM of a fleet is built from."""

import pulumi
import pulumi_gcp as gcp

from multinic import guest_files, images
from multinic.settings import FleetSettings, MachineSettings


def declare(
    name: str, fleet: FleetSettings, parent: pulumi.Resource, *, keep_old: bool
) -> gcp.compute.InstanceTemplate:
    """Declares the template, auto-named so that a new one exists before the old one is deleted.

    Args:
        name: Logical name.
        fleet: The fleet's settings.
        parent: The component it belongs to.
        keep_old: Leave replaced templates in place, for groups that go on using them.
    """
    machine = fleet.machine
    confidential: gcp.compute.InstanceTemplateConfidentialInstanceConfigArgsDict = {
        "enable_confidential_compute": True,
        "confidential_instance_type": "SEV",
    }
    tier_1: gcp.compute.InstanceTemplateNetworkPerformanceConfigArgsDict = {"total_egress_bandwidth_tier": "TIER_1"}
    return gcp.compute.InstanceTemplate(
        name,
        project=fleet.project or None,
        machine_type=machine.type,
        can_ip_forward=True,  # without it Google Cloud drops every forwarded packet
        disks=[boot_disk(machine, fleet, parent)],
        network_interfaces=[
            {
                "network": network.network,
                "subnetwork": network.subnetwork,
                "nic_type": network.nic_type.value,
                "queue_count": network.queue_count,
                "stack_type": "IPV4_ONLY",
            }
            for network in fleet.networks
        ],
        metadata=guest_files.render(fleet),
        labels=dict(fleet.labels) or None,
        tags=list(machine.tags) or None,
        service_account={"email": fleet.service_account, "scopes": list(fleet.scopes)},
        scheduling=scheduling(machine),
        shielded_instance_config={
            "enable_secure_boot": machine.secure_boot,
            "enable_vtpm": machine.vtpm,
            "enable_integrity_monitoring": machine.integrity_monitoring,
        },
        confidential_instance_config=confidential if machine.confidential else None,
        network_performance_config=tier_1 if machine.tier_1 else None,
        min_cpu_platform=machine.min_cpu_platform or None,
        opts=pulumi.ResourceOptions(parent=parent, retain_on_delete=keep_old),
    )


def boot_disk(
    machine: MachineSettings, fleet: FleetSettings, parent: pulumi.Resource
) -> gcp.compute.InstanceTemplateDiskArgsDict:
    """Returns the one disk, which holds the system and no state."""
    disk: gcp.compute.InstanceTemplateDiskArgsDict = {
        "boot": True,
        "auto_delete": True,
        "source_image": images.resolve(machine.image, machine.image_family, pulumi.InvokeOptions(parent=parent)),
        "disk_type": machine.disk_type,
        "disk_size_gb": machine.disk_gb,
    }
    if fleet.labels:
        disk["labels"] = dict(fleet.labels)
    if machine.disk_kms_key:
        disk["disk_encryption_key"] = {"kms_key_self_link": machine.disk_kms_key}
    return disk


def scheduling(machine: MachineSettings) -> gcp.compute.InstanceTemplateSchedulingArgsDict:
    """Returns what happens to a VM at maintenance, failure and preemption."""
    if machine.spot:
        return {
            "provisioning_model": "SPOT",
            "preemptible": True,
            "automatic_restart": False,  # Spot VMs cannot have it; the group brings the VM back
            "on_host_maintenance": "TERMINATE",
            "instance_termination_action": "STOP",
        }
    return {
        "provisioning_model": "STANDARD",
        "automatic_restart": True,
        # Confidential VMs on AMD SEV migrate on few series only; stopping is what all of them can.
        "on_host_maintenance": "TERMINATE" if machine.confidential else "MIGRATE",
    }

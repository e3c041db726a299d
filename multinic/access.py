"""Who the routers are and who reaches them: service account with its role, firewall rules.

Rules go by service account, not by tag: whoever may edit a VM may set its tags. The ranges and ports come from the
settings that checks and routes are made from.
"""

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp
import pulumi_random

from multinic import naming
from multinic.checks import PROBE_RANGES
from multinic.settings import AccessSettings, FleetSettings, NetworkSettings

IAP_RANGE = "35.235.240.0/20"
"""Where Identity-Aware Proxy comes from. https://docs.cloud.google.com/iap/docs/using-tcp-forwarding"""

LOG_WRITER = "roles/logging.logWriter"


def declare_service_account(name: str, project: str | None, parent: pulumi.Resource) -> pulumi.Output[str]:
    """Declares a service account that may write log entries and nothing else; returns its e-mail.

    Its id must be unique in the project and cannot be used again for 30 days, hence the random end.
    """
    opts = pulumi.ResourceOptions(parent=parent)
    suffix = pulumi_random.RandomId(naming.child(name, "account-id"), byte_length=3, opts=opts)
    account = gcp.serviceaccount.Account(
        naming.child(name, "account"),
        project=project,
        account_id=pulumi.Output.format("{0}-{1}", naming.account_prefix(name), suffix.hex),
        display_name=f"{naming.slug(name)} routers",
        opts=opts,
    )
    gcp.projects.IAMMember(
        naming.child(name, "log-writer"),
        project=account.project,
        role=LOG_WRITER,
        member=pulumi.Output.format("serviceAccount:{0}", account.email),
        opts=opts,
    )
    return account.email


def declare_firewall(
    name: str, fleet: FleetSettings, email: pulumi.Input[str], access: AccessSettings, parent: pulumi.Resource
) -> list[gcp.compute.Firewall]:
    """Declares the rules of every network: probes of its checks, and all packets between the routed ranges.

    Both directions are allowed explicitly in each network, since an answer may come back by another router, whose
    firewall has not seen the connection begin. The routers' own "fragmentation needed" is part of "all protocols".
    """
    made = []
    routed = {cidr for network in fleet.networks for cidr in network.cidrs}
    everything = sorted(routed | set(access.source_cidrs))
    for i, network in enumerate(fleet.networks):
        # Heal probes arrive at nic0's own address, traffic probes at the load balancer's address in each network.
        ports = [fleet.health.heal.port] if i == 0 else []
        ports.append(fleet.health.traffic.port)
        made.append(_rule(name, f"probes-{naming.nic(i)}", network, PROBE_RANGES, email, parent, ports))
        made.append(_rule(name, f"routed-{naming.nic(i)}", network, [str(c) for c in everything], email, parent))
    if access.iap_ssh:
        made.append(_rule(name, "iap-ssh", fleet.networks[0], (IAP_RANGE,), email, parent, [22]))
    return made


def _rule(
    name: str,
    role: str,
    network: NetworkSettings,
    sources: Sequence[str],
    email: pulumi.Input[str],
    parent: pulumi.Resource,
    ports: Sequence[int] = (),
) -> gcp.compute.Firewall:
    """Declares one ingress rule: TCP to the given ports, or every protocol without any."""
    allowed: gcp.compute.FirewallAllowArgsDict = {"protocol": "all"}
    if ports:
        allowed = {"protocol": "tcp", "ports": [str(port) for port in sorted(ports)]}
    return gcp.compute.Firewall(
        naming.child(name, role),
        project=network.project or naming.project_of_link(network.network),
        network=network.network,
        direction="INGRESS",
        priority=900,
        source_ranges=list(sources),
        target_service_accounts=[email],
        allows=[allowed],
        opts=pulumi.ResourceOptions(parent=parent),
    )

"""The two health checks as resources. Both ask over HTTP; what they answer is the guest's business."""

import pulumi
import pulumi_gcp as gcp

from multinic.guest_files import REQUEST_PATH
from multinic.settings import CheckSettings, HealthSettings

PROBE_RANGES = ("35.191.0.0/16", "130.211.0.0/22")
"""Where health checks come from, for load balancing and auto-healing alike.

Literals and not a look-up: the provider's function asks Google's DNS at every preview, and an answer that fails or
changes would take the firewall rules with it. https://docs.cloud.google.com/load-balancing/docs/health-check-concepts
"""

HealthCheck = gcp.compute.HealthCheck | gcp.compute.RegionHealthCheck


def traffic_check(
    name: str, health: HealthSettings, region: str, *, project: str | None, opts: pulumi.ResourceOptions
) -> HealthCheck:
    """Declares the check that decides who gets traffic: global, or of one region where that is asked for."""
    if health.regional:
        return regional_check(name, health.traffic, region, log=health.log, project=project, opts=opts)
    return global_check(name, health.traffic, log=health.log, project=project, opts=opts)


def global_check(
    name: str, check: CheckSettings, *, log: bool, project: str | None, opts: pulumi.ResourceOptions
) -> gcp.compute.HealthCheck:
    """Declares a global check. Probers of several regions ask, and any region's load balancer may use it."""
    return gcp.compute.HealthCheck(
        name,
        project=project,
        check_interval_sec=check.interval_sec,
        timeout_sec=check.timeout_sec,
        healthy_threshold=check.healthy_threshold,
        unhealthy_threshold=check.unhealthy_threshold,
        http_health_check={"port": check.port, "request_path": REQUEST_PATH},
        log_config={"enable": log},
        opts=opts,
    )


def regional_check(
    name: str, check: CheckSettings, region: str, *, log: bool, project: str | None, opts: pulumi.ResourceOptions
) -> gcp.compute.RegionHealthCheck:
    """Declares a check of one region, for strict isolation of regions."""
    return gcp.compute.RegionHealthCheck(
        name,
        project=project,
        region=region,
        check_interval_sec=check.interval_sec,
        timeout_sec=check.timeout_sec,
        healthy_threshold=check.healthy_threshold,
        unhealthy_threshold=check.unhealthy_threshold,
        http_health_check={"port": check.port, "request_path": REQUEST_PATH},
        log_config={"enable": log},
        opts=opts,
    )

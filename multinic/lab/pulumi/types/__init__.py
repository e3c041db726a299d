"""The table: every resource type of pulumi-gcp that the lab serves."""

from __future__ import annotations

from multinic.lab.pulumi.resource_type import ResourceType
from multinic.lab.pulumi.types import (
    accounts,
    addresses,
    autoscalers,
    backend_services,
    firewalls,
    forwarding_rules,
    groups,
    health_checks,
    instances,
    networks,
    policies,
    projects,
    routers,
    routes,
    shared_vpc,
    templates,
)

_MODULES = (
    networks,
    firewalls,
    routes,
    addresses,
    health_checks,
    templates,
    groups,
    autoscalers,
    backend_services,
    forwarding_rules,
    instances,
    policies,
    routers,
    accounts,
    projects,
    shared_vpc,
)

TABLE: dict[str, ResourceType] = {kind.pulumi_type: kind for module in _MODULES for kind in module.TYPES}

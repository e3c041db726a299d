"""Linux VMs as a dependable IP router between VPC networks on Google Cloud, as Pulumi components.

The names are loaded when they are first used: the command line and the lab live in this package too and must not wait
for the Pulumi SDK, which they do not need.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multinic.args import (
        AccessArgs,
        CheckArgs,
        HealCheckArgs,
        HealthArgs,
        MachineArgs,
        MultinicRouterArgs,
        NetworkArgs,
        NextHopPolicyArgs,
        RoutesArgs,
        ShieldedArgs,
        UpdatesArgs,
    )
    from multinic.args_scaling import (
        AutoscalerArgs,
        MetricArgs,
        ReplicasArgs,
        ScaleInArgs,
        ScheduleArgs,
        StandbyArgs,
    )
    from multinic.choices import (
        AutoscalerMode,
        MetricType,
        MinimalAction,
        NicType,
        Persistence,
        PredictiveMethod,
        SessionAffinity,
        TrackingMode,
        UpdateType,
        ZonalAffinity,
    )
    from multinic.endpoints import EndpointGroupArgs, Endpoints, EndpointsArgs
    from multinic.fleet import RouterFleet, RouterFleetArgs
    from multinic.networks import RoutedNetworkArgs, RoutedNetworks, RoutedNetworksArgs
    from multinic.next_hop import NextHop, NextHopArgs
    from multinic.problems import InputError, InputTypeError
    from multinic.router import MultinicRouter

__all__ = [
    "AccessArgs",
    "AutoscalerArgs",
    "AutoscalerMode",
    "CheckArgs",
    "EndpointGroupArgs",
    "Endpoints",
    "EndpointsArgs",
    "HealCheckArgs",
    "HealthArgs",
    "InputError",
    "InputTypeError",
    "MachineArgs",
    "MetricArgs",
    "MetricType",
    "MinimalAction",
    "MultinicRouter",
    "MultinicRouterArgs",
    "NetworkArgs",
    "NextHop",
    "NextHopArgs",
    "NextHopPolicyArgs",
    "NicType",
    "Persistence",
    "PredictiveMethod",
    "ReplicasArgs",
    "RoutedNetworkArgs",
    "RoutedNetworks",
    "RoutedNetworksArgs",
    "RouterFleet",
    "RouterFleetArgs",
    "RoutesArgs",
    "ScaleInArgs",
    "ScheduleArgs",
    "SessionAffinity",
    "ShieldedArgs",
    "StandbyArgs",
    "TrackingMode",
    "UpdateType",
    "UpdatesArgs",
    "ZonalAffinity",
]

_MODULES = {
    "args": (
        "AccessArgs CheckArgs HealCheckArgs HealthArgs MachineArgs MultinicRouterArgs "
        "NetworkArgs NextHopPolicyArgs RoutesArgs "
        "ShieldedArgs UpdatesArgs"
    ),
    "args_scaling": "AutoscalerArgs MetricArgs ReplicasArgs ScaleInArgs ScheduleArgs StandbyArgs",
    "choices": (
        "AutoscalerMode MetricType MinimalAction NicType Persistence PredictiveMethod SessionAffinity TrackingMode "
        "UpdateType ZonalAffinity"
    ),
    "endpoints": "EndpointGroupArgs Endpoints EndpointsArgs",
    "fleet": "RouterFleet RouterFleetArgs",
    "networks": "RoutedNetworkArgs RoutedNetworks RoutedNetworksArgs",
    "next_hop": "NextHop NextHopArgs",
    "problems": "InputError InputTypeError",
    "router": "MultinicRouter",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}


if not TYPE_CHECKING:  # checkers would take every name for one that is there

    def __getattr__(name: str) -> Any:
        """Loads a public name from its module."""
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

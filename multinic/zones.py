"""Zones of a region: which ones a fleet can stand in, and how a region's zones are looked up."""

import re

import pulumi
import pulumi_gcp as gcp

REGION = r"[a-z]+-[a-z]+\d+"
"""Form of a region's name, such as us-central1."""


def is_zone_of(zone: str, region: str) -> bool:
    """Whether this is an ordinary zone of the region.

    AI zones (such as us-central1-ai1a) and others that do not end in a single letter take no ordinary VMs.
    """
    return re.fullmatch(rf"{re.escape(region)}-[a-z]", zone) is not None


def look_up(region: str, project: str | None, opts: pulumi.InvokeOptions | None = None) -> tuple[str, ...]:
    """Asks Google Cloud for the region's zones that are up, in alphabetical order.

    Not every region has a zone "a" (us-east1 and europe-west1 have none), so zones are never guessed. A zone that
    Google opens later adds a group to the fleet: give `zones` to decide that yourself.

    Args:
        region: The region.
        project: The project that asks; the provider's own if None.
        opts: Carries the provider.

    Returns:
        The zones in which ordinary VMs can run. Empty if there are none.
    """
    answer = gcp.compute.get_zones(project=project, region=region, status="UP", opts=opts)
    return tuple(sorted(zone for zone in answer.names if is_zone_of(zone, region)))

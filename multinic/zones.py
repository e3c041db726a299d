"""Zones of a region: which ones a fleet can stand in, and how a region's zones are looked up."""

import re

import pulumi
import pulumi_gcp as gcp

from multinic.problems import InputError, Problem

REGION = r"[a-z]+-[a-z]+\d+"
"""Form of a region's name, such as us-central1."""


def is_zone(zone: str) -> bool:
    """Whether this is the name of an ordinary zone of any region."""
    return re.fullmatch(rf"{REGION}-[a-z]", zone) is not None


def is_zone_of(zone: str, region: str) -> bool:
    """Whether this is an ordinary zone of the region.

    AI zones (such as us-central1-ai1a) and others that do not end in a single letter take no ordinary VMs.
    """
    return re.fullmatch(rf"{re.escape(region)}-[a-z]", zone) is not None


def resolve(
    given: tuple[str, ...] | None, region: str, project: str | None, parent: pulumi.Resource
) -> tuple[str, ...]:
    """Returns the zones that were given, or asks Google Cloud for those of the region that are up.

    Not every region has a zone "a" (us-east1 and europe-west1 have none), so zones are never guessed. A zone that
    Google opens later adds a group to the fleet: give `zones` to decide that yourself. What was found is shown.

    Args:
        given: The zones from the inputs; None to look them up.
        region: The region.
        project: The project that asks; the provider's own if None.
        parent: The component that asks, whose provider is used.

    Raises:
        InputError: The region has no zone in which ordinary VMs can run.
    """
    if given is not None:
        return given
    opts = pulumi.InvokeOptions(parent=parent)
    answer = gcp.compute.get_zones(project=project, region=region, status="UP", opts=opts)
    found = tuple(sorted(zone for zone in answer.names if is_zone_of(zone, region)))
    if not found:
        raise InputError([Problem("region", f"no ordinary zone of {region} is up; give zones", "zone-some")])
    pulumi.log.info(f"zones of {region}: {', '.join(found)}", parent)
    return found

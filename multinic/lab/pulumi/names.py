"""Physical names that Pulumi's bridge to Google's plugin makes up where a program gives none."""

from __future__ import annotations

import time

COMPUTE_NAME = r"^(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)$"
"""What the plugin holds most names of compute resources to."""

SUFFIX_LENGTH = 7
LONGEST = 63


def automatic(logical: str, seed: bytes, longest: int = LONGEST) -> str:
    """Return a physical name for a logical one: lower case, a dash, seven hexadecimal digits.

    Args:
        logical: Name that the program gave the resource.
        seed: Random bytes from the engine, the same for a preview and the update that follows it.
        longest: Largest number of characters.

    Raises:
        ValueError: If the logical name is too long to leave room for the suffix.
    """
    name = f"{logical.lower()}-{seed.hex()[:SUFFIX_LENGTH]}"
    if len(name) > longest:
        most = longest - SUFFIX_LENGTH - 1
        raise ValueError(
            f"the name made for '{logical}' is {len(name) - longest} characters longer than {longest}: "
            f"give a `name`, or a resource name of at most {most} characters"
        )
    return name


def prefixed(prefix: str) -> str:
    """Return a name that begins with a prefix and goes on with the time, as the plugin does for `namePrefix`."""
    return f"{prefix}{time.time_ns():020d}"

"""Every name that this library makes: logical names of resources, the prefix of VM names, ids.

Physical names are left to Pulumi's auto-naming (logical name, hyphen, seven random digits), since only auto-named
resources are replaced create-before-delete. The few names that are fixed are made here too.
"""

import hashlib
import re
from ipaddress import IPv4Network

import pulumi

from multinic.problems import InputError, Problem

MAX_NAME = 63
"""Longest name of a Compute Engine resource, RFC 1035."""

MAX_LOGICAL = MAX_NAME - 8
"""Longest logical name that leaves room for Pulumi's hyphen and seven random digits."""

MAX_VM_PREFIX = 58
"""Longest base name of an instance group, which appends a hyphen and four characters."""

MAX_ACCOUNT_PREFIX = 23
"""A service account id has 6 to 30 characters; a hyphen and six random digits follow the prefix."""

PROJECT = r"[a-z][-a-z0-9.:]{0,61}[a-z0-9]"
"""Form of a project's id; the oldest begin with a domain, such as example.com:net."""

NAME = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
"""Form of a resource's name, RFC 1035."""

NAME_FORM = "a name of lower-case letters, digits and hyphens that begins with a letter, of at most 63 characters"
"""The same in words."""

VALID = re.compile(NAME)


def slug(text: str, limit: int = MAX_LOGICAL) -> str:
    """Returns a valid name of at most `limit` characters.

    A text that is one already is returned as it is. Any other is cleaned, shortened, and given six digits of a hash
    of the whole text, so that different texts have different names and the same text always the same.
    """
    if len(text) <= limit and VALID.fullmatch(text):
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:6]
    cleaned = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if not cleaned[:1].isalpha():
        cleaned = f"m-{cleaned}"
    return f"{cleaned[: limit - 7].strip('-')}-{digest}"


def child(parent: str, role: str, key: str = "") -> str:
    """Returns the logical name of a resource inside a component: parent, role, and a key that does not move."""
    return slug("-".join(part for part in (parent, role, key) if part))


def prefix(name: str, generation: str) -> str:
    """Returns what all names of a component begin with: its generation, if it has one, and its name.

    The generation comes first so that shortening never cuts it off.
    """
    return f"{generation}-{name}" if generation else name


def vm_prefix(parent: str, zone: str) -> str:
    """Returns the base name of a zone's VMs. It ends in the zone's letter, so that people see where a VM is."""
    return slug(f"{parent}-{zone.rsplit('-', 1)[-1]}", MAX_VM_PREFIX)


def account_prefix(parent: str) -> str:
    """Returns the beginning of a service account id."""
    return slug(parent, MAX_ACCOUNT_PREFIX)


def nic(index: int) -> str:
    """Returns the name of a NIC, nic0 and so on; on Google Cloud the position of a NIC is its identity."""
    return f"nic{index}"


def cidr_key(cidr: IPv4Network) -> str:
    """Returns a range as part of a name: 10.1.0.0/16 is 10-1-0-0-16."""
    return str(cidr).replace(".", "-").replace("/", "-")


def last_part(link: str) -> str:
    """Returns the name at the end of a link."""
    return link.rstrip("/").rsplit("/", 1)[-1]


def partial(link: str) -> str:
    """Returns a link without its server and API version: two spellings of one resource become the same."""
    return re.sub(r"^https?://[^/]+/(?:compute/)?[^/]+/(?=projects/|global/|regions/)", "", link)


def project_of(link: str) -> str | None:
    """Returns the project that a full or partial link names, None for a bare name."""
    found = re.search(r"(?:^|/)projects/([^/]+)/", link)
    return found[1] if found else None


def project_of_link(link: pulumi.Input[str]) -> pulumi.Input[str] | None:
    """As `project_of`, for a link that may be an Output.

    A Shared VPC network lives in another project than the routers; its routes and firewall rules belong there.

    Raises:
        InputError: In the Output, once it is known: it names no project.
    """
    if isinstance(link, str):
        return project_of(link)
    return pulumi.Output.all(link).apply(lambda known: _project_or_fail(str(known[0])))


def _project_or_fail(link: str) -> str:
    found = project_of(link)
    if found is None:
        message = f"{link!r} does not say the project; give the network's self_link, projects/P/global/networks/N"
        raise InputError([Problem("network", message)])
    return found

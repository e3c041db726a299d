"""Addresses inside a subnetwork: which are reserved, which are taken, which is given next.

Google keeps four addresses of each primary range: the first (network), the second (gateway), the last but one and the
last (broadcast). https://cloud.google.com/vpc/docs/subnets#unusable-ip-addresses-in-every-subnet
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from .errors import ApiError, invalid
from .links import key_of, link, name_of
from .store import Object, Store


def gateway(subnet: IPv4Network) -> IPv4Address:
    """The subnet's gateway: its second address."""
    return subnet[1]


def reserved(subnet: IPv4Network) -> frozenset[IPv4Address]:
    """The four addresses that no VM gets."""
    return frozenset({subnet[0], subnet[1], subnet[-2], subnet[-1]})


def taken(store: Store, subnetwork: str) -> Iterator[tuple[IPv4Address, str]]:
    """(address, key of its holder) of a subnetwork: NICs, reserved addresses, forwarding rules."""
    url = link(subnetwork)
    for key, instance in store.everywhere("instances"):
        for nic in instance.get("networkInterfaces", []):
            if nic.get("subnetwork") == url and "networkIP" in nic:
                yield IPv4Address(nic["networkIP"]), key
    for key, address in store.everywhere("addresses"):
        if address.get("subnetwork") == url:
            yield IPv4Address(address["address"]), key
    for key, rule in store.everywhere("forwardingRules"):
        if rule.get("subnetwork") == url and "IPAddress" in rule:
            yield IPv4Address(rule["IPAddress"]), key


def range_of(store: Store, subnetwork: str) -> IPv4Network:
    """The primary range of a subnetwork."""
    return IPv4Network(store.require(subnetwork)["ipCidrRange"])


def choose(store: Store, subnetwork: str) -> IPv4Address:
    """The lowest free address of a subnetwork.

    Raises:
        ApiError: 403, the range is used up.
    """
    subnet = range_of(store, subnetwork)
    unusable = reserved(subnet) | {address for address, _ in taken(store, subnetwork)}
    for number in range(int(subnet[2]), int(subnet[-2])):
        if IPv4Address(number) not in unusable:
            return IPv4Address(number)
    raise ApiError(
        403,
        "ipSpaceExhausted",
        f"IP space of '{subnetwork}' is exhausted. Insufficient free IP addresses in '{subnet}'.",
    )


def claim(
    store: Store, subnetwork: str, wanted: str, field: str, *, own: str = "", shared: frozenset[str] = frozenset()
) -> IPv4Address:
    """Checks an address that somebody asks for.

    Args:
        store: All objects.
        subnetwork: Key of the subnetwork that it must lie in.
        wanted: The address as text.
        field: For the message.
        own: Key of the asking object; what it holds already is free for it.
        shared: Keys of holders that do not matter (the reserved address that is being used).

    Raises:
        ApiError: 400 where it is no address, outside of the range, reserved or in use.
    """
    subnet = range_of(store, subnetwork)
    try:
        address = IPv4Address(wanted)
    except ValueError:
        raise invalid(field, wanted, "The IP address is malformed.") from None
    if address not in subnet:
        raise invalid(field, wanted, f"IP address is outside of the range of subnetwork '{subnetwork}' ({subnet}).")
    if address in reserved(subnet):
        raise invalid(field, wanted, f"IP address is reserved in the range {subnet}.")
    for held, holder in taken(store, subnetwork):
        if held == address and holder != own and holder not in shared:
            raise ApiError(
                400,
                "resourceInUseByAnotherResource",
                f"IP '{address}' is already being used by another resource: '{holder}'.",
            )
    return address


def mac(address: IPv4Address) -> str:
    """The MAC of the NIC with that address, as Google makes it: ``42:01`` and the four bytes of the address."""
    return ":".join(["42", "01", *(f"{byte:02x}" for byte in address.packed)])


def reservation(store: Store, subnetwork: str, address: str) -> str | None:
    """Key of the reserved address object that holds an address of a subnetwork, or None."""
    for key, value in store.everywhere("addresses"):
        if value.get("subnetwork") == link(subnetwork) and value.get("address") == address:
            return key
    return None


def describe(value: dict[str, Any]) -> str:
    """A short name of a subnetwork object for messages."""
    return f"'{value['name']}' in region '{name_of(key_of(value['region']))}'"


def assign(store: Store, key: str, instance: Object) -> set[str]:
    """Gives each NIC of a new instance its address; the keys of the reserved ones among them.

    Args:
        store: All objects.
        key: The instance's.
        instance: Changed in place.

    Raises:
        ApiError: An address that was asked for is not to be had, or a subnetwork is full.
    """
    found: set[str] = set()
    for index, nic in enumerate(instance["networkInterfaces"]):
        subnetwork = key_of(nic["subnetwork"])
        wanted = nic.get("networkIP")
        if wanted:
            held = reservation(store, subnetwork, wanted)
            shared = frozenset({held} if held else ())
            found |= shared
            chosen = claim(store, subnetwork, wanted, f"networkInterfaces[{index}].networkIP", own=key, shared=shared)
        else:
            chosen = choose(store, subnetwork)
        nic["networkIP"] = str(chosen)
        for access in nic.get("accessConfigs", []):
            access.setdefault("type", "ONE_TO_ONE_NAT")
            access.setdefault("name", "External NAT")
            access.setdefault("networkTier", "PREMIUM")
            access["kind"] = "compute#accessConfig"
    return found

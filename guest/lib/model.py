"""Metadata → what this router is. Every value is checked here; what comes out can be trusted by the rest."""

from __future__ import annotations

import json
import re
from ipaddress import IPv4Address, IPv4Network
from typing import Any, NamedTuple

MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
MAX_NICS = 16
SPECIAL = tuple(map(IPv4Network, ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32")))
"""Ranges that no VPC network can hold: the kernel has its own mind about them. 240.0.0.0/4 is as good as any other."""

MAX_TEXT = 500
"""Characters of an error: a value may have 256 KB, and a probe's answer shows the error."""


class InvalidError(Exception):
    """The metadata cannot be used. The text names the key and what is wrong with it."""


class Nic(NamedTuple):
    """One NIC as Google describes it.

    Attributes:
        number: 0 for nic0.
        mac: Lower case; the only name of a NIC that no kernel, distribution or reboot changes.
        address: Primary internal address, a /32 on the link.
        gateway: First address of the subnet, on the link.
        subnet: Primary range of the subnetwork.
        mtu: Bytes, or None to leave the link as it is.
        forwarded: Addresses (or ranges) of forwarding rules that this VM must own.
        aliases: Alias ranges; their local routes are the guest agent's or the user's business, their way out is ours.
        cidrs: What is reachable through this NIC; empty on a virtual wire.
    """

    number: int
    mac: str
    address: IPv4Address
    gateway: IPv4Address
    subnet: IPv4Network
    mtu: int | None = None
    forwarded: tuple[IPv4Network, ...] = ()
    aliases: tuple[IPv4Network, ...] = ()
    cidrs: tuple[IPv4Network, ...] = ()


class Router(NamedTuple):
    """The whole router.

    Attributes:
        nics: In Google's order, two or more.
        by_destination: Forward by the CIDR lists; otherwise two NICs are a virtual wire.
        clamp_mss: Upper limit of TCP's maximum segment size in bytes, or None.
        drain: An operator wants no new connections here.
        instance: Name, for logs.
        instance_id: Google's number of this VM, for logs and for jitter.
        zone: Short name, for logs.
    """

    nics: tuple[Nic, ...]
    by_destination: bool = False
    clamp_mss: int | None = None
    drain: bool = False
    instance: str = ""
    instance_id: str = ""
    zone: str = ""


def parse(tree: Any) -> Router:
    """Reads a metadata tree (``?recursive=true``).

    Raises:
        InvalidError: With the first thing that is missing or wrong.
    """
    try:
        return _parse(tree)
    except InvalidError as error:
        raise InvalidError(str(error)[:MAX_TEXT]) from None
    except (TypeError, ValueError, LookupError, RecursionError) as error:
        # A check that is missing here must not be the end of whoever asks.
        raise InvalidError(f"metadata: {error!r}"[:MAX_TEXT]) from error


def _parse(tree: Any) -> Router:
    instance = _of_type(tree, dict, "metadata").get("instance")
    instance = _of_type(instance, dict, "instance")
    attributes = _of_type(instance.get("attributes") or {}, dict, "attributes")
    config = _json(attributes, "multinic-config", dict) or {}
    lists = _json(attributes, "multinic-networks", list)
    interfaces = _of_type(instance.get("networkInterfaces"), list, "networkInterfaces")
    if not 2 <= len(interfaces) <= MAX_NICS:
        raise InvalidError(f"networkInterfaces: a router needs 2 to {MAX_NICS} NICs, this VM has {len(interfaces)}")
    nics = tuple(_nic(index, raw, config, lists) for index, raw in enumerate(interfaces))
    for what, values in (("mac", [nic.mac for nic in nics]), ("ip", [nic.address for nic in nics])):
        if len(set(values)) != len(values):
            raise InvalidError(f"networkInterfaces: two NICs with the same {what}")
    if len(nics) > 2 and lists is None:
        raise InvalidError("multinic-networks: needed with more than two NICs")
    _refuse_shared(nics, lists is not None)
    return Router(
        nics=nics,
        by_destination=lists is not None,
        clamp_mss=_number(config.get("clamp_mss"), "multinic-config.clamp_mss", 536, 65495),
        drain=str(attributes.get("multinic-drain", "")).strip().lower() in ("true", "1", "yes"),
        instance=str(instance.get("name") or ""),
        instance_id=str(instance.get("id") or ""),
        zone=str(instance.get("zone") or "").rpartition("/")[2],
    )


def _refuse_shared(nics: tuple[Nic, ...], by_destination: bool) -> None:
    """Refuses what two NICs cannot both have: no rules and routes would do both justice."""
    owners: dict[IPv4Network, int] = {}
    behind: dict[IPv4Network, int] = {}
    for nic in nics:
        for own in (IPv4Network(nic.address), *nic.forwarded):
            if owners.setdefault(own, nic.number) != nic.number:
                raise InvalidError(f"forwardedIps: {own} is nic{owners[own]}'s and nic{nic.number}'s")
            for other in nics[: nic.number]:
                for wide in (other.subnet, *other.aliases):
                    if own.subnet_of(wide):
                        raise InvalidError(
                            f"networkInterfaces: {own} of nic{nic.number} is in {wide} of nic{other.number}"
                        )
        for other in nics:
            for own in other.forwarded:
                if nic.gateway in own:
                    raise InvalidError(f"forwardedIps: {own} of nic{other.number} holds nic{nic.number}'s gateway")
        for cidr in (nic.subnet, IPv4Network(nic.gateway), *nic.cidrs) if by_destination else ():
            if behind.setdefault(cidr, nic.number) != nic.number:
                raise InvalidError(f"multinic-networks: {cidr} is behind nic{behind[cidr]} and nic{nic.number}")


def _nic(index: int, raw: Any, config: dict[str, Any], lists: list[Any] | None) -> Nic:
    where = f"networkInterfaces[{index}]"
    raw = _of_type(raw, dict, where)
    mac = str(raw.get("mac", "")).lower()
    if not MAC.fullmatch(mac):
        raise InvalidError(f"{where}.mac: {raw.get('mac')!r} is no MAC address")
    address = _address(raw.get("ip"), f"{where}.ip")
    mask = _ipv4(raw.get("subnetmask"), f"{where}.subnetmask")
    try:
        subnet = IPv4Network(f"{address}/{mask}", strict=False)
    except ValueError:
        raise InvalidError(f"{where}.subnetmask: {mask} is no netmask") from None
    if subnet.prefixlen < 8:
        raise InvalidError(f"{where}.subnetmask: {mask} is too wide")
    gateway = _address(raw.get("gateway"), f"{where}.gateway")
    if gateway not in subnet or gateway == address:
        raise InvalidError(f"{where}.gateway: {gateway} is no other address of {subnet}")
    forwarded = _networks(
        [*(raw.get("forwardedIps") or []), *(raw.get("targetInstanceIps") or [])]
        if isinstance(raw.get("forwardedIps") or [], list) and isinstance(raw.get("targetInstanceIps") or [], list)
        else "?",
        f"{where}.forwardedIps",
    )
    networks = _of_type(config.get("networks") or [], list, "multinic-config.networks")
    override = (
        _of_type(networks[index] or {}, dict, f"multinic-config.networks[{index}]") if index < len(networks) else {}
    )
    mtu = override.get("mtu") if override.get("mtu") is not None else raw.get("mtu")
    cidrs: tuple[IPv4Network, ...] = ()
    if lists is not None:
        if index >= len(lists):
            raise InvalidError(f"multinic-networks: no entry for nic{index}")
        cidrs = _networks(
            _of_type(lists[index], dict, f"multinic-networks[{index}]").get("cidrs"),
            f"multinic-networks[{index}].cidrs",
            shortest=0,
        )
    return Nic(
        number=index,
        mac=mac,
        address=address,
        gateway=gateway,
        subnet=subnet,
        mtu=_number(mtu, f"{where}.mtu", 1280, 65535),
        forwarded=forwarded,
        aliases=_networks(raw.get("ipAliases"), f"{where}.ipAliases"),
        cidrs=cidrs,
    )


def _json(attributes: dict[str, Any], key: str, kind: type) -> Any:
    """A metadata value that is JSON text; None when it is absent or empty."""
    text = attributes.get(key)
    if text is None or text == "":
        return None
    try:
        return _of_type(json.loads(text), kind, key)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidError(f"{key}: not JSON ({error})") from None


def _of_type(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind):
        raise InvalidError(f"{where}: {kind.__name__} expected, not {type(value).__name__}")
    return value


def _ipv4(value: Any, where: str) -> IPv4Address:
    try:
        return IPv4Address(_of_type(value, str, where))
    except ValueError:
        raise InvalidError(f"{where}: {value!r} is no IPv4 address") from None


def _address(value: Any, where: str) -> IPv4Address:
    """An address that a VPC network can hold."""
    address = _ipv4(value, where)
    if any(address in special for special in SPECIAL):
        raise InvalidError(f"{where}: {address} is no address of a network")
    return address


def _networks(values: Any, where: str, shortest: int = 8) -> tuple[IPv4Network, ...]:
    """Addresses and ranges, each once, in a stable order. IPv6 ones are skipped: the router leaves IPv6 alone."""
    found = set()
    for value in _of_type(values or [], list, where):
        if ":" in _of_type(value, str, where):
            continue
        try:
            network = IPv4Network(value, strict=False)
        except ValueError:
            raise InvalidError(f"{where}: {value!r} is no IPv4 address or range") from None
        if network.prefixlen < shortest:
            raise InvalidError(f"{where}: {value} is too wide to be this VM's own")
        if any(network.subnet_of(special) for special in SPECIAL):
            raise InvalidError(f"{where}: {value} is no address or range of a network")
        found.add(network)
    return tuple(sorted(found))


def _number(value: Any, where: str, low: int, high: int) -> int | None:
    if value is None:
        return None
    text = str(value)
    if (
        isinstance(value, bool)
        or not text.isascii()
        or not text.isdigit()
        or len(text) > 9
        or not low <= int(text) <= high
    ):
        raise InvalidError(f"{where}: {text[:40]!r} is no whole number from {low} to {high}")
    return int(text)

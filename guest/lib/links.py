"""Network interfaces: as `ip -json` prints them, and which of them are the NICs of the metadata."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, Mapping, NamedTuple

import paths

VIRTUAL = frozenset(
    ("bond", "bridge", "dummy", "ifb", "ipvlan", "macsec", "macvlan", "macvtap", "team", "tun", "vlan", "vrf", "vxlan")
)
"""Kinds of links that are no NIC, though they can carry the MAC of one."""


class LinkState(NamedTuple):
    """A network interface as it is."""

    device: str
    ifindex: int
    macs: tuple[str, ...]
    kind: str
    up: bool
    carrier: bool
    mtu: int
    addresses: frozenset[str]
    master: str = ""
    arp: bool = True


def parsed(links: list[Any], addresses: list[Any]) -> dict[str, LinkState]:
    """Interfaces by name, from what `ip -json` prints of links and addresses."""
    held: dict[str, frozenset[str]] = {
        raw["ifname"]: frozenset(
            info["local"] for info in raw.get("addr_info", ()) if info.get("family") == "inet" and "local" in info
        )
        for raw in addresses
        if raw
    }
    found = {}
    for raw in links:
        if not raw:
            continue
        flags = raw.get("flags", ())
        found[raw["ifname"]] = LinkState(
            device=raw["ifname"],
            ifindex=raw.get("ifindex", 0),
            macs=tuple(str(raw[key]).lower() for key in ("address", "permaddr") if raw.get(key)),
            kind=(raw.get("linkinfo") or {}).get("info_kind", ""),
            up="UP" in flags,
            carrier="LOWER_UP" in flags,
            mtu=raw.get("mtu", 0),
            addresses=held.get(raw["ifname"], frozenset()),
            master=raw.get("master", ""),
            arp="NOARP" not in flags,
        )
    return found


def devices(macs: Mapping[int, str], links: Mapping[str, LinkState]) -> dict[int, str]:
    """Present interface names of NICs. Links that merely borrow a NIC's MAC (VLANs, bridges …) are passed over."""
    found = {}
    for index, mac in macs.items():
        fits = [link for link in links.values() if mac in link.macs and link.kind not in VIRTUAL]
        if fits:
            found[index] = min(fits, key=lambda link: link.ifindex).device
    return found


def guess(macs: Mapping[int, str]) -> dict[int, str]:
    """Names that the NICs may have, from a few files, to ask by in the very first look. A wrong guess costs a look."""
    found: dict[int, str] = {}
    for device in sorted(os.listdir(paths.LINKS)):
        with suppress(OSError), open(os.path.join(paths.LINKS, device, "address"), encoding="ascii") as file:
            mac = file.read().strip()
            found.update((number, device) for number, held in macs.items() if held == mac and number not in found)
    return found

"""Words of the command line → VMs and networks of the fleet; what does not fit is answered with what there is."""

from __future__ import annotations

from collections.abc import Iterable

from multinic.operate import links
from multinic.operate.api import Api
from multinic.operate.errors import WordError
from multinic.operate.fleet import Fleet, Hop, Router


def routers(fleet: Fleet, word: str, api: Api | None = None) -> tuple[Router, ...]:
    """The VM of that name, or all VMs of that zone.

    Args:
        fleet: Where to look.
        word: Name of a VM or a zone; a link is taken by its end.
        api: By which a VM that is not of this fleet is looked for, to say whose it is.

    Raises:
        WordError: There is none.
    """
    name = word.rstrip("/").rpartition("/")[2]
    named = tuple(one for one in fleet.routers if one.name == name)
    # A group appends a random word, which two zones may have in common where the rest of the name is the same.
    if len(named) > 1:
        raise WordError(f"several VMs are called {name} ({_listed(one.zone for one in named)}); name a zone")
    if named and "/zones/" in word and f"/zones/{named[0].zone}/" not in word:
        raise WordError(f"{word}: {name} is in {named[0].zone}")
    if named:
        return named
    if name in fleet.zones:
        found = tuple(one for one in fleet.routers if one.zone == name)
        if not found:
            size = next(group.size for group in fleet.groups if group.zone == name)
            raise WordError(f"zone {name} has no VM now; its group's size is {size}")
        return found
    if name == fleet.region:
        raise WordError(f"{name} is the whole region; name a VM or one of {_listed(fleet.zones)}")
    if name.startswith(f"{fleet.region}-") and "-" not in name.removeprefix(f"{fleet.region}-"):
        raise WordError(f"fleet {fleet.name} has no group in zone {name}; its zones are {_listed(fleet.zones)}")
    raise WordError(
        f"{_stranger(fleet, name, api)}; fleet {fleet.name} has {_listed(one.name for one in fleet.routers)}"
    )


def router(fleet: Fleet, word: str, api: Api | None = None) -> Router:
    """The VM of that name.

    Raises:
        WordError: There is none, or the word is a zone's name.
    """
    if word in fleet.zones:
        names = _listed(one.name for one in fleet.routers if one.zone == word)
        raise WordError(f"{word} is a zone; this takes one VM: {names}")
    return routers(fleet, word, api)[0]


def hops(fleet: Fleet, words: Iterable[str]) -> tuple[Hop, ...]:
    """The load balancers of the networks of these names; the beginning of a name is enough where it is one's only.

    Raises:
        WordError: No network, or more than one, is meant.
    """
    found: list[Hop] = []
    for word in words:
        exact = [hop for hop in fleet.hops if hop.network == word]
        fitting = exact or [hop for hop in fleet.hops if hop.network.startswith(word)]
        if len(fitting) != 1:
            what = "is the beginning of several" if fitting else "is none of the fleet's"
            raise WordError(f"network {word} {what}: {_listed(fleet.networks)}")
        if fitting[0] not in found:
            found.append(fitting[0])
    return tuple(found)


def _stranger(fleet: Fleet, name: str, api: Api | None) -> str:
    """What a VM that is not of this fleet is, as well as can be told."""
    for other in fleet.others:
        if name.startswith(f"{other}-"):
            return f"{name} is a VM of fleet {other}, not of {fleet.name} (choose with --fleet)"
    if api is not None and links.is_name(name):
        found = api.items("Instances", "aggregated_list", project=fleet.project, filter=f'name = "{name}"')
        if found:
            return f"{name} in {found[0].zone.rpartition('/')[2]} is a VM, but no router of this fleet"
    return f"no VM or zone is called {name}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "no VM now"

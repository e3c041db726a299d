"""Rolling update: every VM of the fleet is recreated, one after the other, as long as the rest is healthy."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from multinic.operate import heal
from multinic.operate.api import Api
from multinic.operate.errors import OperateError, StoppedError
from multinic.operate.fleet import Fleet, Router
from multinic.operate.plan import Plan, last_router
from multinic.operate.reading import Reader
from multinic.operate.waiting import Say, until

OTHERS_SECONDS = 300.0
"""How long a router that does not serve may take to come back before an update stops."""

Pending = Mapping[str, str]
"""VM name → id of the VM that is to be replaced."""


@dataclass(frozen=True)
class Round:
    """What an interrupted update still has to do, kept on the operator's machine.

    Attributes:
        path: The file.
    """

    path: Path

    @classmethod
    def of(cls, fleet: Fleet, environment: Mapping[str, str] = os.environ) -> Round:
        """The fleet's, below XDG_STATE_HOME."""
        home = Path(environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        return cls(home / "multinic" / "rolling-update" / f"{fleet.project}.{fleet.region}.{fleet.name}.json")

    def read(self) -> dict[str, str] | None:
        """What is pending; None where no update was interrupted."""
        try:
            found = json.loads(self.path.read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise OperateError(f"{self.path} cannot be read ({error}); remove it and begin anew") from None
        return {str(name): str(identity) for name, identity in found.items()}

    def write(self, pending: Pending) -> None:
        """Keeps what is pending; an empty one removes the file."""
        if not pending:
            self.path.unlink(missing_ok=True)
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(".new")
        unfinished.write_text(json.dumps(dict(pending), indent=1))
        unfinished.rename(self.path)


def plan(fleet: Fleet, pending: Pending | None = None) -> Plan[Router]:
    """What an update does; `pending` is what an interrupted one left."""
    wanted = [one for one in fleet.routers if pending is None or pending.get(one.name) == one.id]
    done = [one.name for one in fleet.routers if one not in wanted]
    old = [one.name for one in wanted if one.template != fleet.group(one.group).template]
    warnings = [f"{', '.join(old)} will come back with the group's newest template"] if old else []
    drained = [one.name for one in wanted if one.drained]
    if drained:
        warnings.append(f"{', '.join(drained)} will come back undrained")
    changes = [f"recreate {one.name} ({one.zone}), then wait until it serves in every network" for one in wanted]
    idle = [f"{', '.join(done)}: done before"] if done else []
    return Plan(
        items=tuple(wanted),
        changes=tuple(changes),
        idle=tuple(idle) if fleet.routers else ("the fleet has no VM",),
        traffic=(
            "one router at a time is drained and recreated; open connections move and go on; "
            "capacity is one router less meanwhile",
        )
        if wanted
        else (),
        warnings=tuple(warnings),
        refusal=_refusal(fleet, wanted, resumed=pending is not None),
    )


def _refusal(fleet: Fleet, wanted: list[Router], *, resumed: bool) -> str:
    if not wanted:
        return ""
    for group in fleet.groups:
        if not group.reached or group.actions:
            doing = ", ".join(f"{count} {action}" for action, count in group.actions.items()) or "its own rollout"
            return f"the group of {group.zone} is busy ({doing}): wait until it is done"
    found = next((found for one in wanted if (found := last_router(fleet, (one,)))), "")
    sick = [one.name for one in fleet.routers if not resumed and not one.drained and not fleet.serving(one)]
    if sick and not found:
        return f"{', '.join(sick)} does not serve now: `multinic heal {sick[0]}` first"
    return found


def others_serve(fleet: Fleet, name: str) -> bool:
    """Whether every VM but this one and the drained ones serves in every network."""
    return all(fleet.serving(one) for one in fleet.routers if one.name != name and not one.drained)


def apply(
    api: Api, reader: Reader, fleet: Fleet, routers: tuple[Router, ...], kept: Round, say: Say, *, force: bool
) -> None:
    """Recreates VMs one after the other.

    Raises:
        StoppedError: Health dropped, or a VM did not come back; the rest was not touched, and `Round` has it.
        OperateError: Likewise, because of an API.
    """
    pending = {router.name: router.id for router in routers}
    zones = {zone: [one for one in routers if one.zone == zone] for zone in fleet.zones}
    try:
        for zone, mine in zones.items():
            for number, before in enumerate(mine, 1):
                fleet = reader.members(fleet)
                router = fleet.router(before.name)
                if router is not None and router.id == before.id:
                    kept.write(pending)
                    if not force:
                        fleet = _wait_for_others(reader, fleet, router)
                    found = last_router(fleet, (router,))
                    if found and not force:
                        raise StoppedError(f"health dropped: {found}")
                    say(f"{zone}: {number} of {len(mine)}: {router.name}")
                    heal.apply(api, fleet, (router,))
                    fleet = heal.wait(reader, fleet, router, say, steady=not force)
                else:
                    say(f"{zone}: {number} of {len(mine)}: {before.name} has gone by itself meanwhile")
                pending.pop(before.name)
                kept.write(pending)
    except KeyboardInterrupt:
        say(f"interrupted; not done yet: {', '.join(pending)}; go on with `multinic rolling-update --resume`")
        raise
    except OperateError as error:
        left = ", ".join(pending)
        raise StoppedError(f"{error}; not done yet: {left}; go on with `multinic rolling-update --resume`") from None


def _wait_for_others(reader: Reader, fleet: Fleet, router: Router) -> Fleet:
    """The VM before may still boot, where an update was interrupted; two are never away at once."""
    what = f"every router but {router.name} serves"
    return until(reader, fleet, lambda now: others_serve(now, router.name), what, timeout=OTHERS_SECONDS)

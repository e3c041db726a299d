"""Names for the shell's completion: VMs, zones, networks of the fleet, kept a minute so that a second TAB is quick."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path

FRESH_SECONDS = 60.0


def complete_target(incomplete: str) -> list[str]:
    """VMs and zones that begin so; none where the fleet cannot be read, since a shell cannot be told why."""
    return _beginning("targets", incomplete)


def complete_network(incomplete: str) -> list[str]:
    """Networks of the fleet that begin so."""
    return _beginning("networks", incomplete)


def _beginning(kind: str, incomplete: str) -> list[str]:
    return [name for name in _names()[kind] if name.startswith(incomplete)]


def _names() -> dict[str, list[str]]:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    key = f"{Path.cwd()}{os.environ.get('MULTINIC_LAB_ENDPOINT', '')}"
    kept = home / "multinic" / "names.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        held = json.loads(kept.read_text())
        if held["key"] == key and time.time() - held["time"] < FRESH_SECONDS:
            return {kind: [str(name) for name in held[kind]] for kind in ("targets", "networks")}
    names = _read()
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps({"key": key, "time": time.time(), **names}))
    return names


def _read() -> dict[str, list[str]]:
    from multinic.cli.options import Place
    from multinic.operate.errors import OperateError

    try:
        with Place().opened() as (_, reader):
            fleet = reader.read()
    except OperateError:
        return {"targets": [], "networks": []}
    return {"targets": [*(router.name for router in fleet.routers), *fleet.zones], "networks": list(fleet.networks)}

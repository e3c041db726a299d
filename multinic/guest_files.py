"""guest/ → instance metadata: each file its own key in plain text, so that a preview shows which line changes.

The files travel in the wheel as `multinic/_guest`; in the repository they are in `guest/`. A manifest tells the
startup script which key goes where. Pure functions but for reading the files, which happens once a run.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from multinic.settings import FleetSettings

REQUEST_PATH = "/status.json"
"""What both health checks ask for."""

TARGETS: Mapping[str, tuple[str, str]] = {
    "bin": ("/usr/bin", "0755"),
    "lib": ("/usr/lib/multinic", "0644"),
    "sysctl.d": ("/etc/sysctl.d", "0644"),
    "systemd": ("/etc/systemd/system", "0644"),
}
"""Folder of guest/ → where its files belong on a router, and their mode."""

MAX_KEY_BYTES = 64 * 1024
MAX_ALL_BYTES = 200 * 1024
"""Google Cloud takes 256 KB a value and 512 KB in all; https://docs.cloud.google.com/compute/docs/metadata. The rest
is left to what others add: SSH keys, OS Login, groups' own attributes."""


class GuestFilesError(RuntimeError):
    """The guest's files are missing or not what they should be: a broken installation, not a wrong input."""


def locate() -> Traversable:
    """Returns the folder with the guest's files: the installed one, else the repository's."""
    installed = resources.files("multinic") / "_guest"
    if installed.is_dir():
        return installed
    beside = Path(__file__).resolve().parent.parent / "guest"
    if beside.is_dir():
        return beside
    raise GuestFilesError("the router's own files are missing: neither multinic/_guest nor guest/ was found")


def file_key(path: str) -> str:
    """Returns the metadata key of a file: bin/policy-routing is multinic-file-bin-policy-routing."""
    return "multinic-file-" + re.sub(r"[^a-zA-Z0-9_-]", "-", path)


@cache
def read_files() -> Mapping[str, str]:
    """Reads the guest's files: the two scripts, every file under a metadata key of its own, and the manifest."""
    root = locate()
    metadata, manifest = {}, []
    for kind in ("startup", "shutdown"):
        script = root / f"{kind}.sh"
        if not script.is_file():
            raise GuestFilesError(f"guest/{kind}.sh is missing")
        metadata[f"{kind}-script"] = script.read_text(encoding="utf-8")
    for folder in _folders(root):
        target, mode = TARGETS[folder.name]
        for file in sorted(_files(folder), key=lambda file: file.name):
            key = file_key(f"{folder.name}/{file.name}")
            if key in metadata:
                raise GuestFilesError(f"two files have the metadata key {key}")
            metadata[key] = file.read_text(encoding="utf-8")
            manifest.append(f"{key} {mode} {target}/{file.name}\n")
    metadata["multinic-files"] = "".join(sorted(manifest))
    return metadata


def _folders(root: Traversable) -> list[Traversable]:
    folders = [entry for entry in root.iterdir() if entry.is_dir() and not entry.name.startswith(("_", "."))]
    for folder in folders:
        if folder.name not in TARGETS:
            raise GuestFilesError(f"guest/{folder.name}: no place on a router is known for this folder")
    return sorted(folders, key=lambda folder: folder.name)


def _files(folder: Traversable) -> list[Traversable]:
    # Python leaves __pycache__ where the tests import the guest's modules.
    entries = [
        entry for entry in folder.iterdir() if not entry.name.startswith(("_", ".")) or entry.name == "__init__.py"
    ]
    for entry in entries:
        if not entry.is_file():
            raise GuestFilesError(f"guest/{folder.name}/{entry.name}: only plain files can be put on a router")
    return entries


def render(fleet: FleetSettings) -> dict[str, str]:
    """Returns the whole instance metadata of a fleet's routers.

    The same settings give the same text, sorted and without time or chance, so nothing is replaced that did not
    change. Whether it is small enough is a rule of the settings, see `oversize`.
    """
    metadata = dict(read_files()) | dict(fleet.machine.metadata)
    metadata["multinic-config"] = _json(guest_config(fleet))
    if fleet.routes_by_destination:
        metadata["multinic-networks"] = _json(
            [{"cidrs": [str(cidr) for cidr in sorted(n.cidrs)]} for n in fleet.networks]
        )
    if fleet.machine.startup_script:
        metadata["multinic-user-startup-script"] = fleet.machine.startup_script
    return dict(sorted(metadata.items()))


def guest_config(fleet: FleetSettings) -> dict[str, Any]:
    """Returns what the guest must know beyond its own metadata, as plain values."""
    health = fleet.health
    return {
        "version": 1,
        "heal_port": health.heal.port,
        "traffic_port": health.traffic.port,
        "request_path": REQUEST_PATH,
        "drain_seconds": health.drain_sec,
        "clamp_mss": fleet.machine.clamp_mss,
        "networks": [{"mtu": network.mtu} for network in fleet.networks],
    }


def _json(value: object) -> str:
    return json.dumps(value, indent=2, sort_keys=True) + "\n"


def oversize(metadata: Mapping[str, str]) -> list[str]:
    """Returns what is too large in the metadata, one sentence each."""
    sizes = {key: len(key) + len(value.encode()) for key, value in metadata.items()}
    found = [
        f"{key} is {size} bytes long; multinic sends at most {MAX_KEY_BYTES} a key"
        for key, size in sizes.items()
        if size > MAX_KEY_BYTES
    ]
    if (total := sum(sizes.values())) > MAX_ALL_BYTES:
        found.append(f"all metadata together is {total} bytes long; multinic sends at most {MAX_ALL_BYTES}")
    return found

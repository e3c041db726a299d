"""Where the programs keep things. Every place can be moved: tests share no file with the machine they run on."""

from __future__ import annotations

import os

RUN = os.environ.get("RUNTIME_DIRECTORY", "/run/multinic")
"""Of this boot only: verdict, lock, the metadata last read. systemd sets the variable in units."""

ETC = os.environ.get("CONFIGURATION_DIRECTORY", "/etc/multinic")
"""Written by the start-up script: the ports, for health endpoints that start before any metadata is there."""

IPROUTE2 = os.environ.get("MULTINIC_IPROUTE2", "/etc/iproute2")
"""Where iproute2 reads names of tables and protocols from (absent on Debian 13, read there all the same)."""

SYSCTL = os.environ.get("MULTINIC_SYSCTL", "/proc/sys")
"""Root of the sysctl tree."""

LINKS = "/sys/class/net"
"""The interfaces, one folder each."""

VERDICT = os.path.join(RUN, "verdict.json")
LOCK = os.path.join(RUN, "lock")
STOPPED = os.path.join(RUN, "stopped")
METADATA = os.path.join(RUN, "metadata.json")
NFT_LOADED = os.path.join(RUN, "nft.json")
SPOOL = os.path.join(RUN, "log")
CONFIG = os.path.join(ETC, "config.json")


def write(path: str, text: str, mode: int = 0o644) -> None:
    """Replaces a file in one step: a reader sees the old text or the new one, never half of it.

    Where there is no room for a second file, it writes into the one that is there: on a full /run the verdict must
    not become old. A reader who meets it half written finds no JSON, as before the first.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    beside = f"{path}.{os.getpid()}"
    try:
        _fill(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), text, mode)
        os.replace(beside, path)
    except OSError:
        if os.path.exists(beside):
            os.unlink(beside)
        if not os.path.exists(path):
            raise
        _fill(os.open(path, os.O_WRONLY), text, mode)


def _fill(descriptor: int, text: str, mode: int) -> None:
    with open(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, mode)  # Whatever the umask of who calls us by hand: the endpoints are nobody's.
        file.write(text)
        file.truncate()


def read(path: str) -> str | None:
    """The file's text, or None when there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None

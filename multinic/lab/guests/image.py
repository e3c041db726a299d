"""The guests' root filesystem, built once from the host's own package sources and kept in a cache.

Two read-only layers lie under every guest's own: the packages (some 25 s to build, one for each list of packages and
release) and the lab's few files (`image/`), so that a changed file costs nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from multinic.lab.errors import LabError
from multinic.lab.guests import apt_sources

PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "udev"),
    *("iproute2", "iputils-ping", "nftables", "iperf3", "procps", "python3"),
)
"""What Google's images have and routers and measurements need. No curl, no gcloud: nothing may need them."""

AGENT = ("google-guest-agent", "network-manager")
"""Others that manage NICs: Debian's package of Google's guest agent and script runner, of 2021 (Google's own have
newer ones), and NetworkManager, as on Rocky and CentOS; it is off until something starts it."""

RECIPE = "2"
"""Counts the changes of how the packages become a root filesystem."""

FILES = {
    "google_metadata_script_runner": ("usr/bin/google_metadata_script_runner", 0o755),
    "hosts": ("etc/hosts", 0o644),
    "journald.conf": ("etc/systemd/journald.conf.d/lab.conf", 0o644),
    "lab-nic0": ("usr/lib/multinic-lab/lab-nic0", 0o755),
    "lab-nic0.service": ("etc/systemd/system/lab-nic0.service", 0o644),
    "lab-startup-script.service": ("etc/systemd/system/lab-startup-script.service", 0o644),
}
"""File in `image/` → target in the guest and its mode."""

ENABLED = {
    "lab-nic0.service": ("network-online.target", "multi-user.target"),
    "lab-startup-script.service": ("multi-user.target",),
}
IN_PLACE_OF_AGENT = ("google_metadata_script_runner", "lab-startup-script.service")
"""Files that an image with the agent does not need."""
FOR_AGENT = {"dhclient": ("usr/sbin/dhclient", 0o755)}
"""Files that only an image with the agent needs: it gives up all of a NIC's affairs where there is no DHCP client."""
MASKED = (
    # A guest has no console to log in at, no disk of its own and no hardware; each of these costs memory or time.
    *(
        "console-getty.service",
        "getty@.service",
        "getty.target",
        "systemd-logind.service",
        "dbus-org.freedesktop.login1.service",
    ),
    *(
        "systemd-udevd.service",
        "systemd-udev-trigger.service",
        "systemd-udev-settle.service",
        "systemd-hwdb-update.service",
    ),
    *("systemd-firstboot.service", "systemd-sysusers.service", "systemd-update-utmp.service", "systemd-pstore.service"),
    *("systemd-update-utmp-runlevel.service", "systemd-user-sessions.service", "systemd-ask-password-wall.path"),
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "fstrim.timer", "e2scrub_all.timer"),
    *("e2scrub_reap.service", "systemd-tmpfiles-clean.timer", "systemd-journal-flush.service", "ldconfig.service"),
    *("systemd-modules-load.service", "systemd-binfmt.service", "keyboard-setup.service", "console-setup.service"),
    # The guest's own nftables rules, if any, come from its scripts; the distribution's empty set would only flush them.
    "nftables.service",
)

ON_CALL = ("dbus.service", "NetworkManager.service", "NetworkManager-wait-online.service")
"""Units that packages have start at boot."""

UNUSED_SECONDS = 30 * 24 * 3600
"""A layer that no lab has been started on for so long goes when another one is built."""

SPACE_NEEDED = 1_500_000_000
"""Bytes free while building: packages, their archives and lists."""


class ImageError(LabError):
    """The image cannot be built; the text says why and what to do."""


@dataclass(frozen=True)
class Image:
    """What lies under every guest.

    Attributes:
        layers: Read-only folders for overlayfs, uppermost first.
    """

    layers: tuple[Path, ...]


def cache_home() -> Path:
    """``$XDG_CACHE_HOME/multinic``, by default ``~/.cache/multinic``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "multinic"


def ensure(
    progress: Callable[[str], None] = lambda _: None,
    cache: Path | None = None,
    *,
    agent: bool = False,
    more: Sequence[str] = (),
    release: str = "",
) -> Image:
    """The guests' image, built if it is not in the cache.

    Safe against being killed, and against a second caller at the same time: what is in its place is complete.

    Args:
        progress: Called with a line of text now and then while it builds.
        cache: Folder to keep images in; default ``images`` in `cache_home`.
        agent: With Google's guest agent, whose script runner then takes the place of the lab's own, and NetworkManager.
        more: Further packages of the distribution, for measurements that need them.
        release: Code name, such as ``trixie``; the host's own if empty. Its packages come from the host's own places.

    Raises:
        ImageError: With what is missing and how to get it.
    """
    folder = cache or cache_home() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    codename = release or apt_sources.release_codename()
    names = (*PACKAGES, *(AGENT if agent else ()), *more)
    chosen = dict(FILES)
    if agent:
        chosen = {n: file for n, file in FILES.items() if n not in IN_PLACE_OF_AGENT} | FOR_AGENT
    packages = folder / f"packages-{_digest(codename, RECIPE, *names)}"
    files = folder / f"files-{_digest(*_file_recipe(chosen))}"
    if not (packages.is_dir() and files.is_dir()):
        with (folder / ".lock").open("a") as lock:
            _take(lock.fileno(), progress)
            _clear_unfinished(folder)
            if not packages.is_dir():
                _build(packages, lambda draft: _bootstrap(draft, codename, names, progress))
            if not files.is_dir():
                _build(files, lambda draft: _write_files(draft, chosen))
            _touch(files, packages)
            _clear_unused(folder)
    _touch(files, packages)
    return Image((files, packages))


def _digest(*parts: str | bytes) -> str:
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "big") + data)
    return total.hexdigest()[:16]


def _file_recipe(files: Mapping[str, tuple[str, int]]) -> list[str | bytes]:
    source = Path(__file__).with_name("image")
    contents = [(source / name).read_bytes() for name in sorted(files)]
    return [repr(sorted(files.items())), repr(sorted(ENABLED.items())), *MASKED, *contents]


def _take(lock: int, progress: Callable[[str], None]) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        progress("waiting for another build of the guests' image")
        fcntl.flock(lock, fcntl.LOCK_EX)


def _clear_unfinished(folder: Path) -> None:
    """Removes what killed builds left. Their mounts went with their mount namespace."""
    for draft in folder.glob(".unfinished-*"):
        shutil.rmtree(draft)


def _touch(*layers: Path) -> None:
    for layer in layers:
        os.utime(layer)


def _clear_unused(folder: Path) -> None:
    """Removes layers that no lab has been started on for long: those of earlier versions and releases."""
    for layer in (*folder.glob("packages-*"), *folder.glob("files-*")):
        if time.time() - layer.stat().st_mtime > UNUSED_SECONDS:
            shutil.rmtree(layer, ignore_errors=True)


def _build(target: Path, make: Callable[[Path], None]) -> None:
    draft = target.with_name(f".unfinished-{target.name}")
    try:
        make(draft)
        draft.rename(target)
    finally:
        if draft.exists():
            shutil.rmtree(draft, ignore_errors=True)


def _bootstrap(draft: Path, codename: str, names: Sequence[str], progress: Callable[[str], None]) -> None:
    if shutil.which("mmdebstrap") is None:
        raise ImageError("mmdebstrap is missing, which builds the guests' image: apt-get install mmdebstrap")
    own = apt_sources.release_codename()
    sources = apt_sources.of_release(apt_sources.distribution_sources(own), own, codename) if own else []
    if not sources:
        raise ImageError(
            "no Debian or Ubuntu package source for this release in /etc/apt: the guests' packages come from there"
        )
    free = shutil.disk_usage(draft.parent).free
    if free < SPACE_NEEDED:
        raise ImageError(
            f"{draft.parent} has {free // 10**6} MB free, building the guests' image needs {SPACE_NEEDED // 10**6} MB: "
            "free some, or set XDG_CACHE_HOME to a place with more"
        )
    progress(f"building the guests' image ({codename}, about half a minute, once)")
    excluded = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
    command = [
        # Mounts and processes of a build end with it, also when we are killed.
        *("setpriv", "--pdeathsig", "KILL"),
        *("unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"),
        *("mmdebstrap", "--mode=root", "--variant=minbase", f"--include={','.join(names)}"),
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in excluded),
        # The host's own indexes may be a snapshot of some past day.
        '--aptopt=Acquire::Check-Valid-Until "false"',
        *(f"--aptopt={option}" for option in apt_sources.proxy_options()),
        *("--format=directory", codename, str(draft), "-"),
    ]
    _run(command, "\n".join(map(str, sources)) + "\n", progress)
    # The host's name would beat the VM's; an empty id is filled in at each VM's first boot.
    (draft / "etc/hostname").unlink(missing_ok=True)
    (draft / "etc/machine-id").write_text("")
    # Start when somebody calls them, which in a router nobody does.
    for folder, unit in itertools.product(("usr/lib", "lib", "etc"), ON_CALL):
        for wanting in ("multi-user", "network-online"):
            (draft / folder / f"systemd/system/{wanting}.target.wants/{unit}").unlink(missing_ok=True)


def _run(command: list[str], text: str, progress: Callable[[str], None]) -> None:
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    assert process.stdin is not None and process.stdout is not None
    lines: list[str] = []

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            line = line.rstrip()
            if line:
                lines.append(line)
            # mmdebstrap's own steps are "I: …"; the rest is apt's talk.
            if line.startswith("I: ") and not line.startswith("I: running"):
                progress(line.removeprefix("I: "))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        process.stdin.write(text)
        process.stdin.close()
        code = process.wait()
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        reader.join()
        process.stdout.close()
    if code != 0:
        reason = next(
            (line for line in reversed(lines) if line.startswith(("E: ", "Err:"))), lines[-1] if lines else ""
        )
        raise ImageError(
            f"mmdebstrap could not build the guests' image (exit code {code}): {reason}. "
            "It fetches from the sources in /etc/apt: see whether `apt-get update` works here"
        )


def _write_files(draft: Path, files: Mapping[str, tuple[str, int]]) -> None:
    source = Path(__file__).with_name("image")
    for name, (target, mode) in files.items():
        path = draft / target
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, path)
        path.chmod(mode)
    units = draft / "etc/systemd/system"
    for unit, targets in ENABLED.items():
        for wanting in targets if unit in files else ():
            (units / f"{wanting}.wants").mkdir(exist_ok=True)
            (units / f"{wanting}.wants" / unit).symlink_to(f"/etc/systemd/system/{unit}")
    for unit in MASKED:
        (units / unit).symlink_to("/dev/null")
    # The uppermost layer decides a folder's mode in the guest, whatever the umask of who builds it.
    for path in (draft, *draft.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)

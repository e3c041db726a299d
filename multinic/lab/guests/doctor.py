"""What of the lab works on this machine, each failure with a sentence and a cure."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from multinic.lab import inotify
from multinic.lab.guests import apt_sources, image

PROGRAMS = {
    "ip": "iproute2",
    "mmdebstrap": "mmdebstrap",
    "nft": "nftables",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "systemd-nspawn": "systemd-container",
    "tc": "iproute2",
}
"""Program → Debian's package."""

RULES = """
table ip try {
  set f { typeof iifname . ct id; size 16; flags dynamic,timeout; timeout 600s; }
  map m { type ipv4_addr . ipv4_addr : mark; size 16; flags dynamic,timeout; timeout 600s; }
  chain one { type filter hook prerouting priority mangle; policy accept;
    ip saddr 192.0.2.1 meta mark set jhash ip saddr . ip daddr . ip protocol . th sport mod 2 seed 0x1
    meta mark set meta mark map { 0 : 1, 1 : 2 }
    ct state established ct mark set meta mark
    iifname . ct id @f update @f { iifname . ct id } accept
    ip daddr vmap { 192.0.2.0-192.0.2.9 : accept }
    ip ttl set 64
    update @m { ip saddr . ip daddr timeout 600s : meta mark }
  }
}
"""


@dataclass(frozen=True)
class Check:
    """One thing that guests need, or can use.

    Attributes:
        what: In a few words.
        problem: Why it does not work and how to cure it; None if it works.
        needed: False if guests run without it.
    """

    what: str
    problem: str | None = None
    needed: bool = True


def checks() -> list[Check]:
    """Tries all that guests need, in namespaces that are gone afterwards; stops where going on makes no sense."""
    found: list[Check] = []
    for what, attempt in _ATTEMPTS.items():
        found.append(Check(what, attempt(), needed=what not in _OPTIONAL))
        if found[-1].problem and what in _GROUND:
            break
    return found


def why_no_guests() -> str | None:
    """Why guests cannot run on this machine, with the cure; None if they can."""
    return next((check.problem for check in checks() if check.problem and check.needed), None)


def _linux() -> str | None:
    if platform.system() != "Linux":
        return f"Guests need Linux, and this is {platform.system()}: use a Debian or Ubuntu machine."
    return None


def _root() -> str | None:
    return None if os.geteuid() == 0 else "Guests need root: run it with sudo."


def _programs() -> str | None:
    missing = sorted({package for name, package in PROGRAMS.items() if shutil.which(name) is None})
    return f"Programs are missing: apt-get install {' '.join(missing)}" if missing else None


def _try(script: str, text: str = "") -> str | None:
    """Runs a shell script in namespaces of its own; what it said if it failed."""
    command = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec", script]
    ended = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=60)
    return None if ended.returncode == 0 else (ended.stderr.strip().splitlines() or ["it failed"])[-1]


def _namespaces() -> str | None:
    said = _try("mount -t tmpfs tmpfs /run && mkdir /run/netns && ip netns add try")
    if said is None:
        return None
    return f"Mount, process and network namespaces do not work here ({said}): in a container, run it privileged."


def _cgroup() -> str | None:
    said = _try("umount --recursive --lazy /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup")
    if said is None:
        return None
    return f"cgroup2 cannot be mounted here ({said}): guests need a kernel with it, and in a container --privileged."


def _nftables() -> str | None:
    said = _try("nft -f -", RULES)
    if said is None:
        return None
    return (
        f"The kernel or nft lacks what steering needs ({said}): use nftables 1.0 or newer and a kernel with nf_tables."
    )


def _veth() -> str | None:
    said = _try("ip link add try0 type veth peer name try1")
    return None if said is None else f"veth devices do not work here ({said}): use a kernel with CONFIG_VETH."


def _caps() -> str | None:
    said = _try(
        "ip link add q0 type veth peer name q1; tc qdisc add dev q0 root tbf rate 1gbit burst 128kb limit 256kb; "
        "tc qdisc add dev q1 clsact; tc filter add dev q1 ingress bpf direct-action bytecode '1,6 0 0 0'"
    )
    if said is None:
        return None
    return (
        f"What VMs send is not capped here ({said}): bandwidth is then the machine's. It needs a kernel with "
        "CONFIG_NET_SCH_TBF, CONFIG_NET_SCH_INGRESS, CONFIG_NET_CLS_BPF and CONFIG_BPF_SYSCALL."
    )


def _overlay() -> str | None:
    """Tried where disks of guests lie by default: another overlay, for one, cannot hold them."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".multinic-try-") as place:
        said = _try(
            f"cd '{place}'; mkdir l u w m; mount -t overlay overlay -o lowerdir=l,upperdir=u,workdir=w m; umount m"
        )
    if said is None:
        return None
    return f"overlayfs does not work on {folder} ({said}): set XDG_STATE_HOME to a folder on ext4 or xfs."


def _space() -> str | None:
    folder = image.cache_home()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free >= image.SPACE_NEEDED:
        return None
    return (
        f"{folder} has {free // 10**6} MB free and the guests' image needs {image.SPACE_NEEDED // 10**6} MB while "
        "it is built: free some, or set XDG_CACHE_HOME to a place with more."
    )


def _inotify() -> str | None:
    if not inotify.LIMIT.exists():
        return "Guests' systemd needs inotify: use a kernel with CONFIG_INOTIFY_USER."
    limit = int(inotify.LIMIT.read_text())
    if limit >= inotify.NEEDED or os.access(inotify.LIMIT, os.W_OK):
        return None
    return (
        f"fs.inotify.max_user_instances is {limit} and cannot be changed from here: some {limit // inotify.PER_GUEST} "
        f"guests of all labs can run at once. On the host: sysctl fs.inotify.max_user_instances={inotify.NEEDED}"
    )


def _sources() -> str | None:
    if apt_sources.distribution_sources(apt_sources.release_codename()):
        return None
    return "There is no Debian or Ubuntu package source in /etc/apt, from which the guests' image is built: add one."


_ATTEMPTS: dict[str, Callable[[], str | None]] = {
    "Linux": _linux,
    "root": _root,
    "programs": _programs,
    "namespaces": _namespaces,
    "cgroup2": _cgroup,
    "veth": _veth,
    "nftables": _nftables,
    "egress caps": _caps,
    "overlayfs": _overlay,
    "inotify": _inotify,
    "disk space": _space,
    "package sources": _sources,
}
_GROUND = {"Linux", "root", "programs", "namespaces"}
_OPTIONAL = {"egress caps", "inotify"}

"""Docker Engines of our own, one a network namespace, joined to a swarm.

The engine comes from the distribution's package docker.io, in a root filesystem that the lab's image builder makes and
caches: nothing is installed on this machine. Each engine is a tree of processes that the kernel ends with the process
that started it, however that ends; what a kernel does not clear (empty control groups, an empty folder) a keeper does.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from multinic.lab.guests import image as guest_image
from multinic.measure.errors import MeasureError
from multinic.measure.shell import Shell, process

PACKAGES = ("docker.io", "ethtool", "iptables")
SCRIPT = Path(__file__).with_name("node.sh")
READY_SECONDS = 90.0
IMAGE = "multinic/measure"
"""Name of the image that containers run: iperf3 and a few tools of the node's own, made here. Nothing is pulled."""
PROGRAMS = ("iperf3", "cat", "mktemp", "rm", "sh", "sleep", "timeout")
IMPORT = """
set -euo pipefail
root=$(mktemp --directory)
for name in "$@"; do
  for file in "$(command -v "$name")" $(ldd "$(command -v "$name")" | grep --only-matching '/[^ ]*'); do
    mkdir -p "$root${file%/*}"
    cp --dereference "$file" "$root$file"
  done
done
mkdir -p "$root/tmp"
tar --create --directory="$root" . | docker import - "$IMAGE"
rm -r "$root"
"""
WITHOUT_OFFLOADS = """
set -euo pipefail
for net in /proc/self/ns/net /run/docker/netns/*; do
  for device in $(nsenter --net="$net" ip -o link | cut -d: -f2 | cut -d@ -f1); do
    [ "$device" = lo ] || nsenter --net="$net" ethtool -K "$device" tso off gso off gro off 2>/dev/null || true
  done
done
"""


class Node:
    """One Docker Engine in one network namespace.

    Attributes:
        name: Host name.
        address: By which the other nodes reach it.
        shell: Runs programs beside the engine: its files, its processes, its network.
    """

    def __init__(
        self, name: str, address: str, network: str, layer: Path, folder: Path, cgroup: str, pool: int
    ) -> None:
        """Starts it.

        Args:
            name: Host name.
            address: Of its NIC.
            network: File of its network namespace.
            layer: Read-only root filesystem that has the engine.
            folder: For its files, which lie in memory.
            cgroup: Parent of its containers' control groups.
            pool: Second byte of the addresses of its bridges, 172.POOL.0.0/16.

        Raises:
            MeasureError: It does not come up; with the end of its log.
        """
        self.name = name
        self.address = address
        self.log = folder / f"{name}.log"
        mount = folder / name
        mount.mkdir()
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "NODE": name,
            "IMAGE": str(layer),
            "FOLDER": str(mount),
            "CGROUP": cgroup,
            "POOL": f"172.{pool}.0.0/16",
        }
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    # The engine and all that it starts end with us, also when we are killed.
                    *("setpriv", "--pdeathsig", "KILL", "nsenter", f"--net={network}"),
                    *("unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child=KILL"),
                    *("--propagation", "private", "bash", str(SCRIPT)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )
        deadline = time.monotonic() + READY_SECONDS
        while True:
            first = _child_of(self._process.pid)
            if first is not None:
                self.shell = process(first, name)
                if self.shell.attempt(["docker", "version"])[0] == 0:
                    return
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = self.log.read_text(errors="replace").strip().splitlines()[-4:]
                self.end()
                raise MeasureError(f"the Docker Engine of {name} does not come up: {' | '.join(said)}")
            time.sleep(0.1)

    def docker(self, *words: str, timeout: float = 60) -> str:
        """Runs a `docker` command and returns what it printed, without the end of the line."""
        return self.shell.run(["docker", *words], timeout=timeout).strip()

    def import_image(self) -> None:
        """Makes the image that containers run."""
        self.shell.run(["env", f"IMAGE={IMAGE}", "bash", "-c", IMPORT, "import", *PROGRAMS])

    def without_offloads(self) -> None:
        """Turns segmentation and its opposite off on all devices of the node, so that a packet is a packet."""
        self.shell.run(["bash", "-c", WITHOUT_OFFLOADS])

    def run_container(self, name: str, network: str) -> None:
        """Starts a container that waits, joined to a network; its programs may choose a congestion control."""
        joined = ("--name", name, "--network", network, "--cap-add", "NET_ADMIN")
        self.docker("run", "--detach", *joined, IMAGE, "sleep", "infinity")

    def remove_container(self, name: str) -> None:
        """Removes a container, at once."""
        self.docker("rm", "--force", name)

    def address_in(self, container: str, network: str) -> str:
        """A container's address in a network."""
        described = json.loads(self.docker("inspect", container))[0]
        return str(described["NetworkSettings"]["Networks"][network]["IPAddress"])

    def in_container(self, container: str) -> Shell:
        """Runs programs in a container, by `docker exec`."""
        return self.shell.inside(f"{container} on {self.name}", "docker", "exec", container)

    def network_of(self, container: str) -> Shell:
        """Runs the node's own programs in a container's network: it has no Python and no tools of its own."""
        process = self.docker("inspect", "--format", "{{.State.Pid}}", container)
        return self.shell.inside(f"{container} on {self.name}", "nsenter", "--target", process, "--net", "--")

    def engine(self) -> str:
        """Version of the engine."""
        return self.docker("version", "--format", "{{.Server.Version}}")

    def end(self) -> None:
        """Ends the engine and all that it started: process 1 of the namespace first, so that it is waited for."""
        first = _child_of(self._process.pid)
        if first is None:
            self._process.kill()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(first, signal.SIGKILL)
        self._process.wait()


def _child_of(parent: int) -> int | None:
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            if int(status.read_text().rpartition(")")[2].split()[1]) == parent:
                return int(status.parent.name)
    return None


@contextlib.contextmanager
def swarm(places: Sequence[tuple[str, str, str]], say: Callable[[str], None]) -> Iterator[list[Node]]:
    """A swarm of Docker Engines for as long as the block lasts.

    Args:
        places: For each node its name, its address and the file of its network namespace; the first one is the manager.
        say: Gets a line now and then.

    Raises:
        MeasureError: An engine does not come up, or does not join.
    """
    if os.geteuid() != 0:
        raise MeasureError("a Docker Engine of our own needs root: run it with sudo")
    layer = guest_image.ensure(say, more=PACKAGES).layers[-1]
    # Not below /tmp or /run, which the node's own may cover.
    folder = Path(tempfile.mkdtemp(prefix="engines-", dir=guest_image.cache_home()))
    cgroup = f"multinic-{folder.name}"
    with _keeper(folder, cgroup):
        nodes: list[Node] = []
        try:
            for index, (name, address, network) in enumerate(places):
                nodes.append(Node(name, address, network, layer, folder, cgroup, 30 - index))
                nodes[-1].import_image()
            manager = nodes[0]
            manager.docker("swarm", "init", "--advertise-addr", manager.address, "--default-addr-pool", "10.200.0.0/16")
            token = manager.docker("swarm", "join-token", "--quiet", "worker")
            for node in nodes[1:]:
                node.docker(
                    *("swarm", "join", "--token", token, "--advertise-addr", node.address, f"{manager.address}:2377")
                )
            say(f"Docker Engine {manager.engine()}, a swarm of {', '.join(node.name for node in nodes)}")
            yield nodes
        finally:
            for node in nodes:
                node.end()


@contextlib.contextmanager
def _keeper(folder: Path, cgroup: str) -> Iterator[None]:
    """Has a process by our side that clears up when we are gone, whatever ended us."""
    keeper = subprocess.Popen(
        [sys.executable, "-m", "multinic.measure.engine.keeper", str(folder), cgroup],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield
    finally:
        assert keeper.stdin is not None
        keeper.stdin.close()
        keeper.wait()
        shutil.rmtree(folder, ignore_errors=True)

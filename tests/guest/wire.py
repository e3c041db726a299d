"""A router's surroundings in network namespaces: one a VPC network, one for the router, and a metadata server.

Each network namespace is client, server, prober and Google's virtual router of that network at once. Everything has a
name of its own for each use, and is removed whatever happens to the test.
"""

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trees import mac, tree

GUEST = Path(__file__).parents[2] / "guest"
PYTHON = "/usr/bin/python3"
PROBER = "35.191.0.10"
WAIT = 60.0
"""Seconds until a test gives up on an event; all of them take well under one on an idle machine."""


class Wire:
    """Namespaces `r` (router) and `0`, `1`, … (networks 10.N.0.0/24; far network 172.(16+N).0.0/16 behind each)."""

    def __init__(
        self, folder: Path, nics: int = 2, mtus: dict[int, int] | None = None, late: tuple[int, ...] = ()
    ) -> None:
        self.folder, self.nics = folder, nics
        self.prefix = f"mnt{os.getpid() % 100000:x}{secrets.token_hex(2)}"
        self.mtus = {index: (mtus or {}).get(index, 1460) for index in range(nics)}
        self.processes: list[subprocess.Popen[str]] = []
        self.tree_file = folder / "tree.json"
        self.environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "RUNTIME_DIRECTORY": str(folder / "run"),
            "CONFIGURATION_DIRECTORY": str(folder / "etc"),
            "MULTINIC_IPROUTE2": str(folder / "iproute2"),
        }
        for name in ("r", *map(str, range(nics))):
            subprocess.run(["ip", "netns", "add", self.ns(name)], check=True)
            self.ip(name, "link set lo up")
        self.run(
            "r",
            "sysctl",
            "-qw",
            "net.ipv4.ip_forward=0",
            "net.ipv4.conf.all.rp_filter=1",
            "net.ipv4.conf.default.rp_filter=1",
        )
        for index in range(nics):
            self._network(index)
            if index not in late:
                self.plug(index)
        # As Google's images do: nic0 only, and by DHCP's /32.
        self.ip("r", f"link set {self.nic(0)} up")
        self.ip("r", f"addr add 10.0.0.2/32 dev {self.nic(0)}")
        self.ip("r", f"route add 10.0.0.1 dev {self.nic(0)} scope link")
        self.ip("r", f"route add default via 10.0.0.1 dev {self.nic(0)}")

    def ns(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def nic(self, index: int) -> str:
        return f"ens{4 + index}"

    def _network(self, index: int) -> None:
        name = str(index)
        self.run(
            name,
            "sysctl",
            "-qw",
            "net.ipv4.ip_forward=1",
            "net.ipv4.conf.all.rp_filter=0",
            "net.ipv4.conf.default.rp_filter=0",
            "net.ipv4.conf.all.send_redirects=0",
            "net.ipv4.conf.default.send_redirects=0",
        )
        for address in (
            f"10.{index}.0.1",
            f"10.{index}.0.10",
            f"172.{16 + index}.0.10",
            PROBER,
            *(["169.254.169.254"] if index == 0 else []),
        ):
            self.ip(name, f"addr add {address}/32 dev lo")

    def plug(self, index: int) -> None:
        """Puts NIC `index` into the router and connects it to its network."""
        name, mtu = str(index), self.mtus[index]
        peer = f"peer name {self.nic(index)} netns {self.ns('r')} mtu {mtu} address {mac(index)}"
        self.ip(name, f"link add up{index} mtu {mtu} type veth {peer}")
        self.ip(name, f"link set up{index} up")
        for destination in (f"10.{index}.0.2", f"10.{index}.0.9"):
            self.ip(name, f"route replace {destination} dev up{index} src 10.{index}.0.10")
        for other in range(self.nics):
            if other != index:
                for cidr in (f"10.{other}.0.0/24", f"172.{16 + other}.0.0/16"):
                    self.ip(name, f"route replace {cidr} via 10.{index}.0.2 dev up{index} onlink src 10.{index}.0.10")

    def ip(self, name: str, command: str, check: bool = True) -> str:
        return subprocess.run(
            ["ip", "-n", self.ns(name), *command.split()], check=check, capture_output=True, text=True
        ).stdout

    def run(
        self, name: str, *arguments: str, check: bool = True, timeout: float = WAIT, text: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """A program in a namespace, with the guest's environment."""
        return subprocess.run(
            ["ip", "netns", "exec", self.ns(name), *arguments],
            check=check,
            capture_output=True,
            text=True,
            timeout=timeout,
            input=text,
            env=self.environment,
        )

    def spawn(self, name: str, *arguments: str) -> "subprocess.Popen[str]":
        with (self.folder / f"{len(self.processes)}.log").open("w") as log:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self.ns(name), *arguments],
                stdout=log,
                stderr=log,
                text=True,
                env=self.environment,
            )
        self.processes.append(process)
        return process

    def serve_metadata(self, content: dict[str, Any] | None = None) -> None:
        """Starts the metadata server with a tree."""
        self.set_metadata(content if content is not None else tree(self.nics))
        self.spawn(
            "0",
            sys.executable,
            str(Path(__file__).with_name("metadata_server.py")),
            str(self.tree_file),
            "169.254.169.254",
        )
        self.wait_for(lambda: ":80" in self.run("0", "ss", "-Hltn").stdout)

    def set_metadata(self, content: dict[str, Any]) -> None:
        new = self.tree_file.with_suffix(".new")
        new.write_text(json.dumps(content))
        new.replace(self.tree_file)

    def routing(self, command: str, check: bool = False) -> subprocess.CompletedProcess[str]:
        return self.run("r", PYTHON, "-IS", str(GUEST / "bin/policy-routing"), command, check=check)

    def start(self, *programs: str) -> None:
        """Starts guest programs (``policy-routing watch``, ``hc-traffic`` …) in the router."""
        for program in programs:
            words = program.split()
            self.spawn("r", PYTHON, "-IS", str(GUEST / "bin" / words[0]), *words[1:])

    def stop(self, process: "subprocess.Popen[str]") -> None:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def probe(self, network: int, address: str, port: int = 9001, source: str = PROBER) -> tuple[int, dict[str, Any]]:
        """A health probe; (0, {}) when nothing answers."""
        script = (
            "import socket, sys\n"
            f"s = socket.create_connection(({address!r}, {port}), timeout=2, source_address=({source!r}, 0))\n"
            "s.settimeout(2); s.sendall(b'GET /status.json HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')\n"
            "d = b''\n"
            "while (more := s.recv(65536)): d += more\n"
            "sys.stdout.write(d.decode())\n"
        )
        done = self.run(str(network), sys.executable, "-c", script, check=False)
        head, _, body = done.stdout.partition("\n\n") if "\n\n" in done.stdout else done.stdout.partition("\r\n\r\n")
        return (int(head.split()[1]), json.loads(body)) if done.returncode == 0 and head else (0, {})

    def reasons(self) -> set[str]:
        """Names of the reasons for which the traffic check is closed."""
        return {reason["name"] for reason in self.probe(0, "10.0.0.9")[1].get("reasons", [])}

    def packets(
        self, network: int, what: str, *words: Any, source: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Sends by `packets.py` from a network's host; see there."""
        own = source or f"10.{network}.0.10"
        program = str(Path(__file__).with_name("packets.py"))
        return self.run(str(network), sys.executable, program, what, own, *map(str, words), check=False)

    def ping(self, network: int, destination: str, source: str | None = None) -> bool:
        return self.packets(network, "ping", destination, source=source).returncode == 0

    def serve_packets(self, network: int) -> None:
        """Starts the echo server of a network's host."""
        self.spawn(str(network), sys.executable, str(Path(__file__).with_name("packets.py")), "serve")
        self.wait_for(lambda: ":7007" in self.run(str(network), "ss", "-Hltn").stdout)

    def verdict(self) -> dict[str, Any]:
        try:
            held: dict[str, Any] = json.loads((self.folder / "run/verdict.json").read_text())
            return held
        except FileNotFoundError:
            return {}

    def wait_for(self, condition: Callable[[], Any], what: str = "") -> Any:
        """Waits for an event, and shows the programs' output if it does not come."""
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            result = condition()
            if result:
                return result
            time.sleep(0.02)
        logs = "\n".join(path.read_text() for path in sorted(self.folder.glob("*.log")))
        raise AssertionError(f"did not happen within {WAIT:.0f} s: {what or condition}\n{logs}\n{self.verdict()}")

    def state(self) -> str:
        """Everything that routing consists of, to compare."""
        return "".join(
            self.ip("r", command)
            for command in ("-4 rule show", "-4 route show table all", "-4 addr show", "link show")
        )

    def close(self) -> None:
        for process in self.processes:
            self.stop(process)
        for name in ("r", *map(str, range(self.nics))):
            subprocess.run(["ip", "netns", "del", self.ns(name)], check=False, capture_output=True)


@contextmanager
def wire(folder: Path, **options: Any) -> Iterator[Wire]:
    """A `Wire` that is gone afterwards, also when its making failed half-way."""
    made: Wire = Wire.__new__(Wire)
    try:
        made.__init__(folder, **options)  # type: ignore[misc]
        yield made
    finally:
        if hasattr(made, "processes"):
            made.close()

"""A running lab as its users see it: the REST front door, and how to start and stop one."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, NoReturn, cast

from multinic.lab.errors import LabError

DEFAULT_PORT = 8470
PROJECT = "lab"
READY = "lab: the front door answers"
"""What the daemon prints once it can be used."""


@dataclass(frozen=True)
class Lab:
    """Where a lab answers.

    Attributes:
        endpoint: ``http://127.0.0.1:PORT``.
        token: What its front door wants as bearer token.
        folder: Holds objects, disks of the guests, log and control socket.
        process: Id of its outermost process, where this process started it.
    """

    endpoint: str
    token: str
    folder: Path
    process: int | None = None

    @classmethod
    def of(cls, folder: Path) -> Lab:
        """The lab that runs in this folder.

        Raises:
            LabError: No lab runs there.
        """
        try:
            described = json.loads((folder / "lab.json").read_text())
        except FileNotFoundError:
            raise LabError(f"no lab runs in {folder}; `multinic lab up` starts one") from None
        except (OSError, ValueError) as error:
            raise LabError(
                f"{folder / 'lab.json'} cannot be read ({error}): end the lab there and start it anew"
            ) from None
        return cls(described["endpoint"], described["token"], folder)

    def request(self, method: str, path: str, body: Any = None, *, timeout: float = 60) -> Any:
        """Sends one request to the front door and returns its JSON.

        Raises:
            LabError: With the message of the lab's answer, or when it does not answer.
        """
        # Loading it takes an eighth of `multinic --help`.
        import urllib.error
        import urllib.request

        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.endpoint}{path}", data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            with suppress(ValueError, KeyError, TypeError):
                text = json.loads(text)["error"]["message"]
            raise LabError(f"{method} {path}: {text}") from None
        except OSError as error:
            raise LabError(f"the lab at {self.endpoint} does not answer ({error})") from None

    def compute(self, method: str, path: str, body: Any = None) -> Any:
        """Like `request`, below ``/compute/v1/projects/PROJECT/``."""
        return self.request(method, f"/compute/v1/projects/{PROJECT}/{path}", body)

    def items(self, path: str) -> list[dict[str, Any]]:
        """The whole list at a compute path."""
        return cast(list[dict[str, Any]], self.compute("GET", path).get("items", []))

    def events(self, after: int = 0) -> list[dict[str, Any]]:
        """What happened in the lab since event number `after`."""
        return cast(list[dict[str, Any]], self.request("GET", f"/lab/v1/events?after={after}")["events"])

    def last_event(self) -> int:
        """Number of the newest event, 0 where nothing has happened yet."""
        return max((event["number"] for event in self.events()), default=0)

    def act(self, machine: str, action: str) -> None:
        """Does something physical to a machine: ``panic``, ``cutPower``, ``preempt``, ``freeze`` or ``thaw``."""
        self.request("POST", f"/lab/v1/machines/{machine}:{action}")

    def act_on_zone(self, zone: str, action: str) -> None:
        """``fail`` takes the power from all of a zone, ``restore`` gives it back."""
        self.request("POST", f"/lab/v1/zones/{zone}:{action}")

    def watch(self) -> NoReturn:
        """Blocks for as long as the lab lives that this process has started.

        Raises:
            LabError: It has ended by itself, or somebody has ended it.
        """
        assert self.process is not None
        # Its exit is left for `running` to take.
        os.waitid(os.P_PID, self.process, os.WEXITED | os.WNOWAIT)
        raise LabError(
            f"the lab has ended without being asked to: {self.folder / 'lab.log'} may say why. Its objects are kept; "
            "start it again"
        )


def require_free_port(port: int) -> None:
    """Raises `LabError` if the front door's port is taken, before anything is started."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise LabError(
                f"port {port} on 127.0.0.1 is in use (`ss -ltnp 'sport = :{port}'` shows by whom); "
                "choose another one: make demo PORT=8471, or --port 8471"
            ) from None


@contextmanager
def running(
    folder: Path,
    *,
    port: int = DEFAULT_PORT,
    boot_delay: float = 0.0,
    speed: float = 1.0,
    egress_scale: float = 1.0,
    nic_names: str = "ens",
    guests: bool = True,
    ephemeral: bool = True,
) -> Iterator[Lab]:
    """Runs a lab for as long as the block lasts; whatever ends this process ends the lab too.

    Args:
        folder: The lab's folder; with `ephemeral` it is removed at the end.
        port: Of the front door on 127.0.0.1.
        boot_delay: Seconds added to each boot of a guest.
        speed: Lab seconds in a real second, for the controllers: cool-down, stabilisation, min ready, draining, checks.
            Guests and packets keep real time, so that much above 10 checks fail guests that still boot.
        egress_scale: Factor on what each machine type may send; 0.05 makes of 10 Gbit/s 500 Mbit/s.
        nic_names: ``ens`` (ens4, ens5 …) or ``eth`` (eth0, eth1 …).
        guests: False runs the control plane only; root is then not needed.
        ephemeral: Remove the folder at the end.

    Raises:
        LabError: The port is taken, packages are missing, or the lab did not come up; with the end of its log.
    """
    if importlib.util.find_spec("uvicorn") is None:
        raise LabError("the lab needs more packages: in a clone, pip install '.[lab]'")
    require_free_port(port)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"{folder} cannot be the lab's folder ({error.strerror}): choose another one") from None
    daemon = [sys.executable, "-m", "multinic.lab.daemon", "--folder", str(folder), "--port", str(port)]
    daemon += ["--boot-delay", str(boot_delay), "--speed", str(speed), "--egress-scale", str(egress_scale)]
    daemon += ["--nic-names", nic_names, *([] if guests else ["--no-guests"])]
    command = daemon
    if guests:
        supervisor = [sys.executable, "-m", "multinic.lab.supervisor", "--folder", str(folder)]
        command = [*supervisor, *(["--ephemeral"] if ephemeral else []), "--", *daemon]
    # An ephemeral lab's log has no name, so that nothing has to remove it.
    with tempfile.TemporaryFile() if ephemeral else (folder / "lab.log").open("w+b") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True)
        try:
            _wait_until_ready(process, log)
            if guests:
                _note_process(folder / "lab.json", process.pid)
            yield replace(Lab.of(folder), process=process.pid)
        finally:
            _end(process)
            if ephemeral:
                shutil.rmtree(folder, ignore_errors=True)


def _note_process(file: Path, pid: int) -> None:
    """Puts the lab's outermost process in the place of the daemon's, whose number is one of its own namespace."""
    described = json.loads(file.read_text()) | {"pid": pid}
    draft = file.with_name(".lab.json.outside")
    draft.touch(0o600)
    draft.write_text(json.dumps(described))
    draft.replace(file)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Closes the pipe that holds the lab's life, and waits until all is cleared."""
    with process:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        log.seek(0)
        if READY in log.read().decode(errors="replace").splitlines():
            return
        time.sleep(0.05)
    log.seek(0)
    said = log.read().decode(errors="replace").strip().splitlines()
    raise LabError("the lab did not come up: " + ("\n".join(said[-8:]) or "it said nothing"))

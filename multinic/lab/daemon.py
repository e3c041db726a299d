"""The lab's one long-running process: the front door, the cloud behind it, and the machines below."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from multinic.lab import remains
from multinic.lab.api import create_app
from multinic.lab.api import log as cloud_logging
from multinic.lab.client import PROJECT, READY, require_free_port
from multinic.lab.cloud import ApiError, Cloud
from multinic.lab.errors import LabError
from multinic.lab.substrate import NoMachines, Substrate, SubstrateError


class _Server(uvicorn.Server):
    """Leaves signals to the lab, which has machines to end as well."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _token(folder: Path) -> str:
    """The front door's token: made once a folder, readable by its owner only."""
    path = folder / "token"
    with contextlib.suppress(FileNotFoundError):
        if found := path.read_text().strip():
            return found
    _write_secret(path, secrets.token_urlsafe(24))
    return path.read_text()


def _write_secret(path: Path, text: str) -> None:
    """Writes a whole file or none; at no moment can anybody but its owner read it."""
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:  # noqa: PTH123 - for the mode
        file.write(text)
    draft.replace(path)


async def _end_of_parent() -> None:
    """Returns when standard input ends: whoever started the lab is gone."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    while await reader.read(4096):
        pass


@dataclass(frozen=True)
class Options:
    """How the lab runs; see `client.running`.

    Attributes:
        folder: Objects, disks of guests, token, and `lab.json`, which is there while the front door answers.
        port: Of the front door, on 127.0.0.1 only.
        boot_delay: Seconds added to each boot of a guest.
        speed: Lab seconds in a real second, for the controllers.
        egress_scale: Factor on what each machine type may send.
        nic_names: ``ens`` or ``eth``.
        guests: False runs no guests and needs no root.
        strict: Refuse unknown fields in requests, where Google ignores them.
    """

    folder: Path
    port: int
    boot_delay: float
    speed: float
    egress_scale: float
    nic_names: str
    guests: bool
    strict: bool


async def serve(options: Options) -> None:
    """Runs the lab until SIGINT, SIGTERM, or the end of standard input."""
    folder, port = options.folder, options.port
    require_free_port(port)
    # With guests the supervisor holds the lock.
    lock = None if options.guests else remains.lock(folder)
    if lock is None and not options.guests:
        raise LabError(f"a lab runs in {folder} already: use it, end it, or choose another folder")
    door = socket.create_server(("127.0.0.1", port))
    # Answers are small: without this each waits some 40 ms for the client's delayed acknowledgement.
    door.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    substrate: Substrate = NoMachines()
    if options.guests:
        from multinic.lab.guests.linux import LinuxSubstrate

        substrate = await LinuxSubstrate.create(folder, nic_names=options.nic_names)
    cloud = Cloud(
        folder,
        substrate,
        project=PROJECT,
        boot_delay=options.boot_delay,
        strict=options.strict,
        speed=options.speed,
        egress_scale=options.egress_scale,
    )
    substrate.serve_logging(lambda body: cloud_logging.write_of_guest(cloud, body))
    token = _token(folder)
    server = _Server(
        uvicorn.Config(
            create_app(cloud, token),
            log_level="warning",
            lifespan="off",
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=75,  # longer than clients keep a connection, so that none is closed under a request
        )
    )
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    described = folder / "lab.json"
    try:
        await cloud.start()
        serving = asyncio.create_task(server.serve(sockets=[door]))
        while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        facts = {"endpoint": f"http://127.0.0.1:{port}", "token": token, "pid": os.getpid()}
        _write_secret(described, json.dumps(facts))
        sys.stdout.write(READY + "\n")
        sys.stdout.flush()
        ends = [asyncio.create_task(stop.wait()), asyncio.create_task(_end_of_parent()), serving]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        described.unlink(missing_ok=True)
        server.should_exit = True
        await cloud.close()
        with contextlib.suppress(SubstrateError):
            await substrate.close()


def main() -> None:
    """Entry point of ``python -m multinic.lab.daemon``."""
    parser = argparse.ArgumentParser(prog="multinic.lab.daemon", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--boot-delay", type=float, default=0.0)
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--egress-scale", type=float, default=1.0)
    parser.add_argument("--nic-names", choices=("ens", "eth"), default="ens")
    parser.add_argument("--no-guests", dest="guests", action="store_false")
    parser.add_argument("--strict", action="store_true")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        asyncio.run(serve(Options(**vars(given))))
    except (LabError, SubstrateError, ApiError) as error:
        sys.exit(f"lab: {error}")
    except OSError as error:
        where = error.filename or given.folder
        sys.exit(f"lab: {where}: {error.strerror}: free some space or mend it, or choose another --folder")


if __name__ == "__main__":
    main()

"""The process that stands in for the plugins pulumi-gcp and pulumi-random.

``python -m multinic.lab.pulumi.providers`` prints one line for PULUMI_DEBUG_PROVIDERS, such as
``gcp:40001,random:40002``, and serves until its standard input ends. With ``--until-pid`` it goes into the background,
prints its process id as well, and serves until that process is gone.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from multinic.lab.errors import LabError
from multinic.lab.pulumi.random_types import Random
from multinic.lab.pulumi.servicer import Servicer
from multinic.lab.pulumi.stand_in import ENDPOINT_VARIABLE, TOKEN_VARIABLE, Gcp

_CALLS_AT_ONCE = 64
# A router's template with all of its files is larger than gRPC's default of 4 MB only rarely, but it may be.
_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_END_TIMEOUT_S = 5.0


class ProvidersError(LabError):
    """The stand-ins did not start."""


def serve() -> tuple[list[grpc.Server], str]:
    """Start serving both packages and return the servers, to be kept, and the line for PULUMI_DEBUG_PROVIDERS."""
    servers = (
        Servicer("gcp", _version("pulumi-gcp"), Gcp.configured),
        Servicer("random", _version("pulumi-random"), lambda _config: Random()),
    )
    ports = []
    started = []
    for name, servicer in zip(("gcp", "random"), servers, strict=True):
        server = grpc.server(ThreadPoolExecutor(_CALLS_AT_ONCE), options=_OPTIONS)
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
        ports.append(f"{name}:{server.add_insecure_port('127.0.0.1:0')}")
        server.start()
        started.append(server)
    return started, ",".join(ports)


def _version(distribution: str) -> str:
    return metadata.version(distribution)


@contextlib.contextmanager
def running(endpoint: str, token: str) -> Iterator[str]:
    """Run the stand-ins for a lab while the context lasts; yields the line for PULUMI_DEBUG_PROVIDERS.

    Raises:
        ProvidersError: If they do not start.
    """
    command = [sys.executable, "-m", __name__]
    # A session of its own: Ctrl-C is the engine's, which lets what is under way come to an end.
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=_environment(endpoint, token),
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        if not line:
            raise ProvidersError(f"the stand-ins for the Pulumi plugins ended with code {process.wait()}")
        yield line
    finally:
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()


def beside(lab: Path, endpoint: str, token: str) -> str:
    """Return the line for PULUMI_DEBUG_PROVIDERS of the stand-ins that run beside a lab, starting them if need be.

    They end when the lab's daemon does.

    Args:
        lab: The lab's folder, whose ``lab.json`` names the lab's process.
        endpoint: The lab's front door.
        token: Its token.

    Raises:
        ProvidersError: If the lab does not run, or the stand-ins do not start.
    """
    try:
        daemon = int(json.loads((lab / "lab.json").read_text())["pid"])
    except (OSError, ValueError, KeyError) as error:
        raise ProvidersError(f"no lab runs in {lab}; `multinic lab up` starts one") from error
    noted = lab / "providers.json"
    with contextlib.suppress(OSError, ValueError, KeyError):
        known = json.loads(noted.read_text())
        if known["daemon"] == daemon and _alive(known["pid"]):
            return str(known["providers"])
    with (lab / "providers.log").open("ab") as log:
        done = subprocess.run(
            [sys.executable, "-m", __name__, "--until-pid", str(daemon)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            check=False,
            env=_environment(endpoint, token),
        )
    if len(done.stdout.split()) != 2:
        raise ProvidersError(f"the stand-ins for the Pulumi plugins did not start; see {log.name}")
    line, pid = done.stdout.split()
    noted.write_text(json.dumps({"daemon": daemon, "pid": int(pid), "providers": line}))
    return line


def _environment(endpoint: str, token: str) -> dict[str, str]:
    # From a clone, too, where the package is not installed.
    path = os.pathsep.join(filter(None, (str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH"))))
    return dict(os.environ) | {ENDPOINT_VARIABLE: endpoint, TOKEN_VARIABLE: token, "PYTHONPATH": path}


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def main(arguments: list[str], environment: Mapping[str, str] = os.environ) -> int:
    """Serve until told otherwise."""
    parser = argparse.ArgumentParser(prog="python -m multinic.lab.pulumi.providers", description=__doc__)
    parser.add_argument("--until-pid", type=int, help="serve until this process is gone")
    until = parser.parse_args(arguments).until_pid
    if ENDPOINT_VARIABLE not in environment:
        sys.stderr.write(f"{ENDPOINT_VARIABLE} is not set: no lab to serve\n")
        return 1
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    watched = None
    if until is not None:
        try:
            watched = os.pidfd_open(until)
        except ProcessLookupError:
            sys.stderr.write(f"there is no process {until} to serve\n")
            return 1
        # Before any thread or gRPC object is there: the one who asked goes on, the stand-ins stay beside the lab.
        if os.fork():
            os._exit(0)
        os.setsid()
    _servers, line = serve()
    sys.stdout.write(line + "\n")
    if watched is not None:
        sys.stdout.write(f"{os.getpid()}\n")
    sys.stdout.flush()
    if watched is not None:
        # Whoever reads this line waits for the end of the pipe.
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, sys.stdout.fileno())
        # Readable when the process has ended, also when nobody has asked for its exit code yet.
        select.select([watched], [], [])
    else:
        # The other end of the pipe closes with whoever started this, however it ended.
        with contextlib.suppress(KeyboardInterrupt):
            sys.stdin.read()
    # Threads of calls under way are not waited for: the engine that made them is gone.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

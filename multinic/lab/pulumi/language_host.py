"""The language host for Python, which neither PyPI nor the Go module of the CLI carries.

The engine finds ``pulumi-language-python`` on PATH; `environment.launcher` writes one that starts this module with
the interpreter that has the project's packages. It serves the SDK's own language server and prints its port.
"""

from __future__ import annotations

import os
import queue
import runpy
import select
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import grpc
import pulumi
from pulumi.automation._server import LanguageServer
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

_CALLS_AT_ONCE = 8
_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class LanguageHost(LanguageServer):
    """Runs a Pulumi program's folder with this interpreter.

    Attributes:
        engine: Address of the engine.
    """

    def __init__(self, engine: str) -> None:
        # The program is known only when `Run` says where it is.
        super().__init__(lambda: None)
        self.engine = engine

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 the names are gRPC's
        """Nothing to agree on."""
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Return the SDK's version."""
        return plugin_pb2.PluginInfo(version=metadata.version("pulumi"))

    def InstallDependencies(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:  # noqa: N802
        """Install nothing: the packages are those of this interpreter."""
        yield language_pb2.InstallDependenciesResponse(stdout=f"packages are those of {sys.executable}\n".encode())

    def GetProgramDependencies(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Name no dependencies."""
        return language_pb2.GetProgramDependenciesResponse()

    def RuntimeOptionsPrompts(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Ask nothing."""
        return language_pb2.RuntimeOptionsResponse()

    def GenerateProgram(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Show what `pulumi import` has read: the resources as the engine describes them, as a comment.

        Python for them is written by the host that comes with an installed Pulumi, which is not to be had here.
        """
        lines = [
            "# Imported. Declare in your program what the engine has read (names in its own language):",
            *(f"#   {line}" for source in request.source.values() for line in source.splitlines()),
        ]
        return language_pb2.GenerateProgramResponse(source={"__main__.py": "\n".join([*lines, ""]).encode()})

    def RunPlugin(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:  # noqa: N802
        """Run a package's folder as a plugin, and pass on what it says until it ends or the engine lets go."""
        folder = Path(request.info.program_directory)
        process = subprocess.Popen(
            # It ends with this host, also when that is killed.
            ["setpriv", "--pdeathsig", "KILL", sys.executable, str(folder), *request.args],
            cwd=request.pwd or folder,
            env=dict(os.environ) | dict(one.partition("=")[::2] for one in request.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        context.add_callback(process.kill)
        said: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()
        pipes = {"stdout": process.stdout, "stderr": process.stderr}
        for name, pipe in pipes.items():
            assert pipe is not None
            threading.Thread(target=_pass_on, args=(name, pipe, said), daemon=True).start()
        still_open = len(pipes)
        while still_open:
            name, text = said.get()
            still_open -= not text
            if text:
                answer = language_pb2.RunPluginResponse
                yield answer(stdout=text) if name == "stdout" else answer(stderr=text)
        yield language_pb2.RunPluginResponse(exitcode=process.wait())

    def Run(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Run the program."""
        folder = Path(request.info.program_directory)
        entry = request.info.entry_point
        target = folder if entry in ("", ".") else folder / entry
        os.chdir(request.pwd or folder)

        def program() -> None:
            sys.path.insert(0, str(folder))
            try:
                runpy.run_path(str(target), run_name="__main__")
            except (pulumi.RunError, grpc.RpcError):
                raise
            except Exception as error:
                raise pulumi.RunError(told(error, folder)) from error

        self.program = program
        request.args[:] = [self.engine]
        serve: Any = super().Run  # untyped in the SDK
        return serve(request, context)


def told(error: Exception, folder: Path) -> str:
    """Return an error of a program for people: its text, and where in the program it came from.

    Errors about inputs are complete sentences that name the input; a place in the code would only hide them.
    """
    text = str(error).strip()
    if isinstance(error, pulumi.InputPropertyError | pulumi.InputPropertiesError):
        return text
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(folder)
    ]
    ours = [frame for frame in frames if "site-packages" not in frame.filename]
    places = [f"  at {frame.filename}:{frame.lineno}: {frame.line}" for frame in ours]
    return "\n".join([f"{type(error).__name__}: {text}", *places])


def _pass_on(name: str, pipe: IO[bytes], said: queue.SimpleQueue[tuple[str, bytes]]) -> None:
    """Puts what comes out of a pipe into a queue, and nothing at its end."""
    with pipe:
        while text := os.read(pipe.fileno(), 65536):
            said.put((name, text))
    said.put((name, b""))


def _end_with(process: int) -> None:
    select.select([process], [], [])
    os._exit(0)


def main(arguments: list[str]) -> int:
    """Serve the engine whose address is the last argument, and print the port."""
    # The engine sends SIGINT when it is done, and waits five seconds for whoever does not go at once.
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    # An engine that is killed sends nothing: its end is seen by itself.
    engine = os.pidfd_open(os.getppid())
    threading.Thread(target=_end_with, args=(engine,), daemon=True).start()
    server = grpc.server(ThreadPoolExecutor(_CALLS_AT_ONCE), options=_OPTIONS)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(LanguageHost(arguments[-1] if arguments else ""), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    server.wait_for_termination()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""How a program is run somewhere else: on a host by ssh, in a guest of the lab, in a network namespace, in a container.

Everything that measures takes a `Shell` and never asks which kind it is, so what is measured with is the same
everywhere. A shell is a command that takes another command: ``ssh HOST -- …``, ``nsenter --net=… -- …``.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from multinic.measure.errors import MeasureError, WordError

RUN_SECONDS = 60.0
"""How long a program that answers at once may take, ssh through a tunnel included."""


@dataclass(frozen=True)
class Shell:
    """A place to run programs.

    Attributes:
        title: What people call the place.
        prefix: The command that takes another command as its further arguments.
        joins: What follows is joined to one quoted line, as ssh needs it: the other side has a shell.
        further: Commands that take another command over there, such as ``docker exec NAME``.
    """

    title: str
    prefix: tuple[str, ...] = ()
    joins: bool = False
    further: tuple[str, ...] = ()

    def command(self, argv: Sequence[str]) -> list[str]:
        """What runs `argv` there, as this machine's own argument list."""
        there = [*self.further, *argv]
        return [*self.prefix, shlex.join(there)] if self.joins else [*self.prefix, *there]

    def start(self, argv: Sequence[str]) -> subprocess.Popen[str]:
        """Starts a program there; its output and errors are pipes.

        Raises:
            MeasureError: What leads there is not installed.
        """
        try:
            return subprocess.Popen(
                self.command(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        except OSError as error:
            raise MeasureError(f"{self.title}: {self.command(argv)[0]}: {error.strerror}") from None

    def attempt(self, argv: Sequence[str], *, timeout: float = RUN_SECONDS) -> tuple[int, str, str]:
        """Runs a program there to its end: exit code, output, errors.

        Raises:
            MeasureError: It took longer than `timeout` seconds, or what leads there is not installed.
        """
        with self.start(argv) as process:
            try:
                output, errors = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                raise MeasureError(f"{self.title}: {argv[0]} did not end within {timeout:.0f} s") from None
            except BaseException:
                process.kill()
                raise
        return process.returncode, output, errors

    def run(self, argv: Sequence[str], *, timeout: float = RUN_SECONDS) -> str:
        """Runs a program there and returns what it printed.

        Raises:
            MeasureError: Its exit code is not 0, with what it wrote to standard error; or it took too long.
        """
        code, output, errors = self.attempt(argv, timeout=timeout)
        if code != 0:
            said = (errors.strip() or output.strip())[-600:]
            raise MeasureError(f"{self.title}: {argv[0]} ended with exit code {code}: {said or 'it said nothing'}")
        return output

    def inside(self, title: str, *prefix: str) -> Shell:
        """A place that is reached from this one, such as a container of this host."""
        return replace(self, title=title, further=(*self.further, *prefix))


HERE = Shell("this machine")


def ssh(host: str) -> Shell:
    """A host that the user's `ssh` reaches without asking."""
    return Shell(host, ("ssh", "-o", "BatchMode=yes", host, "--"), joins=True)


def gcloud(machine: str, *, project: str, zone: str) -> Shell:
    """A VM by the user's `gcloud`, through Google's Identity-Aware Proxy: it needs no external address.

    https://cloud.google.com/iap/docs/using-tcp-forwarding
    """
    where = ("--tunnel-through-iap", "--quiet", f"--project={project}", f"--zone={zone}", machine)
    return Shell(machine, ("gcloud", "compute", "ssh", *where, "--command"), joins=True)


def guest(folder: Path, machine: str) -> Shell:
    """A guest of the lab in this folder."""
    return Shell(machine, (sys.executable, "-m", "multinic.lab.guests.exec", str(folder), machine, "--"))


def namespace(path: str, title: str) -> Shell:
    """A network namespace by its file, such as ``/run/netns/NAME`` or ``/proc/PID/ns/net``."""
    return Shell(title, ("nsenter", f"--net={path}", "--"))


def process(number: int, title: str) -> Shell:
    """All namespaces of a process of this machine, such as a container's first one."""
    return Shell(title, ("nsenter", "--target", str(number), "--all", "--"))


def container(host: Shell, name: str, *docker: str) -> Shell:
    """A running container of a host.

    Args:
        host: Where its Docker Engine runs.
        name: The container's.
        docker: The `docker` command with its options.
    """
    return host.inside(f"{name} on {host.title}", *(docker or ("docker",)), "exec", name)


def parse(text: str, *, project: str = "", lab: Path | None = None) -> Shell:
    """The place that a user names on the command line.

    ``local``, ``netns:NAME``, ``pid:NUMBER``, ``guest:VM`` (of the lab), ``gcloud:ZONE/VM``, ``ssh:[USER@]HOST``;
    a bare word is an ssh host.

    Raises:
        MeasureError: It is none of these.
    """
    kind, colon, rest = text.partition(":")
    if not text or text.startswith("-") or (colon and (not rest or rest.startswith("-"))):
        raise WordError(f"{text!r} is no place: give local, HOST, ssh:HOST, gcloud:ZONE/VM, guest:VM or netns:NAME")
    if text == "local":
        return HERE
    if kind == "netns" and colon:
        return namespace(f"/run/netns/{rest}", rest)
    if kind == "pid" and colon:
        if not rest.isdigit():
            raise WordError(f"{text}: give the number of a process")
        return process(int(rest), text)
    if kind == "guest" and colon:
        if lab is None:
            raise WordError(f"{text}: which lab? Give its folder with --lab")
        return guest(lab, rest)
    if kind == "gcloud" and colon:
        zone, slash, machine = rest.partition("/")
        if not slash or not machine or not project:
            raise WordError(f"{text}: give gcloud:ZONE/VM, and the project with --project")
        return gcloud(machine, project=project, zone=zone)
    return ssh(rest if kind == "ssh" and colon else text)

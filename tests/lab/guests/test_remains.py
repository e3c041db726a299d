"""What is left of a lab when parts of it, or all, are killed: nothing."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from multinic.lab import remains
from multinic.lab.guests import image
from tests import processes
from tests.lab.guests.test_machines import PATIENCE, lab, machine
from tests.lab.inside import REPOSITORY


async def one_guest(folder: Path) -> None:
    """For the tests that kill: a guest that runs until the end."""
    async with lab(folder) as here:
        await here.substrate.start(machine("g1", 11))
        await here.ready("g1")
        (folder / "ready").touch()
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await stop.wait()


def seen_on_the_host(folder: Path) -> list[str]:
    """What the host sees of the lab in `folder`: mounts, and network namespaces with names as the lab gives them."""
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(folder) in line]
    named = Path("/run/netns")
    names = [path.name for path in named.iterdir()] if named.is_dir() else []
    return mounts + [name for name in names if name.startswith(("vm-", "vpc-lab-"))]


def cgroup_exists(name: str) -> bool:
    script = 'mount -t cgroup2 none /mnt && [ -d "/mnt/$1" ]'
    return subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", name], check=False).returncode == 0


@pytest.mark.guests
@pytest.mark.parametrize("victim", ["daemon", "supervisor", "both", "process 1", "parent", "interrupt"])
def test_nothing_is_left(victim: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "lab"
    daemon = [sys.executable, str(REPOSITORY / "tests/lab/inside.py"), __file__, "one_guest", str(folder)]
    command = [sys.executable, "-m", "multinic.lab.supervisor", "--ephemeral", "--folder", str(folder), "--", *daemon]
    with (tmp_path / "log").open("wb") as log:
        supervisor = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=REPOSITORY)
    try:
        deadline = time.monotonic() + PATIENCE
        while not (folder / "ready").exists():
            assert supervisor.poll() is None and time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.05)
        everybody = {process: processes.words(process) for process in processes.tree(supervisor.pid)}
        first = next(process for process, words in everybody.items() if any(w.endswith("init.py") for w in words[2:3]))
        inner = next(
            process for process, words in everybody.items() if any(w.endswith("inside.py") for w in words[1:2])
        )
        assert any("systemd-nspawn" in word for words in everybody.values() for word in words[:1])
        assert seen_on_the_host(tmp_path) == [], "the lab is not seen on the host, even while it runs"
        cgroup = remains.record_of(folder).cgroup
        assert cgroup_exists(cgroup)
        match victim:
            case "daemon":
                inner.kill()
            case "process 1":
                first.kill()
            case "supervisor":
                supervisor.kill()
            case "both":
                supervisor.kill()
                inner.kill()
            case "parent":
                assert supervisor.stdin is not None
                supervisor.stdin.close()
            case "interrupt":
                supervisor.send_signal(signal.SIGINT)
        supervisor.wait(PATIENCE)
        assert processes.wait_for_end(everybody, PATIENCE) == []
        assert seen_on_the_host(tmp_path) == []
        if victim in ("supervisor", "both"):
            assert remains.clean(tmp_path) == [f"{folder}: cleared"]
        assert not folder.exists()
        assert not cgroup_exists(cgroup)
        assert remains.clean(tmp_path) == []
    finally:
        if supervisor.poll() is None:
            supervisor.kill()
            supervisor.wait()
        assert supervisor.stdin is not None
        supervisor.stdin.close()
        remains.clean(tmp_path)


@pytest.mark.root
def test_a_killed_labs_remains_are_not_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    command = [sys.executable, "-m", "multinic.lab.supervisor", "--folder", str(tmp_path / "lab"), "--"]
    one = subprocess.Popen([*command, "sleep", "600"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=REPOSITORY)
    try:
        deadline = time.monotonic() + PATIENCE
        while not (tmp_path / "lab" / remains.PID).exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        two = subprocess.run([*command, "true"], capture_output=True, text=True, cwd=REPOSITORY, check=False)
        assert two.returncode == 1 and "a lab runs in" in two.stderr, two
        assert remains.clean(tmp_path) == [f"{tmp_path / 'lab'}: a lab runs there, left alone"]
    finally:
        one.kill()
        one.communicate()
    # Without `clean`: the next start takes over.
    try:
        three = subprocess.run([*command, "true"], capture_output=True, text=True, cwd=REPOSITORY, check=False)
        assert three.returncode == 0, three
        assert remains.clean(tmp_path) == []
    finally:
        remains.clean(tmp_path)


BUILD = "import pathlib, sys; from multinic.lab.guests import image; image.ensure(print, pathlib.Path(sys.argv[1]))"


@pytest.mark.guests
def test_a_killed_build_leaves_nothing_wrong(tmp_path: Path) -> None:
    cache = tmp_path / "images"
    build = subprocess.Popen([sys.executable, "-c", BUILD, str(cache)], cwd=REPOSITORY, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE
        # In the middle: packages are being unpacked.
        while not list(cache.glob(".unfinished-*/usr")):
            assert build.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        everybody = processes.tree(build.pid)
    finally:
        build.kill()
        build.wait()
    assert processes.wait_for_end(everybody, PATIENCE) == []
    assert seen_on_the_host(tmp_path) == []
    assert list(cache.glob("packages-*")) == []
    unfinished = list(cache.glob(".unfinished-*"))
    assert unfinished, "it was killed too late to show anything"
    image._clear_unfinished(cache)
    assert list(cache.glob(".unfinished-*")) == []

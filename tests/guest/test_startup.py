"""The start-up and shutdown scripts as they are run on a VM, in a mount namespace over the machine's own files.

`systemctl` is a stand-in that writes down what it is asked; the lab's guests run the real one.
"""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from trees import tree
from wire import GUEST, PYTHON, Wire, wire

pytestmark = pytest.mark.root

TARGETS = {"bin": "/usr/bin", "lib": "/usr/lib/multinic", "systemd": "/etc/systemd/system", "sysctl.d": "/etc/sysctl.d"}
UNITS = "multinic-log.path policy-routing.service policy-routing-watch.service hc-traffic.service hc-health.service"


def attributes(**more: Any) -> dict[str, Any]:
    """As the component renders them."""
    held: dict[str, Any] = {}
    manifest = []
    for folder, target in TARGETS.items():
        for path in (GUEST / folder).iterdir():
            if path.is_file():
                key = "multinic-file-" + re.sub(r"[^a-zA-Z0-9_-]", "-", f"{folder}/{path.name}")
                held[key] = path.read_text()
                manifest.append(f"{key} {'0755' if folder == 'bin' else '0644'} {target}/{path.name}\n")
    held["multinic-files"] = "".join(sorted(manifest))
    held["multinic-config"] = json.dumps({"version": 1, "drain_seconds": 0.2, "networks": [{}, {}]}, indent=2)
    return {**held, **more}


class Machine:
    """The router's namespace with a file system of its own over this machine's."""

    def __init__(self, wire: Wire, disk: Path) -> None:
        self.wire = wire
        self.disk = disk
        self.disk.mkdir()
        self.calls = self.disk / "calls"
        fake = self.disk / "systemctl"
        fake.write_text(f'#!/bin/bash\necho "$@" >>{self.calls}\nexit 0\n')
        fake.chmod(0o755)

    def script(self, name: str, disturb: str = "", **environment: str) -> Any:
        """Runs a script; what it writes stays for the next one. Mounts go with the namespace of the run.

        Args:
            name: Of the script.
            disturb: Shell command that comes before it.
            environment: Its variables.
        """
        self.calls.write_text("")
        mounts = ["set -e"]
        for folder in ("usr", "etc", "var"):
            upper, work = self.disk / f"{folder}-upper", self.disk / f"{folder}-work"
            upper.mkdir(exist_ok=True)
            work.mkdir(exist_ok=True)
            mounts.append(f"mount -t overlay overlay -o lowerdir=/{folder},upperdir={upper},workdir={work} /{folder}")
        mounts.append(f"mount --bind {self.disk}/systemctl /usr/bin/systemctl")
        settings = " ".join(f"{key}={value}" for key, value in environment.items())
        mounts.append(disturb)
        mounts.append(f"exec env {settings} bash {GUEST / name}")
        return self.wire.run("r", "bash", "-c", "\n".join(mounts), check=False)

    def file(self, path: str) -> Path:
        folder, _, rest = path.strip("/").partition("/")
        return self.disk / f"{folder}-upper" / rest

    def asked(self) -> list[str]:
        return self.calls.read_text().splitlines()


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """Network and metadata server, the same for all: with a stand-in for `systemctl` nothing of them changes."""
    with wire(tmp_path_factory.mktemp("startup")) as made:
        made.serve_metadata()
        yield made


@pytest.fixture
def machine(surroundings: Wire, tmp_path: Path) -> Machine:
    """A machine with a disk of its own, on which nothing has run yet."""
    surroundings.set_metadata(tree(attributes=attributes()))
    (surroundings.folder / "run/metadata.json").unlink(missing_ok=True)
    return Machine(surroundings, tmp_path / "disk")


def test_first_boot_installs_all_files_and_starts_the_units(machine: Machine) -> None:
    done = machine.script("startup.sh")
    assert done.returncode == 0, done.stdout + done.stderr
    for folder, target in TARGETS.items():
        for path in (GUEST / folder).iterdir():
            if path.is_file():
                installed = machine.file(f"{target}/{path.name}")
                assert installed.read_text() == path.read_text()
                assert installed.stat().st_mode & 0o777 == (0o755 if folder == "bin" else 0o644)
    assert machine.asked() == [f"start {UNITS}"]
    wants = machine.file("/etc/systemd/system/multi-user.target.wants")
    assert {path.name: str(path.readlink()) for path in wants.iterdir() if path.name in UNITS.split()} == {
        unit: f"/etc/systemd/system/{unit}" for unit in UNITS.split()
    }
    assert json.loads(machine.file("/etc/multinic/config.json").read_text())["version"] == 1
    assert (
        json.loads((machine.wire.folder / "run/metadata.json").read_text())["tree"]["instance"]["name"]
        == "router-a-0001"
    )


def test_a_second_run_changes_nothing(machine: Machine) -> None:
    assert machine.script("startup.sh").returncode == 0
    program = machine.file("/usr/bin/policy-routing")
    before = program.stat().st_mtime_ns
    assert machine.script("startup.sh").returncode == 0
    assert program.stat().st_mtime_ns == before
    assert machine.asked() == [f"start {UNITS}"]


def test_a_changed_file_reloads_and_never_restarts_the_routing(machine: Machine) -> None:
    assert machine.script("startup.sh").returncode == 0
    held = attributes()
    held["multinic-file-systemd-hc-traffic-service"] += "# changed\n"
    machine.wire.set_metadata(tree(attributes=held))
    assert machine.script("startup.sh").returncode == 0
    assert machine.asked()[:2] == ["daemon-reload", f"try-reload-or-restart {UNITS}"]


FILES = attributes()["multinic-files"]
TRAFFIC = "multinic-file-bin-hc-traffic"


@pytest.mark.parametrize(
    "breakage",
    [
        {"multinic-files": ""},
        {"multinic-files": f"{FILES}multinic-file-nosuch 0755 /usr/bin/nosuch\n"},
        {"multinic-files": f"{FILES}{TRAFFIC} 0755 /etc/passwd\n"},
        {"multinic-files": f"{FILES}{TRAFFIC} 0755 /usr/bin/../../etc/passwd\n"},
        {"multinic-files": f"{FILES}{TRAFFIC} 0755 /usr/bin/\0\n"},
        {"multinic-files": f"{FILES}{TRAFFIC} 0755 /usr/bin/\ud800\n"},
        {"multinic-files": f"{FILES}{TRAFFIC} {'7' * 40} /usr/bin/hc\n"},
        {"multinic-files": f"{TRAFFIC} 0755 /usr/bin/hc-traffic\n"},
        {"multinic-files": f"{FILES}nonsense\n"},
        {"multinic-files": ["x"]},
        {"multinic-config": {"version": 1}},
        {TRAFFIC: "\ud800"},
    ],
    ids=[
        "empty",
        "missing file",
        "foreign place",
        "foreign place by ..",
        "no path",
        "a path with a surrogate",
        "no mode",
        "no modules",
        "nonsense",
        "no text",
        "config",
        "surrogate",
    ],
)
def test_a_broken_manifest_writes_nothing_and_fails(machine: Machine, breakage: dict[str, Any]) -> None:
    """Fails with a sentence, so that a rollout stops at its first VM."""
    machine.wire.set_metadata(tree(attributes=attributes(**breakage)))
    done = machine.script("startup.sh")
    assert done.returncode == 1
    assert "multinic-startup failed" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert machine.asked() == []
    assert not machine.file("/etc/multinic").exists()


def test_a_bad_answer_does_not_replace_the_good_one_of_a_router_at_work(machine: Machine) -> None:
    """Started anew, the watcher would close the traffic check over it."""
    run = machine.wire.folder / "run"
    assert machine.script("startup.sh").returncode == 0
    (run / "verdict.json").write_text("{}")
    try:
        machine.wire.set_metadata(tree(interfaces=[], attributes=attributes()))
        assert machine.script("startup.sh").returncode == 0
        assert json.loads((run / "metadata.json").read_text())["tree"]["instance"]["networkInterfaces"]
    finally:
        (run / "verdict.json").unlink()


DISKS = {
    "full": "mount -t tmpfs -o size=16k,nr_inodes=4 tmpfs /etc/systemd/system",
    "read-only": "mount -o remount,ro,bind /etc",
}


@pytest.mark.parametrize("disturb", DISKS.values(), ids=DISKS)
def test_a_disk_that_takes_nothing_leaves_all_or_nothing(machine: Machine, disturb: str) -> None:
    """Kind 17: never half of a version; what an earlier boot has installed is started."""
    first = machine.script("startup.sh", disturb)
    assert first.returncode == 1
    assert "files cannot be written" in first.stdout
    assert "Traceback" not in first.stdout + first.stderr
    assert machine.asked() == []
    assert not [path for path in machine.disk.glob("usr-upper/**/*") if path.is_file()]

    assert machine.script("startup.sh").returncode == 0
    before = machine.file("/usr/bin/hc-traffic").read_text()
    machine.wire.set_metadata(tree(attributes=attributes(**{"multinic-file-bin-hc-traffic": "#!/usr/bin/python3\n"})))
    again = machine.script("startup.sh", "mount -o remount,ro,bind /usr")
    assert again.returncode == 1
    assert "starts_what_is_there=true" in again.stdout
    assert machine.asked() == [f"start {UNITS}"]
    assert machine.file("/usr/bin/hc-traffic").read_text() == before


USER = "#!/bin/bash\necho the user was here\nexit 7\n"


def test_the_users_script_runs_last_and_its_failure_is_harmless(machine: Machine) -> None:
    machine.wire.set_metadata(tree(attributes=attributes(**{"multinic-user-startup-script": USER})))
    done = machine.script("startup.sh")
    assert done.returncode == 0
    assert done.stdout.index("the user was here") < done.stdout.index("user-startup-script failed code=7")
    assert machine.asked() == [f"start {UNITS}"]


def test_a_log_that_cannot_be_sent_stops_nothing(machine: Machine) -> None:
    """Nothing of a boot depends on Cloud Logging, the user's script neither."""
    (machine.disk / "systemctl").write_text(f'#!/bin/bash\necho "$@" >>{machine.calls}\n[[ $* != *multinic-log* ]]\n')
    machine.wire.set_metadata(tree(attributes=attributes(**{"multinic-user-startup-script": USER})))
    done = machine.script("startup.sh")
    assert done.returncode == 0
    assert "the user was here" in done.stdout
    assert machine.asked() == [f"start {UNITS}", f"start {UNITS.partition(' ')[2]}"]


def test_the_users_script_is_bounded_in_time(machine: Machine) -> None:
    script = "#!/bin/bash\nsleep 1000\n"
    machine.wire.set_metadata(tree(attributes=attributes(**{"multinic-user-startup-script": script})))
    done = machine.script("startup.sh", USER_SCRIPT_SECONDS="0.5")
    assert done.returncode == 0
    assert "user-startup-script failed code=124" in done.stdout


def test_a_users_script_that_is_gone_runs_no_more(machine: Machine) -> None:
    machine.wire.set_metadata(tree(attributes=attributes(**{"multinic-user-startup-script": USER})))
    machine.script("startup.sh")
    machine.wire.set_metadata(tree(attributes=attributes()))
    assert "the user was here" not in machine.script("startup.sh").stdout


def test_shutdown_closes_traffic_first_then_waits_as_long_as_configured(machine: Machine) -> None:
    """S16, kind 16: the wait that the component has worked out comes from the configuration."""
    machine.script("startup.sh")
    began = time.monotonic()
    done = machine.script("shutdown.sh")
    assert done.returncode == 0, done.stderr
    assert machine.asked()[0] == "stop hc-traffic.service"
    assert time.monotonic() - began >= 0.2
    assert 'wait_s="0.2"' in done.stderr


@pytest.mark.parametrize(("configured", "used"), [("999", "25"), ("-1", "0"), ('"x"', "5"), ("null", "5")])
def test_the_wait_is_bounded(tmp_path: Path, configured: str, used: str) -> None:
    """25 s at most: a spot VM has 30."""
    config = tmp_path / "config.json"
    config.write_text(f'{{"drain_seconds": {configured}}}')
    text = (GUEST / "shutdown.sh").read_text()
    program = re.search(r"python3 -IS -c '(.*?)'\)", text, re.DOTALL)
    assert program is not None
    source = program[1].replace("/etc/multinic/config.json", str(config))
    done = subprocess.run([PYTHON, "-ISc", source], check=True, capture_output=True, text=True)
    assert float(done.stdout) == float(used)


def test_networkd_is_asked_to_leave_foreign_rules_alone(machine: Machine) -> None:
    """G3; G5 says why nothing relies on it."""
    assert machine.script("startup.sh").returncode == 0
    text = machine.file("/etc/systemd/networkd.conf.d/multinic.conf").read_text()
    assert "ManageForeignRoutingPolicyRules=no" in text

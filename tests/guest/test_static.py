"""Kinds 17 and 18, without running anything: what files may contain, and what systemd and shellcheck say."""

import ast
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from wire import GUEST

PROGRAMS = sorted(GUEST.glob("bin/*"))
MODULES = sorted(GUEST.glob("lib/*.py"))
UNITS = sorted(GUEST.glob("systemd/*"))
FILES = [*PROGRAMS, *MODULES, *UNITS, *sorted(GUEST.glob("sysctl.d/*")), *sorted(GUEST.glob("*.sh"))]
LONG_RUNNING = ["policy-routing.service", "policy-routing-watch.service", "hc-traffic.service", "hc-health.service"]


def relative(path: Path) -> str:
    return str(path.relative_to(GUEST))


def test_the_files_are_there() -> None:
    names = {relative(path) for path in FILES}
    assert {
        "startup.sh",
        "shutdown.sh",
        "bin/policy-routing",
        "bin/hc-traffic",
        "bin/hc-health",
        "bin/multinic-log",
    } <= names
    assert {f"systemd/{unit}" for unit in (*LONG_RUNNING, "kpanic.service")} <= names


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_no_program_that_an_image_may_lack(path: Path) -> None:
    """S17, G17, U6, G16, G9: no package manager, cloud tool, DHCP hook, older firewall tool, or unit of the agent."""
    words = r"apt|apt-get|yum|dnf|pip|curl|wget|gcloud|gsutil|iptables|dhclient|nmcli|netplan|jq|google-guest-agent"
    found = re.findall(rf"(?<![\w-])(?:{words})(?![\w-])", path.read_text())
    assert not found


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_small_enough_for_metadata(path: Path) -> None:
    """P24: 256 KB a value and 512 KB in all are Google's limits."""
    assert len(path.read_bytes()) <= 64 * 1024


def test_small_enough_in_all() -> None:
    assert sum(len(path.read_bytes()) for path in FILES) <= 200 * 1024


def heredoc() -> str:
    text = (GUEST / "startup.sh").read_text()
    return text.split("<<'PYTHON'\n")[1].split("\nPYTHON\n")[0]


@pytest.mark.parametrize(
    "source", [*PROGRAMS, *MODULES, None], ids=lambda path: relative(path) if path else "startup.sh"
)
def test_python_of_the_oldest_distribution(source: Path | None) -> None:
    """Python 3.9: Debian 11, CentOS Stream 9. Standard library and our own modules only."""
    tree = ast.parse(source.read_text() if source else heredoc(), feature_version=(3, 9))
    own = {path.stem for path in MODULES}
    for node in ast.walk(tree):
        imported = []
        if isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported = [node.module or ""]
        for name in imported:
            assert name.split(".")[0] in own | sys.stdlib_module_names


@pytest.mark.parametrize("program", ["policy-routing", "multinic-log"])
def test_programs_run_with_the_oldest_python_that_is_here(program: str) -> None:
    here = [found for found in map(shutil.which, ("python3.9", "/usr/bin/python3")) if found and _runs(found)]
    oldest = next(iter(here), None)
    assert oldest is not None
    done = subprocess.run(
        [oldest, "-IS", str(GUEST / "bin" / program), "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def _runs(python: str) -> bool:
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def test_no_shell_in_long_running_units() -> None:
    for unit in UNITS:
        for line in unit.read_text().splitlines():
            if line.startswith("Exec"):
                assert not re.search(r"\b(ba|da)?sh\b", line.partition("=")[2].split()[0].rpartition("/")[2])


def test_shellcheck() -> None:
    program = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([program, *GUEST.glob("*.sh")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A root folder with the units, what they start, and the distribution's own units."""
    root = tmp_path / "root"
    for folder, target in (("bin", "usr/bin"), ("systemd", "etc/systemd/system")):
        shutil.copytree(GUEST / folder, root / target)
    shutil.copytree("/usr/lib/systemd/system", root / "usr/lib/systemd/system", symlinks=True)
    shutil.copy("/usr/bin/timeout", root / "usr/bin")
    return root


def test_systemd_has_nothing_to_say(image: Path) -> None:
    """G23. The exit code is 0 for unknown keys, too, so silence is what counts."""
    names = [unit.name for unit in UNITS]
    done = subprocess.run(
        ["systemd-analyze", "verify", f"--root={image}", *names], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_systemd_would_have_something_to_say(image: Path) -> None:
    """The check above can fail."""
    unit = image / "etc/systemd/system/hc-traffic.service"
    unit.write_text(unit.read_text().replace("Restart=always", "Restrt=always"))
    done = subprocess.run(
        ["systemd-analyze", "verify", f"--root={image}", unit.name], capture_output=True, text=True, check=False
    )
    assert "Restrt" in done.stderr


@pytest.mark.parametrize("unit", LONG_RUNNING)
def test_hardened(unit: str) -> None:
    """Exposure of at most 3.0."""
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--threshold=30", "--no-pager", str(GUEST / "systemd" / unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-300:]


def sections(unit: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in unit.read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def test_each_ordering_says_why() -> None:
    for unit in UNITS:
        lines = unit.read_text().splitlines()
        for before, line in zip(["", *lines], lines, strict=False):
            if line.split("=")[0] in (
                "After",
                "Before",
                "Wants",
                "Requires",
                "PartOf",
                "BindsTo",
                "DefaultDependencies",
            ):
                assert before.startswith("#"), f"{unit.name}: {line}"


def test_nothing_requires_what_may_be_absent() -> None:
    """G9: no hard need of another unit; a start that waits is bounded."""
    for unit in UNITS:
        keys = sections(unit)
        assert not keys.keys() & {"Requires", "Requisite", "BindsTo"}
    assert sections(GUEST / "systemd/policy-routing.service")["TimeoutStartSec"] != ["infinity"]


def test_what_dies_is_always_started_again() -> None:
    """Kind 6: systemd's own limit is five starts in ten seconds, after which a port that was taken for a moment would
    stay closed for ever, and a watcher dead."""
    for unit in UNITS:
        keys = sections(unit)
        if keys.get("Restart") == ["always"]:
            assert keys["StartLimitIntervalSec"] == ["0"], unit.name


CASES = [
    "kind 1",
    "kind 2",
    "kind 3",
    "kind 4",
    "kind 5",
    "kind 6",
    "kind 7",
    "kind 8",
    "kind 14",
    "kind 15",
    "kind 16",
    "kind 17",
]
CASES += ["kind 18", "kind 22", *(f"M-{number}" for number in range(1, 12))]


@pytest.mark.parametrize("case", CASES)
def test_each_case_has_a_test_that_names_it(case: str) -> None:
    """Of how systems like this one fail their users, and of what was measured about Linux, nothing is forgotten."""
    assert re.search(rf"{case.replace('kind ', r'[Kk]inds?[ 0-9,and]* ')}(?![0-9])", docstrings())


@cache
def docstrings() -> str:
    """Of all tests."""
    trees = (ast.parse(path.read_text()) for path in Path(__file__).parents[1].rglob("test_*.py"))
    kinds = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, kinds))
    return "\n".join(ast.get_docstring(node) or "" for node in nodes)


def test_no_unit_needs_user_namespaces() -> None:
    """Hardened hosts forbid them (user.max_user_namespaces=0), and a health endpoint that cannot start heals a fleet
    for ever."""
    for unit in UNITS:
        assert "PrivateUsers" not in unit.read_text(), unit.name


def test_health_endpoints_go_first_when_the_cpu_is_full() -> None:
    for name in ("hc-traffic.service", "hc-health.service", "policy-routing-watch.service"):
        assert int(sections(GUEST / "systemd" / name)["Nice"][0]) <= -15


def test_routing_outlives_the_start_of_a_shutdown() -> None:
    """Draining at shutdown needs the routes; the traffic port must close first (kind 16)."""
    for name in ("policy-routing.service", "policy-routing-watch.service"):
        keys = sections(GUEST / "systemd" / name)
        assert keys["DefaultDependencies"] == ["no"]
        assert "Conflicts" not in keys
    assert "DefaultDependencies" not in sections(GUEST / "systemd/hc-traffic.service")


def test_sysctl_file_sorts_last_and_leaves_ipv6_alone() -> None:
    """Kind 14: after Google's own 60-gce-network-security.conf and a distribution's 99-sysctl.conf."""
    (path,) = GUEST.glob("sysctl.d/*")
    assert path.name > "99-zzz.conf"
    assert "ipv6" not in path.read_text()

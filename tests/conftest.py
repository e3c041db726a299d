"""What every test shares: tests that this machine cannot run are named at the end, and are failures under CI=true."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from functools import cache

import hypothesis
import pytest

# How long an example takes says how busy the machine is. Under CI Hypothesis also takes the same examples in every run.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
)
hypothesis.settings.load_profile("any machine")

NOT_RUN = "not run"
"""Key under which a test's report, which also comes from other processes, says why it could not run."""


TIMED = ("root", "guests", "engine", "slow")
"""Markers of tests with kernels, guests or engines that work in real time."""


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts its background jobs with Ctrl-C ignored, and what they start inherits that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # A worker of pytest-xdist goes on alone when the run is killed; what its tests started ends with it.
    if hasattr(config, "workerinput") and sys.platform == "linux":
        pr_set_pdeathsig = 1  # linux/prctl.h
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def _has_root() -> str | None:
    if os.geteuid() != 0:
        return "needs root"
    made = subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True, check=False)
    return None if made.returncode == 0 else "needs network and mount namespaces"


def _has_guests() -> str | None:
    reason = _has_root()
    if reason:
        return reason
    missing = [name for name in ("systemd-nspawn", "mmdebstrap", "nft", "ip") if not shutil.which(name)]
    return f"needs {', '.join(missing)} (`make setup` installs them on Debian)" if missing else None


def _has_engine() -> str | None:
    from multinic.lab.pulumi import cli

    return None if cli.find() else "needs a Pulumi CLI: `make pulumi` builds one"


def _has_yaml() -> str | None:
    from multinic.lab.pulumi import cli

    return None if cli.find_more(cli.YAML_HOST) else "needs the language host for YAML: `make pulumi` builds one"


def _has_node() -> str | None:
    from multinic.lab.pulumi import cli

    if not shutil.which("npm"):
        return "needs Node.js and npm"
    return None if cli.find_more(cli.TYPESCRIPT_SDK) else "needs the SDK's generator: `make pulumi` builds it"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # A shared machine that stalls for seconds is no fault of ours: these get a second chance, and the end tells it.
    for item in items:
        if any(item.get_closest_marker(marker) for marker in TIMED):
            item.add_marker(pytest.mark.flaky(reruns=1))


@cache
def why_not(marker: str) -> str | None:
    """Why tests with this marker cannot run here; None if they can."""
    return {"root": _has_root, "guests": _has_guests, "engine": _has_engine, "yaml": _has_yaml, "node": _has_node}[
        marker
    ]()


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in ("root", "guests", "engine", "yaml", "node"):
        if item.get_closest_marker(marker) is None:
            continue
        reason = why_not(marker)
        if reason is None:
            continue
        item.user_properties.append((NOT_RUN, reason))
        if os.environ.get("CI") == "true":
            pytest.fail(f"not run under CI=true: {reason}", pytrace=False)
        pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was not run, which is a failure under CI=true: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    again: list[pytest.TestReport] = terminalreporter.stats.get("rerun", [])
    if again:
        terminalreporter.section("tests that failed at first and were run again")
        for report in again:
            terminalreporter.line(f"{report.nodeid} ({report.when})\n{report.longreprtext}\n")
    reports = (one for found in terminalreporter.stats.values() for one in found if isinstance(one, pytest.TestReport))
    not_run = {one.nodeid: reason for one in reports for key, reason in one.user_properties if key == NOT_RUN}
    if not_run:
        terminalreporter.section("tests that were not run here")
        for name, reason in sorted(not_run.items()):
            terminalreporter.line(f"{name}: {reason}")

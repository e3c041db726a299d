"""What a shell gets for plain `pulumi` on a lab."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from multinic.lab.pulumi.environment import environment, google, launcher, settings
from multinic.lab.pulumi.providers import ProvidersError


def test_the_state_is_in_the_labs_folder_and_nothing_asks_for_anything(tmp_path: Path) -> None:
    found = settings("http://127.0.0.1:8470", "secret", tmp_path, "gcp:1,random:2", {"PATH": "/usr/bin"})

    assert found["PULUMI_BACKEND_URL"] == f"file://{tmp_path / 'state'}"
    assert found["PULUMI_DEBUG_PROVIDERS"] == "gcp:1,random:2"
    assert found["PULUMI_CONFIG_PASSPHRASE"] and found["PULUMI_SKIP_UPDATE_CHECK"] == "true"
    assert found["MULTINIC_LAB_TOKEN"] == found["GOOGLE_OAUTH_ACCESS_TOKEN"] == "secret"
    assert found["PATH"].split(":")[0] == str(tmp_path / "bin")
    assert found["PATH"].split(":")[-1] == "/usr/bin"


def test_googles_own_clients_are_pointed_at_the_lab() -> None:
    endpoints = {key: value for key, value in google("http://127.0.0.1:1/", "t").items() if key.endswith("_ENDPOINT")}
    assert endpoints["GOOGLE_COMPUTE_CUSTOM_ENDPOINT"] == "http://127.0.0.1:1/compute/beta/"
    assert endpoints["GOOGLE_MONITORING_CUSTOM_ENDPOINT"] == "http://127.0.0.1:1/monitoring/"
    assert all(value.startswith("http://127.0.0.1:1/") and value.endswith("/") for value in endpoints.values())


def test_the_language_host_starts_from_anywhere_and_prints_its_port(tmp_path: Path) -> None:
    program = launcher(tmp_path / "with space") / "pulumi-language-python"
    host = subprocess.Popen([str(program), "127.0.0.1:1"], stdout=subprocess.PIPE, text=True, cwd="/")
    try:
        assert host.stdout is not None
        assert int(host.stdout.readline()) > 0
        host.send_signal(2)
        assert host.wait() == 0
    finally:
        host.kill()
        host.wait()
        if host.stdout:
            host.stdout.close()


def test_the_language_host_ends_with_an_engine_that_is_killed(tmp_path: Path) -> None:
    program = launcher(tmp_path) / "pulumi-language-python"
    engine = subprocess.Popen(["sh", "-c", f"{program} 127.0.0.1:1 & wait"], stdout=subprocess.PIPE, text=True)
    try:
        assert engine.stdout is not None
        assert int(engine.stdout.readline()) > 0
        engine.kill()
        # The pipe ends when the host, which holds its other end, does.
        assert engine.stdout.read() == ""
    finally:
        engine.kill()
        engine.wait()
        if engine.stdout:
            engine.stdout.close()


def test_without_a_lab_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(ProvidersError, match="no lab runs in"):
        environment("http://127.0.0.1:1", "t", tmp_path)

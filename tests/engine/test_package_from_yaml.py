"""The package as the real engine takes it from its folder: its schema, and a YAML program that brings a router up."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from multinic.lab.pulumi import cli, engine, environment, providers
from multinic.lab.pulumi.deployment import DeploymentError
from tests.engine.conftest import REPOSITORY, RunningLab, items
from tests.plugin.host import PLUGIN
from tests.unit.snapshots import cleaned

pytestmark = [pytest.mark.engine, pytest.mark.yaml, pytest.mark.slow]

EXAMPLE = PLUGIN / "examples" / "yaml"
CONFIG = {"gcp:project": "lab", "gcp:region": "us-central1"}
STORED = REPOSITORY / "tests" / "unit" / "snapshots" / "schema.json"


def services(lab: RunningLab) -> list[dict[str, Any]]:
    return items(lab, "regions/us-central1/backendServices")


def kept_by_the_cli(schema: Any, inside: str = "") -> Any:
    """Returns a schema without what the CLI drops or adds: texts of element types, versions, empty configuration."""
    if not isinstance(schema, dict):
        return schema
    dropped = {"items": {"description"}, "additionalProperties": {"description"}}.get(inside, set())
    if not inside:
        dropped = {"version", "dependencies", "config"}
    return {key: kept_by_the_cli(value, key) for key, value in schema.items() if key not in dropped}


def test_schema_that_the_cli_gets_is_the_stored_one(tmp_path: Path) -> None:
    settings = dict(os.environ) | environment.settings("http://127.0.0.1:1", "t", tmp_path, "")
    command = [str(cli.find()), "package", "get-schema", str(PLUGIN)]
    done = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert cleaned(kept_by_the_cli(json.loads(done.stdout))) == kept_by_the_cli(json.loads(STORED.read_text()))


def test_yaml_program_brings_a_router_up_and_then_changes_nothing(tmp_path: Path, answering_lab: RunningLab) -> None:
    lab = answering_lab
    with providers.running(lab.endpoint, lab.token) as attached:
        where: dict[str, Any] = {"stack": "test", "endpoint": lab.endpoint, "token": lab.token, "attached": attached}
        deployment = engine.up(EXAMPLE, config=CONFIG, state=tmp_path / "state", **where)
        try:
            addresses = deployment.outputs["addresses"]
            assert [address.rpartition(".")[0] for address in addresses] == ["10.10.0", "10.20.0"]
            assert list(deployment.outputs["groups"]) == ["us-central1-a"]
            assert {service["connectionDraining"]["drainingTimeoutSec"] for service in services(lab)} == {5}
            assert deployment.preview() == {}
        finally:
            deployment.destroy()
        assert services(lab) == []

        wrong = tmp_path / "wrong"
        wrong.mkdir()
        text = (EXAMPLE / "Pulumi.yaml").read_text().replace("multinic: ../..", f"multinic: {PLUGIN}")
        (wrong / "Pulumi.yaml").write_text(text.replace("drainingSec: 5", "drainingSec: 9999"))
        with pytest.raises(DeploymentError, match=r"next_hop\.draining_sec: 9999 is outside 0 to 3600"):
            engine.up(wrong, config=CONFIG, state=tmp_path / "wrong-state", **where)
        assert services(lab) == []

"""The library as a Pulumi package: what the plugin's own process says over gRPC, and what its files promise."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

import multinic
from tests.plugin.host import PLUGIN, running
from tests.unit import snapshots
from tests.unit.conftest import REPOSITORY

DEADLINE_S = 120


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with (
        running(tmp_path_factory.mktemp("plugin") / "log") as port,
        grpc.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        host = provider_pb2_grpc.ResourceProviderStub(channel)
        answer = host.GetSchema(provider_pb2.GetSchemaRequest(), timeout=DEADLINE_S, wait_for_ready=True)
    found: dict[str, Any] = json.loads(answer.schema)
    return found


def test_host_serves_the_schema_of_the_library(schema: dict[str, Any]) -> None:
    stored = json.loads((REPOSITORY / "tests" / "unit" / "snapshots" / "schema.json").read_text())
    assert snapshots.cleaned(schema) | {"version": ""} == stored | {"version": ""}


def test_version_is_the_library_s(schema: dict[str, Any]) -> None:
    assert schema["version"] == tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]


def test_every_public_component_is_a_resource_of_the_package(schema: dict[str, Any]) -> None:
    public = {name for name in multinic.__all__ if f"{name}Args" in multinic.__all__}
    assert set(schema["resources"]) == {f"multinic:index:{name}" for name in public}
    assert all(one["isComponent"] for one in schema["resources"].values())


def test_what_decides_the_shape_is_plain_and_links_are_not(schema: dict[str, Any]) -> None:
    inputs = schema["resources"]["multinic:index:MultinicRouter"]["inputProperties"]
    assert inputs["region"]["plain"] and inputs["networks"]["plain"]
    network = schema["types"]["multinic:index:NetworkArgs"]["properties"]
    assert network["cidrs"]["plain"] and "plain" not in network["subnetwork"]


def test_a_clone_at_a_tag_installs_its_own_library() -> None:
    lines = (PLUGIN / "requirements.txt").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [".."]
    assert (PLUGIN / ".." / "pyproject.toml").resolve() == REPOSITORY / "pyproject.toml"


def test_plugin_file_has_only_keys_that_the_engine_reads() -> None:
    described = yaml.safe_load((PLUGIN / "PulumiPlugin.yaml").read_text())
    assert described.keys() <= {"runtime", "packages", "requiredPulumiVersion", "template"}
    assert described["runtime"]["name"] == "python"


def test_canary_host_that_cannot_start_is_told(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="the host ended with code 2"), running(tmp_path / "log", "--no-such"):
        pass

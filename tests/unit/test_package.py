"""The package from outside: public names, imports, schema for other languages, the wheel."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import multinic
from multinic import MultinicRouterArgs, RouterFleetArgs
from tests.unit import snapshots
from tests.unit.conftest import REPOSITORY

LIBRARY = sorted((REPOSITORY / "multinic").glob("*.py")) + sorted((REPOSITORY / "stacks").glob("*.py"))
COMPONENTS = ["Endpoints", "MultinicRouter", "NextHop", "RoutedNetworks", "RouterFleet"]


def python(code: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **env},
        cwd=REPOSITORY,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_public_name_is_there() -> None:
    assert multinic.__all__ == sorted(multinic.__all__)
    for name in multinic.__all__:
        assert getattr(multinic, name).__name__ == name
    assert set(multinic.__all__) <= set(dir(multinic))
    with pytest.raises(AttributeError, match="has no attribute 'Router'"):
        multinic.Router  # type: ignore[attr-defined]  # noqa: B018


def test_command_line_and_lab_do_not_wait_for_the_sdk() -> None:
    assert python("import sys, multinic; print([m for m in sys.modules if m.startswith('pulumi')])") == "[]"


def test_library_needs_nothing_but_pulumi() -> None:
    others = {"typer", "rich", "httpx", "uvicorn", "googleapiclient", "matplotlib"}
    modules = "multinic.router, multinic.endpoints, multinic.networks, multinic.testing"
    assert python(f"import sys, {modules}; print({others!r} & {{m.split('.')[0] for m in sys.modules}})") == "set()"


def test_no_module_of_the_components_turns_annotations_into_strings() -> None:
    for component in (getattr(multinic, name) for name in COMPONENTS):
        lines = Path(sys.modules[component.__module__].__file__ or "").read_text().splitlines()
        assert "from __future__ import annotations" not in lines, component
    assert "from __future__ import annotations" not in (REPOSITORY / "multinic" / "args.py").read_text().splitlines()


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """What other languages see. Made in a process of its own: the SDK's provider modules and Google's client each
    bring a protobuf file with `google.rpc.Status`, and one process cannot hold both."""
    made: dict[str, Any] = json.loads(
        python(f"""
import json
from pulumi.provider.experimental.analyzer import Analyzer
from pulumi.provider.experimental.schema import generate_schema
import multinic
found = Analyzer("multinic").analyze([getattr(multinic, name) for name in {COMPONENTS}])
dependencies = sorted(found["dependencies"], key=lambda one: one.name)
parts = (found["component_definitions"], found["type_definitions"], dependencies)
print(json.dumps(generate_schema("multinic", "0.0.0", None, *parts).to_json()))
""")
    )
    return made


def test_schema_is_what_it_was(schema: dict[str, Any]) -> None:
    snapshots.compare("schema.json", json.dumps(snapshots.cleaned(schema), indent=2, sort_keys=True) + "\n")


def test_every_input_of_the_schema_is_described(schema: dict[str, Any]) -> None:
    described = 0
    for name, kind in {**schema["types"], **schema["resources"]}.items():
        for key, value in {**kind.get("properties", {}), **kind.get("inputProperties", {})}.items():
            assert value.get("description"), f"{name}.{key}"
            described += 1
    assert described > 100


def test_a_fleet_takes_what_a_router_takes() -> None:
    fleet, router = RouterFleetArgs.__annotations__, MultinicRouterArgs.__annotations__
    assert fleet.keys() - router.keys() == {"service_account", "scopes", "draining_sec"}
    assert router.keys() - fleet.keys() == {"next_hop", "routes", "access"}
    assert {key: fleet[key] for key in fleet.keys() & router.keys()} == {
        key: router[key] for key in fleet.keys() & router.keys()
    }


def makes_resource(node: ast.AST, makers: set[str]) -> bool:
    """Whether some call inside makes a resource: an SDK class, or a function or class of ours that does."""
    for call in ast.walk(node):
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func)
        last = name.rsplit(".", 1)[-1]
        if last in makers or (name.startswith(("gcp.", "pulumi_random.")) and last[0].isupper() and "Args" not in last):
            return True
    return False


def resources_in_apply(source: str) -> list[int]:
    """Returns the lines where a function that makes a resource is handed to `apply`."""
    tree = ast.parse(source)
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    makers = set(COMPONENTS) | {
        "declare",
        "declare_firewall",
        "declare_service_account",
    }
    while more := {name for name, node in functions.items() if name not in makers and makes_resource(node, makers)}:
        makers |= more
    found = []
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "apply":
            for given in (*call.args, *(keyword.value for keyword in call.keywords)):
                named = ast.unparse(given).rsplit(".", 1)[-1]
                if named in makers or makes_resource(given, makers):
                    found.append(call.lineno)
    return found


@pytest.mark.parametrize("file", LIBRARY, ids=[str(file.relative_to(REPOSITORY)) for file in LIBRARY])
def test_no_resource_is_made_inside_apply(file: Path) -> None:
    # It would be missing in previews, and deleted when a value turns unknown.
    assert resources_in_apply(file.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "x.apply(lambda v: gcp.compute.Route('r', dest_range=v))",
        "def make(v):\n    gcp.compute.Route('r')\nx.apply(make)",
        "def make(v):\n    gcp.compute.Route('r')\ndef other(v):\n    make(v)\nx.apply(func=other)",
        "x.apply(lambda v: [MultinicRouter(n, {}) for n in v])",
    ],
)
def test_canary_resource_inside_apply_is_seen(source: str) -> None:
    assert len(resources_in_apply(source)) == 1


def test_library_reads_no_configuration_and_no_other_stack() -> None:
    for file in sorted((REPOSITORY / "multinic").glob("*.py")):
        if file.name == "testing.py":  # answers for them
            continue
        text = file.read_text()
        assert "StackReference" not in text, file
        assert "pulumi.Config" not in text, file


@pytest.mark.slow
def test_wheel_carries_the_guest_and_renders_the_same_metadata(tmp_path: Path) -> None:
    render = (
        "import hashlib, json, sys; sys.path[:] = [p for p in sys.path if p]\n"
        "import multinic; from multinic import guest_files, parsing; from multinic.problems import Problems\n"
        "net = lambda i: dict(network=f'projects/p/global/networks/n{i}', cidrs=[f'10.{i}.0.0/16'],\n"
        "    subnetwork=f'projects/p/regions/us-central1/subnetworks/n{i}')\n"
        "args = dict(region='us-central1', networks=[net(0), net(1), net(2)],\n"
        "    machine=dict(image='projects/debian-cloud/global/images/debian-12-bookworm-v20260921'))\n"
        "found = Problems(); fleet = parsing.router(args, found).fleet; found.raise_if_any()\n"
        "print(multinic.__file__); print(json.dumps(guest_files.render(fleet)))"
    )
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(REPOSITORY)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True, capture_output=True)
    fresh = tmp_path / "venv" / "bin" / "python"
    install = [str(fresh), "-m", "pip", "install", "--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)

    import pulumi

    dependencies = str(Path(pulumi.__file__).parent.parent)
    env = {"PATH": os.environ["PATH"]}
    # The fresh environment's own folder comes first; the dependencies are lent by this one.
    code = f"import sys; sys.path.append({dependencies!r})\n{render}"
    done = subprocess.run([str(fresh), "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    where, installed = done.stdout.splitlines()
    assert where.startswith(str(tmp_path / "venv"))
    here = python(render, PYTHONPATH=str(REPOSITORY)).splitlines()[1]
    assert json.loads(installed) == json.loads(here)

"""The TypeScript SDK that the schema gives: a program is type-checked against it, good uses and bad ones."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from multinic.lab.pulumi import cli
from tests import node
from tests.plugin.host import PLUGIN
from tests.unit.conftest import REPOSITORY

pytestmark = [pytest.mark.node, pytest.mark.slow]

PROGRAM = PLUGIN / "examples" / "typescript" / "index.ts"
SCHEMA = REPOSITORY / "tests" / "unit" / "snapshots" / "schema.json"

# What is changed in the program, and what the compiler says to it.
BAD = {
    "region,": ("", "is not assignable to parameter of type 'MultinicRouterArgs'"),
    "drainingSec: 60": ('drainingSec: "60"', "Type 'string' is not assignable to type"),
    "max: 6": ("most: 6", "'most' does not exist in type"),
    "cidrs: [cidr]": ("cidrs: pulumi.output([cidr])", "is missing the following properties"),
    "router.addresses": ("router.adresses", "Property 'adresses' does not exist"),
}


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("typescript") / "sdk"
    subprocess.run([str(cli.find_more(cli.TYPESCRIPT_SDK)), str(SCHEMA), str(folder)], check=True)
    return folder


@pytest.mark.timeout(600)
def test_the_compiler_accepts_the_example_and_refuses_bad_uses(sdk: Path) -> None:
    packages = node.packages()
    text = PROGRAM.read_text()
    files = {"good": text}
    for number, (part, (instead, _)) in enumerate(BAD.items()):
        assert part in text
        files[f"bad{number}"] = text.replace(part, instead, 1)
    for name, content in files.items():
        (sdk.parent / f"{name}.ts").write_text(content)
    options = {
        "strict": True,
        "noEmit": True,
        "skipLibCheck": True,
        "target": "es2020",
        "module": "commonjs",
        "moduleResolution": "node",
        "types": ["node"],
        "typeRoots": [str(packages / "@types")],
        "baseUrl": ".",
        "paths": {"@pulumi/multinic": ["./sdk"], "*": [f"{packages}/*"]},
    }
    settings = {"compilerOptions": options, "files": [f"{name}.ts" for name in files]}
    (sdk.parent / "tsconfig.json").write_text(json.dumps(settings))
    compiler = ["node", str(packages / "typescript" / "bin" / "tsc"), "--pretty", "false", "--project", "."]
    said = subprocess.run(compiler, cwd=sdk.parent, capture_output=True, text=True, check=False).stdout
    wrong = {name: [line for line in said.splitlines() if line.startswith(f"{name}.ts(")] for name in files}
    assert wrong.pop("good") == []
    assert not [line for line in said.splitlines() if line.startswith("sdk/")]
    for number, (_, expected) in enumerate(BAD.values()):
        assert expected in "\n".join(wrong[f"bad{number}"]), said

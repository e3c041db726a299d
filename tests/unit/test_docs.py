"""The documents: their programs run, the inputs that they name exist, their links lead somewhere."""

from __future__ import annotations

import re
import typing
from pathlib import Path
from typing import Any, NotRequired, get_args, get_origin

import pytest

from multinic import MultinicRouterArgs, testing
from tests.unit.conftest import REPOSITORY

DOCS = REPOSITORY / "docs"
MIGRATING = DOCS / "migrating-from-terraform.md"


def fences(file: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", file.read_text(), re.DOTALL | re.MULTILINE)


def has_input(path: str) -> bool:
    """Whether a router takes an input of this path, such as networks[0].cidrs."""
    kind: Any = MultinicRouterArgs
    for part in re.sub(r"\[\w\]", "", path).split("."):
        if not typing.is_typeddict(kind) or part not in kind.__annotations__:
            return False
        kind = kind.__annotations__[part]
        while get_origin(kind) in (NotRequired, list):
            (kind,) = get_args(kind)
    return True


def test_canary_unknown_inputs_are_seen() -> None:
    assert has_input("networks[0].cidrs")
    assert has_input("autoscaler.scale_in.window_sec")
    assert not has_input("networks[0].cidr")
    assert not has_input("scaling")
    assert not has_input("region.name")


def test_migrated_region_routes_as_the_module_did(preview: bool) -> None:
    (code,) = fences(MIGRATING)
    names: dict[str, Any] = {}
    exec(compile(code, MIGRATING.name, "exec"), names)
    declared = testing.run(names["program"], preview=preview)
    routes = {(route["network"].rsplit("/", 1)[-1], route["destRange"]) for route in declared.all("Route")}
    assert routes == {("main", "10.33.0.0/20"), ("transit", "10.32.0.0/20")}
    assert {(route["project"], route["priority"]) for route in declared.all("Route")} == {("network-host", 901)}
    assert {group["project"] for group in declared.all("InstanceGroupManager")} == {"routers"}


@pytest.mark.parametrize("file", [MIGRATING, DOCS / "upgrade.md", DOCS / "limits.md"], ids=lambda file: file.name)
def test_inputs_that_a_document_names_exist(file: Path) -> None:
    if file == MIGRATING:
        rows = re.findall(r"^\|[^|]+\|([^|]+)\|[^|]*\|$", file.read_text(), re.MULTILINE)
        named = [name for cell in rows[2:] for name in re.findall(r"`([a-z_0-9.\[\]]+)`", cell)]
        assert len(named) > 25
        named = [name for name in named if "/" not in name]
    else:
        top = "|".join(MultinicRouterArgs.__annotations__)
        named = re.findall(rf"`((?:{top})(?:\[\w\])?\.[a-z_.]+)`", file.read_text())
        assert named
    assert [name for name in named if not has_input(name)] == []


def links() -> list[tuple[str, str]]:
    return [
        (str(file.relative_to(DOCS)), target)
        for file in sorted(DOCS.rglob("*.md"))
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", file.read_text())
        if not target.startswith(("http://", "https://"))
    ]


@pytest.mark.parametrize(("file", "target"), links())
def test_links_between_documents_lead_to_a_file(file: str, target: str) -> None:
    assert ((DOCS / file).parent / target).exists()


def test_gotchas_are_dated_newest_first() -> None:
    dates = re.findall(r"^## (.*)$", (DOCS / "gotchas.md").read_text(), re.MULTILINE)
    assert dates == sorted(dates, reverse=True)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", date) for date in dates)

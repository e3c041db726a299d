"""What docs/operating.md promises of every command, one table for all: the options, a dry run, refusals, troubles."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from multinic.cli.app import app
from multinic.operate import api, door, errors

from .between import HANG, Between
from .conftest import Command, Ground

LOOKING = {
    "status": ("status",),
    "routes": ("routes",),
    "templates": ("templates",),
    "logs": ("logs",),
    "trace": ("trace", "{client}", "{server}"),
    "doctor": ("doctor",),
}
CHANGING = {
    "drain a VM": ("drain", "{vm}"),
    "drain a zone": ("drain", "{zone}"),
    "undrain": ("undrain", "{vm}"),
    "heal": ("heal", "{vm}"),
    "panic": ("panic", "{vm}", "--yes"),
    "rolling-update": ("rolling-update",),
    "withdraw": ("withdraw", "dev-left", "--yes"),
    "restore": ("restore", "--all"),
    "upgrade": ("upgrade", "--yes", "--watch", "0", "--force"),
    "upgrade --back": ("upgrade", "--back", "--yes"),
    "routes --delete-warnings": ("routes", "--delete-warnings", "--yes"),
    "routes --cleanup": ("routes", "--cleanup", "--yes"),
    "templates --delete": ("templates", "--delete", "--yes"),
}
TAKES_A_ROUTER = ("drain a VM", "drain a zone", "heal", "panic", "rolling-update")
COMMANDS = sorted({words[0] for words in (LOOKING | CHANGING).values()})
Filled = Callable[[tuple[str, ...]], list[str]]
"""Puts the ground's names into words."""
DOCUMENT = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()


@pytest.fixture
def filled(ground: Ground, multinic: Command) -> Filled:
    """Words with the ground's names: the VM is the one of the last zone."""
    router = multinic.json("status")["fleet"]["routers"][-1]
    names = {"vm": router["name"], "zone": router["zone"]}
    names |= {"client": ground.outputs["clients"][0], "server": ground.outputs["servers"][0]}
    return lambda words: [word.format(**names) for word in words]


def command(name: str) -> typer.core.TyperCommand:
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    found = group.commands[name]
    assert isinstance(found, typer.core.TyperCommand)
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_options_and_completion(name: str) -> None:
    one = command(name)
    options = {text for parameter in one.params for text in parameter.opts}
    assert {"--json", "--project", "--region", "--stack", "--fleet"} <= options
    changes = [words for words in CHANGING.values() if words[0] == name]
    assert ("--dry-run" in options) == bool(changes)
    assert ("--yes" in options) == any("--yes" in words for words in changes)
    takes = [words for title, words in CHANGING.items() if title in TAKES_A_ROUTER and words[0] == name]
    assert "--force" in options or not takes
    assert one.help
    for parameter in one.params:
        if parameter.param_type_name == "argument":
            assert parameter._custom_shell_complete is not None, f"{parameter.name} is not completed"
    assert f"`multinic {name}" in DOCUMENT or f"`{name}`" in DOCUMENT


def test_exit_codes_are_documented() -> None:
    kinds: list[type[errors.OperateError]] = [errors.OperateError, *errors.OperateError.__subclasses__()]
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", DOCUMENT, re.M)}
    assert {0, 130, *(kind.exit_code for kind in kinds)} == documented
    assert all(f"{code} " in str(app.info.epilog) for code in documented)


def test_a_dry_run_says_what_it_does_to_traffic_and_changes_nothing(
    google: Between, multinic: Command, filled: Filled
) -> None:
    for title, words in CHANGING.items():
        google.forget()
        assert multinic.json(*filled(words), "--dry-run")["done"] is False, title
        told = multinic.err
        assert ("→ " in told and "traffic: " in told) or "· " in told, f"{title}: {told}"
        assert google.changes() == [], title


def test_the_last_healthy_router_is_refused_to_each_that_takes_one(
    ground: Ground, google: Between, multinic: Command, filled: Filled
) -> None:
    routers = multinic.json("status")["fleet"]["routers"]
    ground.machines.dull.update(router["name"] for router in routers[:-1])
    last = routers[-1]["name"]

    def serving() -> set[str]:
        found = multinic.json("status")["fleet"]["routers"]
        return {one["name"] for one in found if set(one["health"].values()) == {"HEALTHY"}}

    try:
        multinic.until(lambda: serving() == {last})
        for title in TAKES_A_ROUTER:
            google.forget()
            said = multinic.refuses(*filled(CHANGING[title]), code=3)
            assert "--force does it nevertheless" in said, title
            assert "last healthy router" in said or title == "rolling-update", said
            assert "would be refused" in multinic(*filled(CHANGING[title]), "--dry-run"), title
            assert google.changes() == [], title
    finally:
        ground.machines.dull.clear()
        multinic.until(lambda: len(serving()) == 3)


TROUBLES = {
    "not permitted": (403, "Required 'compute.x.list' permission for 'projects/lab'"),
    "internal error": (500, "Internal error. Please try again or contact Google Support."),
    "unavailable": (503, "The service is currently unavailable."),
    "no answer": (HANG, None),
    "no JSON": (200, b"<html>a proxy's page</html>"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_each_command_tells_trouble_in_one_sentence(
    google: Between, multinic: Command, filled: Filled, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    monkeypatch.setattr(api, "TIMEOUT_SECONDS", 0.3)
    monkeypatch.setattr(door, "TIMEOUT_SECONDS", 0.3)
    monkeypatch.setattr(api, "_RETRY_SECONDS", 0.1)
    # Each command by one trouble, each trouble by commands that ask in different ways.
    few = ("status", "doctor", "heal", "upgrade")
    every = LOOKING | CHANGING
    chosen = [filled(every[title]) for title in (every if trouble == "not permitted" else few)]
    status, body = TROUBLES[trouble]
    google.answer(".", status, body)
    for words in chosen:
        # The doctor goes on, and finds that nothing is there.
        said = multinic.refuses(*words, "--json", code=5 if words[0] == "doctor" else 1)
        assert len(said) < 400, said
        assert sum(line.startswith("multinic: ") for line in multinic.err.splitlines()) == 1
        assert not multinic.out or json.loads(multinic.out)
    if trouble == "not permitted":
        assert "not permitted: Required 'compute.x.list'" in multinic.refuses("status", code=1)


@pytest.mark.parametrize("words", [CHANGING[title] for title in ("drain a VM", "heal", "withdraw", "rolling-update")])
def test_a_change_that_is_not_permitted_is_told_and_nothing_is_half_done(
    google: Between, multinic: Command, filled: Filled, words: tuple[str, ...]
) -> None:
    google.answer("^(POST|DELETE|PATCH|PUT) /compute/.*(setMetadata|recreateInstances|/routes)", 403, "Required 'x'")
    before = multinic.json("status")["fleet"]
    said = multinic.refuses(*filled(words), code=4 if words[0] == "rolling-update" else 1)
    assert "is not permitted: Required 'x'" in said
    google.forget()
    after = multinic.json("status")["fleet"]
    assert (before["routes"], [one["id"] for one in before["routers"]]) == (
        after["routes"],
        [one["id"] for one in after["routers"]],
    )

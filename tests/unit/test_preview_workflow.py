"""The workflow that previews pull requests: who may do what in it, and that it previews and nothing else."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.unit.conftest import REPOSITORY

WORKFLOW = REPOSITORY / ".github" / "workflows" / "preview.yml"
SAME_REPOSITORY = "github.event.pull_request.head.repo.full_name == github.repository"
Workflow = dict[str, Any]


@pytest.fixture
def workflow() -> Workflow:
    found: Workflow = yaml.load(WORKFLOW.read_text(), Loader=yaml.BaseLoader)  # plain text: `on` is a word here
    return found


def problems(workflow: Workflow) -> list[str]:
    """Returns what is wrong with a workflow."""
    found = []
    if set(workflow["on"]) != {"pull_request"}:
        found.append("runs on something else than pull_request; pull_request_target would lend its identity to forks")
    if workflow.get("permissions") != {}:
        found.append("gives every job permissions")
    for name, job in workflow["jobs"].items():
        allowed = {"contents": "read"}
        if job.get("if") == SAME_REPOSITORY:
            allowed |= {"id-token": "write", "pull-requests": "write"}
        if not job.get("permissions", {}).items() <= allowed.items() or not job.get("permissions"):
            found.append(f"{name}: permissions {job.get('permissions')}")
        if "timeout-minutes" not in job:
            found.append(f"{name}: no limit of time")
        for step in job["steps"]:
            found += [f"{name}: {problem}" for problem in _problems_of_step(step, allowed)]
    return found


def _problems_of_step(step: dict[str, Any], allowed: dict[str, str]) -> list[str]:
    found = []
    given, text = step.get("with", {}), yaml.safe_dump(step)
    action = step.get("uses", "").split("@")[0]
    if "${{" in step.get("run", ""):
        found.append("an expression in a script: what a stranger wrote would be run")
    if action and not re.fullmatch(r".+@v\d+", step["uses"]):
        found.append(f"{step['uses']} is no released version")
    if action == "actions/checkout" and given.get("persist-credentials") != "false":
        found.append("leaves its token in the clone")
    if action == "pulumi/actions" and given.get("command") != "preview":
        found.append(f"runs pulumi {given.get('command')}")
    if "credentials_json" in text or "secrets." in text:
        found.append("uses a key or a secret instead of the identity")
    if action in ("google-github-actions/auth", "pulumi/actions") and "id-token" not in allowed:
        found.append("logs in on behalf of a fork")
    return found


def test_workflow_can_only_preview(workflow: Workflow) -> None:
    assert problems(workflow) == []


def test_every_region_stack_is_previewed(workflow: Workflow) -> None:
    regions = [
        file.name.split(".")[1]
        for file in sorted(REPOSITORY.glob("Pulumi.*.yaml"))
        if yaml.safe_load(file.read_text())["config"].get("multinic:program") == "region"
    ]
    assert workflow["jobs"]["preview"]["strategy"]["matrix"]["stack"] == regions
    project = yaml.safe_load((REPOSITORY / "Pulumi.yaml").read_text())
    (step,) = (step for step in workflow["jobs"]["preview"]["steps"] if "pulumi/actions" in step.get("uses", ""))
    assert step["with"]["stack-name"] == f"organization/{project['name']}/${{{{ matrix.stack }}}}"


def test_packages_are_installed_where_pulumi_looks(workflow: Workflow) -> None:
    folder = yaml.safe_load((REPOSITORY / "Pulumi.yaml").read_text())["runtime"]["options"]["virtualenv"]
    scripts = [step["run"] for step in workflow["jobs"]["preview"]["steps"] if "run" in step]
    assert any(f"python -m venv {folder}\n" in script for script in scripts)


def test_variables_of_the_workflow_are_documented() -> None:
    text = (REPOSITORY / "docs" / "pull-requests.md").read_text()
    for name in re.findall(r"vars\.(\w+)", WORKFLOW.read_text()):
        assert f"`{name}`" in text


def _job(name: str, change: dict[str, Any]) -> Callable[[Workflow], None]:
    return lambda workflow: workflow["jobs"][name].update(change)


def _step(change: dict[str, Any]) -> Callable[[Workflow], None]:
    return lambda workflow: workflow["jobs"]["mocks"]["steps"].append(change)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda workflow: workflow["on"].update({"pull_request_target": ""}), "lend its identity"),
        (lambda workflow: workflow.update(permissions={"contents": "write"}), "gives every job permissions"),
        (_job("preview", {"if": "always()"}), "logs in on behalf of a fork"),
        (_job("preview", {"permissions": {"contents": "write"}}), "preview: permissions"),
        (_job("mocks", {"permissions": {"id-token": "write"}}), "mocks: permissions"),
        (_step({"run": "echo ${{ github.event.pull_request.title }}"}), "an expression in a script"),
        (_step({"uses": "pulumi/actions@v6", "with": {"command": "up"}}), "runs pulumi up"),
        (_step({"uses": "actions/checkout@main"}), "is no released version"),
        (_step({"uses": "a/b@v1", "with": {"token": "${{ secrets.KEY }}"}}), "uses a key or a secret"),
    ],
)
def test_canary_a_spoilt_workflow_is_seen(spoil: Callable[[Workflow], None], message: str, workflow: Workflow) -> None:
    spoilt = copy.deepcopy(workflow)
    spoil(spoilt)
    assert any(message in problem for problem in problems(spoilt))

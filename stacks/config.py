"""A stack's configuration as plain values, wrong ones noted like wrong inputs."""

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.runtime import config as runtime_config

from multinic import naming
from multinic.problems import Problems
from multinic.reading import shown, similar

NAMESPACE = "multinic"

DEFAULTS: Mapping[str, Any] = {
    "client_network": "",
    "endpoints": {},
    "iap_members": [],
    "networks": [],
    "networks_stack": "",
    "other_regions": [],
    "program": "dev",
    "router": {},
    "server_network": "",
    "service_projects": [],
    "shared_vpc_host": False,
    "zones": ["*"],
}
"""The settings of all programs as Pulumi.yaml declares them. Pulumi gives each default to every stack, whichever its
program, so a setting that has its default is one that was not given."""

_BY_STACK = {
    "networks": "the networks of a stack are given as multinic:networks",
    "region": "the region of a stack is given as gcp:region",
    "zones": "the zones of a stack are given as multinic:zones",
}


class StackConfig:
    """Reads `multinic:…` and the provider's own region.

    Args:
        problems: Where problems are noted.
        known: Keys of the namespace that the program reads.
    """

    def __init__(self, problems: Problems, known: tuple[str, ...]) -> None:
        self._problems = problems
        self._config = pulumi.Config(NAMESPACE)
        self._known = known
        for full in {**runtime_config.get_config_env(), **runtime_config.CONFIG.get()}:
            namespace, _, key = full.partition(":")
            if namespace != NAMESPACE:
                continue
            if self._given(key) is None:
                continue
            if key not in (*known, "program"):
                problems.add(full, f"no such setting{similar(key, known)}")
            elif runtime_config.is_config_secret(full):
                problems.add(full, "is a secret, and would be readable as metadata and outputs; give it as plain text")
        project = pulumi.Config("gcp").get("project")
        if project and not re.fullmatch(naming.PROJECT, project):
            problems.add("gcp:project", f"{shown(project)} is not a project id")

    def value(self, key: str, default: Any) -> Any:
        """Returns a setting of any plain form: text, number, list or object."""
        assert key in self._known, key
        given = self._given(key)
        return default if given is None else given

    def _given(self, key: str) -> Any:
        """Returns a setting; None where it has the declared default, and so was not given."""
        given: Any = self._config.get(key)
        if isinstance(given, str):
            with contextlib.suppress(json.JSONDecodeError):
                given = json.loads(given)
        return None if json.dumps(given) == json.dumps(DEFAULTS.get(key)) else given

    def region(self) -> str:
        """Returns the provider's region."""
        region = pulumi.Config("gcp").get("region")
        if not region:
            self._problems.add("gcp:region", "is required: give a region such as us-central1")
        return region or ""

    def project(self) -> str:
        """Returns the provider's project."""
        project = pulumi.Config("gcp").get("project")
        if not project:
            self._problems.add("gcp:project", "is required: give the id of a project")
        return project or ""

    def mapping(self, key: str) -> dict[str, Any]:
        """Returns a setting with nested inputs, empty when it is not given."""
        value = self.value(key, {})
        if isinstance(value, Mapping):
            return dict(value)
        self._problems.add(f"{NAMESPACE}:{key}", f"must be a mapping of names to values, not {value!r}")
        return {}

    def router(self) -> dict[str, Any]:
        """Returns the router's inputs, without those that the stack gives itself."""
        given = self.mapping("router")
        for key in given.keys() & _BY_STACK.keys():
            self._problems.add(f"{NAMESPACE}:router.{key}", _BY_STACK[key])
        return {key: value for key, value in given.items() if key not in _BY_STACK}


def rename(found: Problems, problems: Problems, names: Mapping[str, str], prefix: str = "") -> None:
    """Notes a component's problems under the names that its inputs have in the configuration.

    An input that has a problem already gets no further one: the component was given something in its place.

    Args:
        found: What the component's own check found.
        problems: Where it is noted.
        names: First part of a path → what it is called here.
        prefix: What all other paths begin with here.
    """
    before = Problems(list(problems.found))
    for problem in found.found:
        head = problem.path.split(".")[0].split("[")[0]
        path = names[head] + problem.path[len(head) :] if head in names else prefix + problem.path
        if not before.cover(path):
            problems.add(path, problem.message, rule=problem.rule, is_output=problem.is_output)

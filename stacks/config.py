"""A stack's configuration as plain values, wrong ones noted like wrong inputs."""

import json
from typing import Any

import pulumi
from pulumi.runtime import config as runtime_config

from multinic.problems import Problems
from multinic.reading import similar

NAMESPACE = "multinic"


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
            if namespace == NAMESPACE and key not in (*known, "program"):
                problems.add(full, f"no such setting{similar(key, known)}")

    def value(self, key: str, default: Any) -> Any:
        """Returns a setting of any plain form: text, number, list or object."""
        assert key in self._known, key
        text = self._config.get(key)
        if text is None:
            return default
        if not isinstance(text, str):
            return text
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return text

    def region(self) -> str:
        """Returns the provider's region."""
        region = pulumi.Config("gcp").get("region")
        if not region:
            self._problems.add("gcp:region", "is required: give a region such as us-central1")
        return region or ""

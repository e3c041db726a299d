"""What the front door serves, as the table of docs/lab.md: ``python -m multinic.lab.api.served`` prints it."""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from ..cloud import Cloud
from ..substrate import NoMachines
from .app import SERVICES


def methods() -> dict[str, frozenset[str]]:
    """Names of the methods in their discovery documents, by first path segment."""
    with tempfile.TemporaryDirectory() as folder:
        compute = Cloud(Path(folder), NoMachines()).serves()
    return {"compute": compute} | {name: frozenset(service.methods) for name, service in SERVICES.items()}


def table() -> str:
    """A Markdown table: path, resource, methods."""
    lines = ["| Path | Resource | Methods |", "|---|---|---|"]
    for name, served in methods().items():
        version = "v1, beta" if name == "compute" else SERVICES[name].document.partition(".")[2]
        resources = defaultdict(list)
        for method in sorted(served):
            resource, _, verb = method.rpartition(".")
            resources[resource].append(verb)
        lines += [
            f"| /{name}/ ({version}) | {resource} | {', '.join(verbs)} |" for resource, verbs in resources.items()
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(table())

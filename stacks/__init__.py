"""Pulumi programs made from the library. The root `__main__.py` runs the one that the stack asks for."""

from importlib import import_module

import pulumi

PROGRAMS = ("dev", "endpoints", "networks", "project", "region")
"""Programs by name; each is a module here with a function `program`."""


def run() -> None:
    """Runs the program that the stack's configuration names (`multinic:program`), `dev` if it names none.

    Raises:
        pulumi.RunError: The configuration or an input (`InputError`) cannot be used. Its text is for people; Pulumi
            shows it without a traceback.
    """
    name = pulumi.Config("multinic").get("program") or "dev"
    if name not in PROGRAMS:
        raise pulumi.RunError(f"multinic:program: there is no program {name!r}; known: {', '.join(PROGRAMS)}")
    import_module(f"stacks.{name}").program()

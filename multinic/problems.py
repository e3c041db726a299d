"""What is wrong with inputs: every problem with its path, collected and raised as one error.

Nothing here knows any input; `reading` finds the problems of single values, `rules` those between values.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pulumi
from pulumi.errors import InputPropertyErrorDetails


@dataclass(frozen=True)
class Problem:
    """One input that cannot be used.

    Attributes:
        path: Where it was given, such as ``networks[1].cidrs[0]``.
        message: What is wrong and what would be right, in one line.
        rule: Id of the rule it breaks; empty for a value of the wrong form.
        is_output: An Output stood where a plain value is needed.
    """

    path: str
    message: str
    rule: str = ""
    is_output: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class InputError(pulumi.InputPropertiesError, pulumi.RunError):
    """Inputs that cannot be used, raised before any resource is declared.

    Its text lists every problem on a line of its own and is meant to be read by people: Pulumi shows it without a
    traceback, as every `RunError`. `errors` holds path and reason of each, as Pulumi's engine wants them of a package.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        head = "1 input cannot be used:" if count == 1 else f"{count} inputs cannot be used:"
        details = [InputPropertyErrorDetails(property_path=p.path, reason=p.message) for p in self.problems]
        super().__init__("\n".join([head, *(f"  {problem}" for problem in self.problems)]), details)


class InputTypeError(InputError, TypeError):
    """As `InputError`, when at least one problem is an Output in the place of a plain value."""


@dataclass
class Problems:
    """The problems found so far in one run."""

    found: list[Problem] = field(default_factory=list)

    def add(self, path: str, message: str, *, rule: str = "", is_output: bool = False) -> None:
        """Notes a problem; the same path and message are noted once."""
        problem = Problem(path, message, rule, is_output)
        if problem not in self.found:
            self.found.append(problem)

    def add_all(self, findings: Iterable[tuple[str, ...]], *, prefix: str = "", rule: str = "") -> None:
        """Notes what a rule has found, path and message of each."""
        for path, message, *_ in findings:
            self.add(prefix + path, message, rule=rule)

    def cover(self, path: str) -> bool:
        """Whether this input, or one that it is a part of, already has a problem."""
        return any(_holds(problem.path, path) for problem in self.found)

    def touch(self, *paths: str) -> bool:
        """Whether any of these inputs, a part of one, or one that it is a part of, already has a problem."""
        return any(_holds(one.path, path) or _holds(path, one.path) for one in self.found for path in paths)

    def raise_if_any(self) -> None:
        """Raises all of them together.

        Raises:
            InputError: At least one problem was found.
        """
        if self.found:
            kind = InputTypeError if any(problem.is_output for problem in self.found) else InputError
            raise kind(self.found)


def _holds(one: str, other: str) -> bool:
    """Whether a path is the other or contains it."""
    return other.startswith(one) and other[len(one) : len(one) + 1] in ("", ".", "[")

"""Rules between inputs, as a table: id, where it comes from, what it demands, and the check itself.

Each says no before anything is created; Google Cloud would refuse the combination later, or worse, accept it and drop
packets. All rules are judged in every run, also beside inputs that cannot be read, so that everything is told at once.
A finding is passed over when its own input, or one that it rests on, has a problem of its own: what was read there is
a stand-in.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from multinic.problems import Problems
from multinic.rules_machine import MACHINE_RULES
from multinic.rules_network import NETWORK_RULES
from multinic.rules_policy import POLICY_RULES
from multinic.rules_scaling import SCALING_RULES
from multinic.settings import RouterSettings

Finding = tuple[str, ...]
"""Path and message of a breach; then the other inputs that it rests on, as paths."""


@dataclass(frozen=True)
class Rule:
    """A rule between inputs.

    Attributes:
        id: Short name, shown with the problem.
        source: Where the rule comes from.
        demands: What it demands, in one sentence.
        check: Yields a finding for each breach.
    """

    id: str
    source: str
    demands: str
    check: Callable[[RouterSettings], Iterable[Finding]]


RULES: tuple[Rule, ...] = tuple(Rule(*row) for row in (*NETWORK_RULES, *MACHINE_RULES, *SCALING_RULES, *POLICY_RULES))


def check(
    settings: RouterSettings,
    problems: Problems,
    *,
    called: Callable[[str], str] = lambda path: path,
    only: Collection[str] = (),
) -> None:
    """Judges all rules, or some; notes each breach.

    Args:
        settings: What is judged.
        problems: Where breaches are noted, and what is wrong already.
        called: Returns what the input of a router with this path is called by the caller.
        only: Ids of the rules to judge; all if empty.
    """
    before = Problems(list(problems.found))
    for rule in RULES:
        if only and rule.id not in only:
            continue
        for path, message, *rests_on in rule.check(settings):
            if not before.cover(called(path)) and not before.touch(*map(called, rests_on)):
                problems.add(called(path), message, rule=rule.id)

"""Rules between inputs, as a table: id, where it comes from, what it demands, and the check itself.

Each says no before anything is created; Google Cloud would refuse the combination later, or worse, accept it and drop
packets. A rule is passed over when an input that it needs already has a problem of its own.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from multinic.problems import Problems
from multinic.rules_machine import MACHINE_RULES
from multinic.rules_network import NETWORK_RULES
from multinic.rules_policy import POLICY_RULES
from multinic.rules_scaling import SCALING_RULES
from multinic.settings import RouterSettings

Finding = tuple[str, str]


@dataclass(frozen=True)
class Rule:
    """A rule between inputs.

    Attributes:
        id: Short name, shown with the problem.
        source: Where the rule comes from.
        demands: What it demands, in one sentence.
        needs: Inputs that must be readable before it can be judged.
        check: Yields path and message of each breach.
    """

    id: str
    source: str
    demands: str
    needs: tuple[str, ...]
    check: Callable[[RouterSettings], Iterable[Finding]]


RULES: tuple[Rule, ...] = tuple(Rule(*row) for row in (*NETWORK_RULES, *MACHINE_RULES, *SCALING_RULES, *POLICY_RULES))


def check(settings: RouterSettings, problems: Problems, path: str = "", only: Collection[str] = ()) -> None:
    """Judges all rules, or some; notes each breach.

    Args:
        settings: What is judged.
        problems: Where breaches are noted, and what is wrong already.
        path: What the inputs' paths begin with.
        only: Ids of the rules to judge; all if empty.
    """
    prefix = f"{path}." if path else ""
    before = Problems(list(problems.found))
    for rule in RULES:
        if (only and rule.id not in only) or before.touch(*(prefix + need for need in rule.needs)):
            continue
        problems.add_all(rule.check(settings), prefix=prefix, rule=rule.id)

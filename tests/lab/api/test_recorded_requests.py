"""`requests.json` against the recording of the real plugin, beside the repository: it has every kind of request.

Not collected where the recording is not; `test_life_of_a_stack.py` sends what is in the file everywhere.
"""

from __future__ import annotations

import json
import re

from tests.lab.api.test_life_of_a_stack import REQUESTS
from tests.lab.pulumi.conftest import RECORDED_REQUESTS

# Of types that none of our stacks has; the lab says so to whoever asks.
NOT_SERVED = re.compile("/monitoring/|/logging/")
COLLECTIONS = (
    "addresses|autoscalers|backendServices|disks|family|firewalls|forwardingRules|healthChecks|images|instances|"
    "instanceGroupManagers|instanceTemplates|networks|resourcePolicies|routers|routes|serviceAccounts|subnetworks"
)


def kind(verb: str, path: str) -> str:
    """A request without names, versions and the values of its query."""
    path = re.sub(r"/(v1|beta)/", "/VERSION/", path)
    path = re.sub(r"projects/[^/:]+", "projects/P", path)
    path = re.sub(r"(regions|zones)/[^/?]+", r"\1/PLACE", path)
    path = re.sub(rf"/({COLLECTIONS})/(?!family)[^/?]+", r"/\1/NAME", path)
    return f"{verb} {re.sub(r'=[^&]*', '=', path)}"


def test_every_kind_of_recorded_request_is_sent_to_the_lab() -> None:
    recorded = json.loads(RECORDED_REQUESTS.read_text())["requests"]
    wanted = {kind(one["method"], one["path"]) for one in recorded if not NOT_SERVED.search(one["path"])}
    sent = {kind(one["verb"], one["path"]) for one in REQUESTS}
    assert len(wanted) > 60
    assert wanted - sent == set()

"""docs/lab.md says what is served, no more and no less."""

from __future__ import annotations

from pathlib import Path

from multinic.lab.api import served
from multinic.lab.api.documents import document

DOCUMENT = Path(__file__).parents[3] / "docs" / "lab.md"


def test_the_table_is_what_is_served() -> None:
    assert served.table() in DOCUMENT.read_text(), "print it anew with: python -m multinic.lab.api.served"


def test_every_method_served_is_one_of_googles() -> None:
    names = {"compute": "compute.beta", "crm": "cloudresourcemanager.v1"}
    names |= {name: f"{name}.{version}" for name, version in (("iam", "v1"), ("logging", "v2"), ("monitoring", "v3"))}
    names["serviceusage"] = "serviceusage.v1"
    for api, methods in served.methods().items():
        assert methods <= set(document(names[api]).methods), api

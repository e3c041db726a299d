"""Names: valid, short enough, unique and stable, whatever they are made from."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from multinic import naming, testing
from multinic.router import MultinicRouter
from tests.unit.shapes import router_args

texts = st.text(min_size=1, max_size=120)
# Names that look alike after cleaning are the dangerous ones.
alike = st.text(alphabet="aAbB-_ .1", min_size=1, max_size=70)


@given(text=texts | alike, limit=st.sampled_from([naming.MAX_LOGICAL, naming.MAX_VM_PREFIX, naming.MAX_ACCOUNT_PREFIX]))
def test_slug_is_a_valid_short_stable_name(text: str, limit: int) -> None:
    made = naming.slug(text, limit)
    assert naming.VALID.fullmatch(made)
    assert 1 <= len(made) <= limit
    assert made == naming.slug(text, limit)


@given(one=alike, other=alike)
def test_different_texts_have_different_names(one: str, other: str) -> None:
    assert (naming.slug(one) == naming.slug(other)) == (one == other)


@given(text=st.from_regex(r"[a-z]([-a-z0-9]{0,50}[a-z0-9])?", fullmatch=True))
def test_valid_names_are_kept(text: str) -> None:
    assert naming.slug(text) == text


def test_a_zone_is_told_by_the_end_of_a_vm_name() -> None:
    assert naming.vm_prefix("router-fleet", "us-central1-b") == "router-fleet-b"


def test_projects_of_links() -> None:
    for link, project in (
        ("projects/host/global/networks/n", "host"),
        ("https://www.googleapis.com/compute/v1/projects/example.com:host/global/networks/n", "example.com:host"),
        ("n", None),
    ):
        assert naming.project_of(link) == project


def test_names_of_a_router_with_an_impossible_name() -> None:
    name = "Router_between the Networks of Production & Development, with a very long name indeed"
    declared = testing.run(lambda: MultinicRouter(name, router_args(8, generation="v2")))
    made = [one for one in declared.resources if one.custom]
    assert len({one.name for one in made}) == len(made)
    for one in made:
        assert naming.VALID.fullmatch(one.name), one.name
        assert len(one.name) <= naming.MAX_LOGICAL
        if not one.is_a("RandomId"):
            assert one.name.startswith("v2-")
    for group in declared.all("InstanceGroupManager"):
        assert len(group["baseInstanceName"]) <= naming.MAX_VM_PREFIX
    assert 6 <= len(declared.one("Account")["accountId"]) <= 30

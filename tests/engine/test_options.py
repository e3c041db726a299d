"""Options of resources that the engine and the stand-ins have to get right together."""

from __future__ import annotations

import pytest

from tests.engine.conftest import Project
from tests.lab.pulumi.fake_api import FakeApi

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def test_two_providers_keep_apart_although_they_share_a_port(project: Project, api: FakeApi) -> None:
    project.write("""
        away = gcp.Provider("away", project="lab", region="europe-west1")
        c.Router("here", name="here", network="n")
        c.Router("there", name="there", network="n", opts=pulumi.ResourceOptions(provider=away))
    """)

    deployment = project.up(api)

    assert sorted(api.objects) == [
        "projects/lab/regions/europe-west1/routers/there",
        "projects/lab/regions/us-central1/routers/here",
    ]
    deployment.destroy()
    assert api.objects == {}


def test_ignored_changes_fixed_names_and_protection(project: Project, api: FakeApi) -> None:
    project.write("""
        mark = config.get("mark") or "a"
        c.Router("ignored", network="n", description=mark, opts=pulumi.ResourceOptions(ignore_changes=["description"]))
        c.Network("fixed", name="fixed", description=mark)
        c.Network("auto", description=mark)
    """)
    deployment = project.up(api, mark="a")
    api.requests.clear()

    done = deployment.update(project.config(mark="b"), preview=False)

    assert done == {"replace": 2}
    changes = [f"{r['method']} {r['path'].rsplit('/', 1)[-1]}" for r in api.requests if r["method"] != "GET"]
    # The old network of a fixed name goes before the new one comes; with an automatic name it is the other way round.
    posts = [index for index, change in enumerate(changes) if change == "POST networks"]
    assert changes.index("DELETE fixed") < max(posts)
    (old_auto,) = (index for index, change in enumerate(changes) if change.startswith("DELETE auto-"))
    assert min(posts) < old_auto
    assert len(changes) == 4
    deployment.destroy()
    assert api.objects == {}

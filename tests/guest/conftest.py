"""The guest's modules, as its programs see them, and routers in namespaces."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "guest" / "lib")]

from wire import Wire, wire  # noqa: E402


@pytest.fixture
def make_wire(tmp_path: Path) -> Iterator[Callable[..., Wire]]:
    """Makes routers in namespaces; all are gone after the test, however it ended."""
    with ExitStack() as stack:

        def make(**options: Any) -> Wire:
            folder = tmp_path / f"wire{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            return stack.enter_context(wire(folder, **options))

        yield make


@pytest.fixture
def router(make_wire: Callable[..., Wire]) -> Wire:
    """A running two-NIC router: metadata, watcher, both health endpoints, and the first good verdict."""
    return running(make_wire())


def running(made: Wire) -> Wire:
    made.serve_metadata()
    assert made.routing("start").returncode == 0
    made.start("policy-routing watch", "hc-traffic", "hc-health")
    made.wait_for(lambda: made.probe(0, "10.0.0.9")[0] == 200 and made.probe(0, "10.0.0.2", 9000)[0] == 200, "healthy")
    return made


@pytest.fixture(scope="module")
def _kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[Wire], Callable[[], Wire]]]:
    with ExitStack() as stack:
        yield [], lambda: running(stack.enter_context(wire(tmp_path_factory.mktemp("kept"))))


@pytest.fixture
def repaired_router(_kept: tuple[list[Wire], Callable[[], Wire]]) -> Wire:
    """A running router that tests of repair share, since it is whole again after each; made anew where it is not."""
    held, make = _kept
    if not held or held[0].routing("verify").returncode != 0:
        held[:] = [make()]
    return held[0]

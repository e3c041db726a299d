"""A disk without room: the request is refused and nothing of it stays."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Any, Never

import pytest

from multinic.lab.cloud.errors import ApiError
from tests.lab.api.bodies import V1, ZONE, furnish, group, properties
from tests.lab.api.conftest import Door


@pytest.fixture
def furnished(door: Door) -> Door:
    return furnish(door)


def test_a_full_disk_is_said_and_changes_nothing(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object, **_more: object) -> Never:
        raise OSError(28, "No space left on device")

    door.ok("GET", f"{V1}/zones")  # reads the discovery documents
    monkeypatch.setattr("multinic.lab.cloud.store.Path.open", full)
    code, _, message = door.refused("POST", f"{V1}/global/networks", {"name": "n", "autoCreateSubnetworks": False})
    assert code == 503
    assert "No space left on device" in message
    monkeypatch.undo()
    assert door.refused("GET", f"{V1}/global/networks/n")[0] == 404
    door.ok("POST", f"{V1}/global/networks", {"name": "n", "autoCreateSubnetworks": False})


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{V1}/global/networks", {"name": "n", "autoCreateSubnetworks": True}),
        (f"{ZONE}/instanceGroupManagers", group()),
        (f"{ZONE}/instances", {"name": "vm", **properties()}),
    ],
    ids=["network", "group", "instance"],
)
def test_a_disk_that_fills_up_in_the_middle_of_a_request_leaves_nothing(
    furnished: Door, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any]
) -> None:
    """A network stayed without its default route, a disk without its instance, and a second try found them there."""
    store, write = furnished.cloud.store, furnished.cloud.store._write
    before = copy.deepcopy(store._objects)
    for room in itertools.count():
        left = iter(range(room))

        def full(key: str, value: dict[str, Any], left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise ApiError(503, "backendError", "No space left on device.")
            write(key, value)

        monkeypatch.setattr(store, "_write", full)
        response = furnished.send("POST", path, body)
        monkeypatch.undo()
        if response.status_code == 200:
            break
        assert response.status_code == 503
        assert store._objects == before, f"after {room} writes"
    assert room > 1


def test_a_disk_that_takes_no_change_is_said(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(*_args: object, **_more: object) -> Never:
        raise OSError(30, "Read-only file system")

    door.ok("POST", f"{V1}/global/networks", {"name": "n", "autoCreateSubnetworks": False})
    monkeypatch.setattr("multinic.lab.cloud.store.Path.unlink", read_only)
    code, _, message = door.refused("DELETE", f"{V1}/global/networks/n")
    assert code == 503
    assert "Read-only file system. Make it writable again." in message
    monkeypatch.undo()
    door.ok("GET", f"{V1}/global/networks/n")
    door.ok("DELETE", f"{V1}/global/networks/n")

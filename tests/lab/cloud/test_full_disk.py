"""A disk that takes nothing for a while: controllers go on when there is room again."""

from __future__ import annotations

from typing import Never

import pytest

from multinic.lab.cloud.errors import ApiError
from tests.lab.cloud.world import OpenWorld, Run


def test_a_group_acts_again_once_there_is_room_again(
    world: OpenWorld, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> None:
        async with world() as w:
            key = await w.fleet()
            (vm,) = w.members(key)
            before = w.identity(vm)
            write = w.cloud.store._write

            def full(*_: object) -> Never:
                raise ApiError(503, "backendError", "The lab cannot write: No space left on device. Free some space.")

            monkeypatch.setattr(w.cloud.store, "_write", full)
            await w.substrate.cut_power(vm)
            await w.until(lambda: w.changes("machine", "not noted", vm), "the stop cannot be noted")
            assert w.identity(vm) == before
            monkeypatch.setattr(w.cloud.store, "_write", write)
            await w.until(lambda: w.identity(vm) not in (None, before), "a new VM of the same name")
            await w.stable(key)

            # Full when a health check has it repaired: the group's own notes fail.
            again = w.identity(vm)
            monkeypatch.setattr(w.cloud.store, "_write", full)
            w.substrate.failing[9000].add(vm)
            await w.until(lambda: w.changes("group", "error", key), "the repair fails")
            monkeypatch.setattr(w.cloud.store, "_write", write)
            await w.until(lambda: w.identity(vm) not in (None, again), "repaired")
            w.substrate.failing[9000].clear()
            await w.stable(key)

    run(check())

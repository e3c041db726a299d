"""Opens a cloud on a substrate of pretence for a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from multinic.lab.cloud import Cloud
from tests.lab.cloud.fake_substrate import FakeSubstrate
from tests.lab.cloud.world import OpenWorld, Run, World


@pytest.fixture
def world(tmp_path: Path) -> OpenWorld:
    """Opens a `World` on the test's folder: ``async with world(speed=…) as w``."""

    @asynccontextmanager
    async def opened(
        speed: float = 100.0, substrate: FakeSubstrate | None = None, **options: Any
    ) -> AsyncIterator[World]:
        below = substrate or FakeSubstrate()
        cloud = Cloud(tmp_path, below, speed=speed, **options)
        await cloud.start()
        try:
            yield World(cloud, below)
        finally:
            await cloud.close()
        broken = [e for e in cloud.events.after() if e.subject == "background"]
        assert not broken, broken

    return opened


@pytest.fixture
def run() -> Run:
    """Runs a test's coroutine."""
    return asyncio.run


@pytest.fixture
def fake_substrate() -> type[FakeSubstrate]:
    return FakeSubstrate

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.pulumi.fake_api import FakeApi


@pytest.fixture
def api() -> Iterator[FakeApi]:
    fake = FakeApi()
    yield fake
    fake.close()

"""Two rows of the matrix that `make guest-matrix` runs in full: those whose images other tests need, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.guests.matrix import run_row


@pytest.mark.guests
@pytest.mark.slow
@pytest.mark.timeout(700)
@pytest.mark.parametrize("manager", ["networkd", "NetworkManager"])
def test_a_router_beside_another_manager_of_nics(manager: str, tmp_path: Path) -> None:
    """Kinds 1 and 2, G1, G2, G3, G5: real daemons restart, set NICs up anew, reset settings; all is repaired."""
    assert run_row("", manager, tmp_path)["repairs"] > 1

"""The lab's daemon without guests, whose machines nevertheless answer health probes: as their metadata says.

A machine whose startup script is `BAD` answers none, as a router that never becomes whole; all others answer at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from multinic.lab import daemon
from multinic.lab.substrate import NoMachines, Probe, ProbeResult

BAD = "exit 1  # never healthy"
SCRIPT_KEY = "multinic-user-startup-script"


class AnsweringMachines(NoMachines):
    """Machines of pretence."""

    def serve_metadata(self, metadata_of: Callable[[str], dict[str, Any] | None]) -> None:
        self._metadata_of = metadata_of

    async def probe(self, probe: Probe) -> ProbeResult:
        metadata = self._metadata_of(probe.machine)
        if metadata is None:
            return ProbeResult(False, "no such machine")
        healthy = metadata["instance"]["attributes"].get(SCRIPT_KEY) != BAD
        return ProbeResult(healthy, "as the metadata says")


if __name__ == "__main__":
    daemon.NoMachines = AnsweringMachines  # type: ignore[attr-defined]
    daemon.main()

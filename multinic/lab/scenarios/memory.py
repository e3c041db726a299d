"""How much memory a lab takes: its own processes, and each guest."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from pathlib import Path


def megabytes(supervisor: int) -> tuple[float, list[float]]:
    """Proportional set sizes, in MB: shared pages are counted once, by parts.

    Args:
        supervisor: Process id of the lab's outermost process; what descends from it counts.

    Returns:
        Of the lab's own processes together, and of each guest. A guest is a process namespace inside the lab's.
    """
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                children[int(parent)].append(int(entry.name))
    own: float = 0
    guests: dict[str, float] = defaultdict(float)
    todo = [(supervisor, 0, "")]
    while todo:
        pid, depth, namespace = todo.pop()
        with suppress(OSError, StopIteration):
            inside = str(Path(f"/proc/{pid}/ns/pid").readlink())
            deeper = depth + (inside != namespace and bool(namespace))
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            size = int(next(line for line in lines if line.startswith("Pss:")).split()[1]) / 1024
            if deeper >= GUEST_DEPTH:
                guests[inside] += size
            else:
                own += size
            todo += [(child, deeper, inside) for child in children[pid]]
    return own, sorted(guests.values())


GUEST_DEPTH = 2
"""The lab's own process namespace is one below the host's, a guest's two."""

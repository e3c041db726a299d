"""Who works how much in `pulumi up` of the dev stack on a lab without guests: `make engine-benchmark`.

CPU seconds, user and system, of one command: the engine and the program with its SDK, which any cloud would cost,
against the lab's daemon and the stand-ins for the plugins, which are ours. Nothing here has a limit of time.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parents[2]))

from multinic.lab.pulumi.environment import environment
from tests.engine.conftest import REPOSITORY, RunningLab, daemon

ROUNDS = 5
COMMANDS = ("up", "preview", "refresh", "destroy")
TICKS = os.sysconf("SC_CLK_TCK")


def spent(pid: int) -> float:
    """CPU seconds of a process that goes on."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def children() -> float:
    """CPU seconds of what has run to its end below this process: the engine, and the program that it has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(lab: RunningLab, folder: Path) -> dict[str, list[tuple[float, float, float]]]:
    """Command → (engine and SDK, stand-ins, daemon) of each round."""
    settings = dict(os.environ) | environment(lab.endpoint, lab.token, lab.folder)
    stand_ins = int(json.loads((lab.folder / "providers.json").read_text())["pid"])
    ours = int(json.loads((lab.folder / "lab.json").read_text())["pid"])

    def pulumi(*arguments: str) -> tuple[float, float, float]:
        before = children(), spent(stand_ins), spent(ours)
        command = ["pulumi", *arguments, "--non-interactive"]
        done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        after = children(), spent(stand_ins), spent(ours)
        return after[0] - before[0], after[1] - before[1], after[2] - before[2]

    pulumi("stack", "init", "dev")
    found: dict[str, list[tuple[float, float, float]]] = {command: [] for command in COMMANDS}
    for _ in range(ROUNDS):
        for command in COMMANDS:
            options = () if command == "preview" else ("--yes", "--skip-preview")
            found[command].append(pulumi(command, *options))
    return found


def main() -> int:
    """Measure and print one line for each command: medians of CPU seconds, and of the ratios."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "project"
        folder.mkdir()
        described = yaml.safe_load((REPOSITORY / "Pulumi.yaml").read_text()) | {"main": str(REPOSITORY)}
        (folder / "Pulumi.yaml").write_text(yaml.safe_dump(described))
        shutil.copy(REPOSITORY / "Pulumi.dev.yaml", folder)
        with daemon(Path(temporary) / "lab") as lab:
            found = measure(lab, folder)
    print("| command | engine and SDK, s | stand-ins, s | lab, s | ours : theirs |\n|---|---|---|---|---|")
    for command, rounds in found.items():
        engine, stand_ins, ours = (statistics.median(column) for column in zip(*rounds, strict=True))
        ratio = statistics.median((one[1] + one[2]) / one[0] for one in rounds)
        print(f"| {command} | {engine:.2f} | {stand_ins:.2f} | {ours:.2f} | {ratio:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Throughput of the streams over time, with the kill, the detection and the healing marked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from multinic.lab.scenarios.report import Run
from multinic.lab.scenarios.traffic import Sample

BUCKET_SECONDS = 0.25
BEFORE_SECONDS = 5.0


def throughput(samples: Sequence[Sample], until: float) -> tuple[list[float], list[float]]:
    """Mean Mbit/s per bucket, from `BEFORE_SECONDS` before the kill (time 0) on."""
    count = int((until + BEFORE_SECONDS) / BUCKET_SECONDS) + 1
    received = [0.0] * count
    for sample in samples:
        # Spread over the buckets that the sample covers.
        steps = max(1, round((sample.last - sample.first) / 0.01))
        for step in range(steps):
            moment = sample.first + (sample.last - sample.first) * step / steps
            index = int((moment + BEFORE_SECONDS) // BUCKET_SECONDS)
            if 0 <= index < count:
                received[index] += sample.bytes / steps
    times = [index * BUCKET_SECONDS - BEFORE_SECONDS for index in range(count)]
    return times, [total * 8 / 1e6 / BUCKET_SECONDS for total in received]


def draw(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Writes `pause.svg` and `pause.png`: the first run of each kind of settings, one above the other.

    Returns:
        The files.
    """
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams["svg.hashsalt"] = "multinic"
    shown = [next(run for run in runs if run.settings == kind) for kind in dict.fromkeys(run.settings for run in runs)]
    figure, axes = plt.subplots(len(shown), 1, sharex=True, figsize=(10, 2.4 * len(shown)), squeeze=False)
    for run, axis in zip(shown, axes[:, 0], strict=True):
        for title, samples in run.samples.items():
            axis.step(*throughput(samples, run.ready_s), where="post", linewidth=1, label=title)
        marks = (
            ("kill", 0.0, "tab:red"),
            ("detected", run.detect_s, "tab:purple"),
            (run.healed_by, run.heal_s, "tab:green"),
        )
        for label, moment, colour in marks:
            axis.axvline(moment, color=colour, linewidth=1, linestyle="--", label=f"{label} {moment:.1f} s")
        name = "multinic" if run.settings == "ours" else "reference 1's settings"
        axis.set_title(f"{name}: longest gap {run.longest_gap_s:.1f} s", loc="left", fontsize=10)
        axis.set_ylabel("Mbit/s")
        axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes[-1, 0].set_xlabel("seconds after a router's kernel panic")
    figure.tight_layout()
    files = [folder / "pause.svg", folder / "pause.png"]
    figure.savefig(files[0], metadata={"Date": None})
    figure.savefig(files[1], dpi=120)
    plt.close(figure)
    return files

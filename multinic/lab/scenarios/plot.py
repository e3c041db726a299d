"""Throughput of the streams over time, with what happened meanwhile marked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from multinic.lab.scenarios.figures import Figures
from multinic.lab.scenarios.traffic import Sample

BUCKET_SECONDS = 0.25
BEFORE_SECONDS = 5.0


def throughput(samples: Sequence[Sample], until: float) -> tuple[list[float], list[float]]:
    """Mean Mbit/s per bucket, from `BEFORE_SECONDS` before the event (time 0) on."""
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


def draw(
    runs: Sequence[Figures], folder: Path, *, name: str = "pause", event: str = "a router's kernel panic"
) -> list[Path]:
    """Writes `NAME.svg` and `NAME.png`: the first run of each title, one above the other.

    Returns:
        The files.
    """
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams["svg.hashsalt"] = "multinic"
    shown = [next(run for run in runs if run.title == title) for title in dict.fromkeys(run.title for run in runs)]
    figure, axes = plt.subplots(len(shown), 1, sharex=True, figsize=(10, 2.4 * len(shown)), squeeze=False)
    for run, axis in zip(shown, axes[:, 0], strict=True):
        for title, samples in run.samples.items():
            axis.step(*throughput(samples, run.ready_s), where="post", linewidth=1, label=title)
        for label, moment, colour in run.marks:
            axis.axvline(moment, color=colour, linewidth=1, linestyle="--", label=f"{label} {moment:.1f} s")
        axis.set_title(f"{run.title}: longest gap {run.longest_gap_s:.1f} s", loc="left", fontsize=10)
        axis.set_ylabel("Mbit/s")
        axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes[-1, 0].set_xlabel(f"seconds after {event}")
    figure.tight_layout()
    files = [folder / f"{name}.svg", folder / f"{name}.png"]
    figure.savefig(files[0], metadata={"Date": None})
    figure.savefig(files[1], dpi=120)
    plt.close(figure)
    return files

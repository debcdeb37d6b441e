"""Does the tool see interference where there is none? Communication moved to random places of each step of a real trace.

    python benchmarks/placebo.py TRACE [--shifts 200] [--seed 0]

Each step's communication spans are shifted circularly within the step by a random offset, durations kept; what is then
flagged beside communication is false. Copies stay where they were, so rows beside copies are real and not counted.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from c3prof.analysis.contention import device_samples
from c3prof.analysis.interference import flagged
from c3prof.analysis.settings import Settings
from c3prof.analysis.slowdown import measured_rows
from c3prof.analysis.steps import step_windows
from c3prof.readers import load
from c3prof.trace import Trace


def shifted(trace: Trace, rng: np.random.Generator) -> Trace:
    """The trace of one rank with the communication of each step moved by a random offset."""
    rows = trace.activities
    windows = step_windows(rows)
    start, end = rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()
    step = np.searchsorted(windows.starts, start, side="right") - 1
    moved = (rows["class"] == "comm").to_numpy() & (step >= 0)
    low, length = windows.starts[step[moved]], (windows.ends - windows.starts)[step[moved]]
    offset = rng.integers(0, windows.ends - windows.starts)[step[moved]]
    begin = start.copy()
    begin[moved] = low + (start[moved] - low + offset) % length
    rows = rows.assign(start_ns=begin, end_ns=begin + end - start)
    return replace(trace, activities=rows.sort_values(["rank", "device", "stream", "start_ns"], kind="stable", ignore_index=True))


def false_rows(trace: Trace) -> int:
    """Rows of kernels beside communication that are flagged."""
    count = 0
    for device in device_samples(trace, Settings()):
        measured, _ = measured_rows(device.drawn, device.context)
        labels = np.array(device.drawn.labels, object)[measured["label"].to_numpy()]
        compute = ~device.drawn.comm[np.searchsorted(device.drawn.row, device.drawn.marks.first[measured["signature"].to_numpy()])]
        beside = np.array([str(label).startswith("comm:") for label in labels], bool)
        count += int(flagged(measured[compute].assign(slowdown=1 / measured["rate"]))["interference"].to_numpy()[beside[compute]].sum())
    return count


def main() -> None:
    """Prints in how many of the shifted runs a row beside communication is flagged."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("trace")
    options.add_argument("--shifts", type=int, default=200)
    options.add_argument("--seed", type=int, default=0)
    asked = options.parse_args()
    trace, rng = load(asked.trace), np.random.default_rng(asked.seed)
    found = [false_rows(shifted(trace, rng)) for _ in range(asked.shifts)]
    print(f"{sum(n > 0 for n in found)} of {len(found)} shifted runs flag a row beside communication; {sum(found)} rows in all")


if __name__ == "__main__":
    main()

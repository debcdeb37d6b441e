"""How long the tables of contention take, and how much memory: one rank, so many activities.

python benchmarks/slowdown_speed.py [--activities 1000000] [--signatures 2000] [--steps 50]
"""

import argparse
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from c3prof.analysis import analyze
from c3prof.analysis.settings import Settings
from c3prof.table import Schema
from c3prof.trace import ACTIVITIES, COLLECTIVES, OPS, RANKS, STEPS, Trace

TABLES = ("slowdown", "interference", "footprint", "c3", "c3_by_step", "c3_regions", "sample_counts")


def crowded(activities: int, signatures: int, steps: int) -> Trace:
    """A Trace of one rank: kernels back to back, 40 collectives a step beside them, 3 % noise, nothing planted."""
    rng = np.random.default_rng(0)
    per_step = activities // steps
    signature = np.tile(rng.integers(0, signatures, per_step), steps)
    duration = (rng.integers(20_000, 200_000, signatures)[signature] * (1 + 0.03 * rng.normal(size=len(signature)))).astype(np.int64)
    start = np.cumsum(duration + 1000) - duration
    step = np.repeat(np.arange(steps), per_step)
    at = np.sort(rng.choice(len(start), 40 * steps, replace=False))
    begin = start[at]
    end = np.minimum(begin + rng.integers(200_000, 3_000_000, len(at)), np.append(begin[1:], 2**62) - 10)
    kernels, comm = len(start), len(at)
    classes = ["gemm", "norm", "elementwise", "reduction", "memory", "other", "all_reduce"]
    columns = {
        "stream": np.repeat([7, 20], [kernels, comm]),
        "start_ns": np.append(start, begin),
        "end_ns": np.append(start + duration, end),
        "name": pd.Categorical.from_codes(np.append(signature % 200, np.full(comm, 200)), categories=[f"kernel_{i}" for i in range(201)]),
        "kernel_class": pd.Categorical.from_codes(np.append(signature % 6, np.full(comm, 6)), categories=classes),
        "class": pd.Categorical.from_codes(np.repeat([0, 1], [kernels, comm]), categories=["compute", "comm"]),
        "op": np.append(np.arange(kernels), np.full(comm, -1)),
        "collective_id": np.append(np.full(kernels, -1), np.arange(comm)),
        "step": np.append(step, step[at]),
        **dict.fromkeys(("correlation", "graph", "launch", "annotation", "bytes"), np.full(kernels + comm, -1)),
    }
    dims = pd.Categorical.from_codes(signature, categories=[f"[[{i + 1}]]" for i in range(signatures)])
    return Trace(
        activities=filled(ACTIVITIES, kernels + comm, columns),
        ops=filled(OPS, kernels, {"dims": dims, "parent": np.full(kernels, -1), "step": step}),
        collectives=filled(COLLECTIVES, comm, {"start_ns": begin, "end_ns": end, "size_bytes": np.full(comm, 1024), "step": step[at]}),
        steps=filled(STEPS, steps, {"step": np.arange(steps), "end_ns": np.ones(steps)}),
        ranks=filled(RANKS, 1, {"path": ["crowded"], "tick_ns": [1], "world_size": [1]}),
    )


def filled(schema: Schema, rows: int, columns: dict[str, Any]) -> pd.DataFrame:
    """A frame with these columns, the others 0, one text, or unknown."""
    blank = {
        "category": pd.Categorical.from_codes(np.zeros(rows, int), categories=["x"]),
        "object": [None] * rows,
        "bool": np.zeros(rows, bool),
    }
    others = {c.name: blank.get(c.dtype, np.zeros(rows)) for c in schema.columns if c.default is ... and c.name not in columns}
    return schema.frame({**others, **columns})


def main() -> None:
    """Prints wall and CPU time, and the most memory used."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--activities", type=int, default=1_000_000)
    options.add_argument("--signatures", type=int, default=2000)
    options.add_argument("--steps", type=int, default=50)
    asked = options.parse_args()
    trace = crowded(asked.activities, asked.signatures, asked.steps)
    wall, cpu = time.perf_counter(), time.process_time()
    report = analyze(trace, Settings(only=TABLES))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    numbers = int(report["slowdown"].frame["slowdown"].notna().sum())
    print(f"{len(trace.activities):,} activities, {numbers:,} slowdowns: {wall:.1f} s ({cpu:.1f} s CPU), {memory:.2f} GB at most")


if __name__ == "__main__":
    main()

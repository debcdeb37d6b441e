"""Do the slowdown's intervals hold what they promise? Share of intervals that contain the planted factor, and its bias.

    python benchmarks/coverage.py [--runs 20] [--seed 0]

For n_clean = 3, 4, 6, 10, 30: runs of 40 kernels with factors 1.0 to 3.0 beside a collective, recorded through the
Kineto reader. Every model has 3 % noise a kernel with heavy tails (Student's t, 4 degrees) and a random effect of 1 %
a step; with waves the truth is the factor that came about in the simulation; the last lines count runs with nothing planted in which any row is flagged.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from c3prof.analysis.contention import contention
from c3prof.analysis.interference import flagged
from c3prof.analysis.settings import Settings
from c3prof.readers import load
from c3prof.sample_traces.simulator import Collective, Kernel, Noise, Program, contended, realized

FACTORS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0)
N_CLEAN = (3, 4, 6, 10, 30)
OVERLAPPED = 15

Factors = dict[str, float]


def program(n_clean: int, model: str, rng: np.random.Generator) -> tuple[Program, Factors]:
    """A program whose kernels run n_clean steps alone and 15 beside collectives, and the factor of each kernel."""
    factors = {f"gemm_{i}": 1.0 if model == "nothing planted" else float(rng.choice(FACTORS)) for i in range(40)}
    kernels = [Kernel(name, float(rng.uniform(50, 300)), s, dims=((i + 1, 64),)) for i, (name, s) in enumerate(factors.items())]
    if model == "waves":
        kernels = [replace(k, slowdown=1 + 0.5 * (k.slowdown - 1), tail_slowdown=1 + 1.5 * (k.slowdown - 1)) for k in kernels]
    noise = Noise(kernel=0.03, step=0.01, tails=4, tick_ns=1000 if model == "1 µs ticks" else 1)
    steps = 1 + n_clean + OVERLAPPED
    slowed = 1.4 if model == "collective slows in turn" else 1.0
    collectives = [
        Collective(work=float(rng.uniform(300, 900)), after=4 * i, slowdown=slowed, delay=50, share=OVERLAPPED / steps) for i in range(10)
    ]
    return Program(kernels, collectives, steps=steps, noise=noise), factors


def intervals(plan: Program, factors: Factors, seed: int) -> tuple[list[bool], list[float], bool]:
    """Whether each interval holds the planted factor, the relative errors, and whether any row is flagged."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank0.json"
        path.write_text(json.dumps(contended(plan, seed)[0]))
        _, table, *_ = contention(load(path), {}, Settings())
    rows = flagged(table.frame)
    known = rows[rows["slowdown"].notna() & rows["co_runner"].eq("comm:all_reduce")]
    truth = known["kernel"].map(realized(plan, seed) if any(k.tail_slowdown for k in plan.kernels) else factors)
    holds = (known["slowdown_low"] <= truth) & (truth <= known["slowdown_high"])
    return holds.tolist(), (known["slowdown"] / truth - 1).tolist(), bool(rows["interference"].any())


def main() -> None:
    """Prints a Markdown row a model and n_clean."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=20)
    options.add_argument("--seed", type=int, default=0)
    asked = options.parse_args()
    print(f"## How often the slowdown's 95 % intervals hold the planted factor\n\n{asked.runs} runs of 40 kernels a row.\n")
    print("| model | n_clean | intervals | coverage | bias | runs with a flagged row |\n|---|---|---|---|---|---|")
    for model in ("base", "1 µs ticks", "waves", "collective slows in turn", "nothing planted"):
        for n_clean in N_CLEAN:
            rng = np.random.default_rng([asked.seed, n_clean])
            holds, errors, flags = [], [], []
            for run in range(asked.runs):
                plan, factors = program(n_clean, model, rng)
                hold, error, flag = intervals(plan, factors, asked.seed * 1000 + run)
                holds, errors, flags = holds + hold, errors + error, [*flags, flag]
            flagged_runs = f"{sum(flags)}/{len(flags)}" if model == "nothing planted" else ""
            print(f"| {model} | {n_clean} | {len(holds):,} | {np.mean(holds):.3f} | {np.mean(errors):+.4f} | {flagged_runs} |", flush=True)


if __name__ == "__main__":
    main()

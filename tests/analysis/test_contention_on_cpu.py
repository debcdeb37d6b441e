"""The tool's slowdown of real products beside real memory traffic agrees with the same timed directly."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from c3prof.readers import load
from tests.analysis.contended_runs import table

ATTEMPTS = 3


def recorded(folder: Path) -> tuple[Path, dict[str, np.ndarray]]:
    path = folder / "contention.json"
    script = Path(__file__).with_name("contention_on_cpu.py")
    one_thread = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, str(script), str(path)], env={**os.environ, **one_thread}, capture_output=True, text=True, check=True, timeout=120
    )
    return path, {name: np.array(times, float) for name, times in json.loads(done.stdout).items()}


def interval(direct: dict[str, np.ndarray]) -> tuple[float, float]:
    """95 % interval of the mean time beside over the median time alone, resampling rounds."""
    rng = np.random.default_rng(0)
    alone, beside = (direct[name].reshape(-1, 3)[1:] for name in ("alone", "beside"))
    rounds = rng.integers(0, len(alone), (1000, len(alone)))
    ratios = np.array([np.median(beside[r]) / np.median(alone[r]) for r in rounds])
    low, high = np.quantile(ratios, [0.025, 0.975])
    return float(low), float(high)


def spread(times: np.ndarray) -> float:
    low, high = np.quantile(times, [0.25, 0.75])
    return float((high - low) / np.median(times))


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="contention needs two cores")
def test_products_beside_memory_traffic(tmp_path: Path) -> None:
    """The two 95 % intervals meet; tried again, and at last skipped, where other work disturbs the machine."""
    busy, apart = [], []
    for attempt in range(ATTEMPTS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        path, direct = recorded(folder)
        noise = max(spread(direct["alone"]), spread(direct["beside"]))
        if noise > 0.35:
            busy.append(f"quartiles of one product are {noise:.0%} apart")
            continue
        rows = table(load(path), "slowdown")
        row = rows[(rows["kernel"] == "dgemm") & rows["co_runner"].str.startswith("comm:")].iloc[0]
        low, high = interval(direct)
        assert row["n_clean"] >= 20
        assert row["n_overlapped"] >= 20
        if np.isnan(row["slowdown"]):
            busy.append(f"no number: {row['note']}")
        elif row["slowdown_low"] <= high and low <= row["slowdown_high"]:
            return
        else:
            apart.append((low, high, row.to_dict()))
    assert not apart, apart
    pytest.skip(f"the machine is too busy: {'; '.join(busy)}")

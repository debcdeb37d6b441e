"""The tables of contention stay far from a loop per activity (1,000,000 activities: benchmarks/slowdown_speed.py)."""

import importlib.util
import time
from pathlib import Path

from tests.analysis.contended_runs import table


def test_a_quarter_of_a_million_activities() -> None:
    """CPU time, so that a busy machine does not decide; 1,000,000 took 7 s and 0.6 GB."""
    path = Path(__file__).parents[2] / "benchmarks" / "slowdown_speed.py"
    spec = importlib.util.spec_from_file_location("slowdown_speed", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    trace = module.crowded(250_000, 1000, 25)
    begin = time.process_time()
    rows = table(trace, "slowdown")
    assert time.process_time() - begin < 10
    assert rows["slowdown"].notna().sum() > 500

"""Bucket plans: the exact planner against every partition, and a replay that meets what was measured."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c3prof.analysis.bucket_plans import earliest_plan, replayed_end
from c3prof.analysis.ranks import across_ranks
from c3prof.analysis.settings import Settings
from c3prof.sample_traces.ranks import Job, simulated


def partitions(n: int) -> list[tuple[int, ...]]:
    """Every way to cut n buckets into runs of neighbours."""
    found = []
    for cuts in product([False, True], repeat=n - 1):
        edges = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), n]
        found.append(tuple(b - a for a, b in pairwise(edges)))
    return found


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1_000_000), st.integers(1, 100_000_000)), min_size=1, max_size=8),
    st.floats(0, 200_000),
    st.floats(1, 500),
)
def test_planner_is_exact(buckets: list[tuple[int, int]], alpha: float, bandwidth: float) -> None:
    ready, size = (np.array(column, float) for column in zip(*buckets, strict=True))
    plan = earliest_plan(ready, size, alpha, bandwidth)
    best = min(replayed_end(ready, size, sizes, alpha, bandwidth) for sizes in partitions(len(size)))
    assert plan.end == pytest.approx(best, rel=1e-12)
    assert replayed_end(ready, size, plan.sizes, alpha, bandwidth) == pytest.approx(plan.end, rel=1e-12)
    assert sum(plan.sizes) == len(size)


def test_small_buckets_that_are_ready_together_go_together() -> None:
    plan = earliest_plan(np.zeros(6), np.full(6, 1_000.0), 30_000, 100)
    assert plan.sizes == (6,)
    assert plan.end == 30_000 + 60


def test_large_buckets_far_apart_stay_apart() -> None:
    plan = earliest_plan(np.array([0.0, 1e6, 2e6]), np.full(3, 1e7), 30_000, 100)
    assert plan.sizes == (1, 1, 1)


def test_table_of_a_generated_job() -> None:
    made = {
        t.schema.name: t.frame for t in across_ranks(simulated(Job(ranks=4, steps=12, buckets=6, compute_ns=20_000)).trace, {}, Settings())
    }
    plans = made["bucket_plans"].set_index("plan")
    assert list(plans.index) == ["recorded", "merged", "single"]
    assert plans.loc["recorded", "buckets"] == "1+1+1+1+1+1"
    assert plans.loc["merged", "tail_ns"] <= plans["tail_ns"].min()
    assert plans.loc["recorded", "tail_ns"] == pytest.approx(plans.loc["recorded", "measured_tail_ns"], rel=0.1)
    assert plans.loc["recorded", "saved_ns"] == 0


def test_no_fit_no_plans() -> None:
    made = {t.schema.name: t.frame for t in across_ranks(simulated(Job(ranks=4, steps=1)).trace, {}, Settings())}
    assert not len(made["bucket_plans"])

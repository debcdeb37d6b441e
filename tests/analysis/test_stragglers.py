"""Who is late: the planted rank and nobody else, with the cause that was planted."""

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from c3prof.analysis.ranks import across_ranks
from c3prof.analysis.settings import Settings
from c3prof.analysis.stragglers import binomial_tail
from c3prof.sample_traces.ranks import Job, simulated
from c3prof.trace import Trace
from tests.collective_frames import record, trace

ACCEPTANCE = Job(
    ranks=64, tp=4, pp=2, layers=3, ep=1, steps=10, clock_ns=5_000_000, drift_ppm=20, window=2, missing=(3, 17), ranks_per_host=0
)


def tables(run: Trace) -> dict[str, pd.DataFrame]:
    return {table.schema.name: table.frame for table in across_ranks(run, {}, Settings())}


@pytest.mark.parametrize(("launches", "cause"), [(False, "compute-late"), (True, "launch-late")])
def test_the_planted_straggler_is_named_with_its_cause(*, launches: bool, cause: str) -> None:
    made = tables(simulated(replace(ACCEPTANCE, straggler=(9, 500_000), straggler_launches=launches)).trace)
    assert made["stragglers"][["rank", "cause"]].to_numpy().tolist() == [[9, cause]]
    row = made["stragglers"].iloc[0]
    by_rank = made["waits_by_rank"].set_index("rank").loc[9]
    assert row["n_last"] == by_rank["n_last"] > 0.9 * row["n_collectives"]
    assert row["caused_wait_ns"] == by_rank["caused_wait_ns"] == made["stragglers_by_step"]["caused_wait_ns"].sum()
    assert by_rank["wait_ns"] < made["waits_by_rank"]["wait_ns"].median() / 5


@pytest.mark.parametrize("seed", range(5))
def test_nobody_is_named_where_none_is_planted(seed: int) -> None:
    for job in (replace(ACCEPTANCE, seed=seed), Job(ranks=4, steps=20, seed=seed), Job(ranks=2, steps=20, seed=seed)):
        assert not len(tables(simulated(job).trace)["stragglers"])


def late(ranks: int, lateness_us: list[float], first_us: float = 0.0, **columns: Any) -> Trace:
    """all_reduces in which rank 1 is late by so much; the first one, of the opening window, by first_us."""
    rows = []
    for k, lateness in enumerate([first_us, *lateness_us]):
        rows += [record(r, 1000 * k + (lateness if r == 1 else 0), 1000 * k + 500, seq=k, step=k, **columns) for r in range(ranks)]
    return trace(rows)


def test_caused_wait_is_the_sum_of_the_others_waits_without_the_first() -> None:
    made = tables(late(4, [100.0] * 6, first_us=400.0))
    row = made["stragglers"].iloc[0]
    assert (row["rank"], row["n_last"], row["n_collectives"], row["caused_wait_ns"]) == (1, 6, 6, 6 * 3 * 100_000)
    assert row["p_value"] == pytest.approx(4 * 0.25**6)


def test_trend_per_step() -> None:
    made = tables(late(4, [50.0, 100.0, 150.0, 200.0, 250.0, 300.0]))
    assert made["stragglers"]["trend_ns_per_step"].iloc[0] == pytest.approx(3 * 50_000)
    assert list(made["stragglers_by_step"]["caused_wait_ns"]) == [3 * 50_000 * k for k in range(1, 7)]


def test_skew_below_the_clock_bound_names_nobody() -> None:
    made = tables(late(4, [0.001] * 8))  # 1 ns, the timer's tick
    assert not len(made["stragglers"])
    assert made["waits_by_rank"]["n_last"].sum() == 0


def test_once_is_not_again_and_again() -> None:
    assert not len(tables(late(4, [0.0, 0.0, 300.0, 0.0, 0.0]))["stragglers"])


@pytest.mark.parametrize(
    ("columns", "cause"),
    [({"launched_us": 0.0}, "compute-late"), ({}, None), ({"launched_us": 0.0, "device": -1}, "compute-late")],
    ids=["launched long before", "no launch records", "on a CPU"],
)
def test_cause_of_a_start_that_nothing_explains_is_compute(columns: dict[str, Any], cause: str | None) -> None:
    assert list(tables(late(4, [100.0] * 6, **columns))["stragglers"]["cause"]) == [cause]


def test_cause_is_the_previous_collective_where_it_ended_late() -> None:
    rows = []
    for k in range(8):
        rows += [record(r, 1000 * k + (300 if r == 1 else 0), 1000 * k + 500, seq=k, step=k, launched_us=0.0) for r in range(4)]
        rows += [record(1, 1000 * k + 10, 1000 * k + 299, seq=k, step=k, group="other", group_ranks="[1,9]", launched_us=0.0)]
    assert tables(trace(rows))["stragglers"][["rank", "cause"]].to_numpy().tolist() == [[1, "comm-late"]]


def test_binomial_tail() -> None:
    assert binomial_tail(0, 5, 0.5) == 1.0
    assert binomial_tail(5, 5, 0.5) == pytest.approx(1 / 32)
    assert binomial_tail(4, 5, 0.5) == pytest.approx(6 / 32)
